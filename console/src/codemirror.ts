// The text editor, loaded only where the text of a workflow is shown.
import { acceptCompletion, autocompletion, closeBrackets, type Completion, type CompletionContext, completionKeymap, type CompletionResult, startCompletion } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab, redo, redoDepth, undo, undoDepth } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from '@codemirror/search'
import { EditorState } from '@codemirror/state'
import { EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { type Names, type Offer, offersAt, type Schema, spotAt } from './completion'
import type { Problem } from './types'
import { change } from './written'

// The colours of the page, which follow the reader's scheme.
const COLOURS = HighlightStyle.define([
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--ask)' },
])
const THEME = EditorView.theme({
  '&': { border: '1px solid var(--line)', borderRadius: '8px', backgroundColor: 'var(--raised)', color: 'var(--ink)', maxHeight: 'var(--editor-height, 34rem)', overflow: 'hidden' },
  '.cm-scroller': { overflow: 'auto', fontFamily: 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace', fontSize: '13px', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--ink)', padding: '8px 0', minHeight: 'var(--text-height, 0)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--soft)', border: '0', borderRight: '1px solid var(--line)' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent) 6%, transparent)' },
  '.cm-activeLineGutter': { backgroundColor: 'transparent', color: 'var(--ink)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'color-mix(in srgb, var(--accent) 25%, transparent)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--ink)', border: '1px solid var(--soft)', borderRadius: '6px', boxShadow: '0 4px 14px rgb(0 0 0 / .18)', maxWidth: 'min(34rem, 90vw)' },
  '.cm-tooltip-autocomplete > ul': { fontFamily: 'inherit', maxHeight: '16rem' },
  '.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px 3px 6px', lineHeight: '1.5' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--accent-ink)' },
  '.cm-completionDetail': { fontStyle: 'normal', opacity: '.8', marginLeft: '1em', fontFamily: 'system-ui, sans-serif', fontSize: '12px' },
  '.cm-diagnostic': { padding: '6px 10px', borderLeft: '4px solid var(--bad)', fontFamily: 'system-ui, sans-serif', fontSize: '13px', whiteSpace: 'pre-wrap' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--warn)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)', textUnderlineOffset: '3px' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecoration: 'underline wavy var(--warn)', textUnderlineOffset: '3px' },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--ink)', zIndex: '5' },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--line)' },
  '.cm-panel.cm-search': { padding: '6px 28px 6px 8px', fontFamily: 'system-ui, sans-serif' },
  '.cm-panel.cm-search label': { fontSize: '13px', display: 'inline-flex', alignItems: 'center', minHeight: '24px' },
  '.cm-panel.cm-search [name=close]': { color: 'var(--ink)', minWidth: '24px', minHeight: '24px', fontSize: '16px' },
  '.cm-textfield': { backgroundColor: 'var(--raised)', color: 'var(--ink)', border: '1px solid var(--soft)', borderRadius: '6px', fontSize: '13px', padding: '3px 6px' },
  '.cm-button': { backgroundImage: 'none', backgroundColor: 'var(--raised)', color: 'var(--ink)', border: '1px solid var(--line)', borderRadius: '6px', fontSize: '13px', padding: '3px 8px' },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--warn) 25%, transparent)' },
  '.cm-searchMatch.cm-searchMatch-selected': { outline: '2px solid var(--warn)' },
  '.cm-selectionMatch': { backgroundColor: 'color-mix(in srgb, var(--accent) 12%, transparent)' },
  '.cm-gutter-lint': { width: '1.1em' },
  '.cm-lint-marker': { content: 'none', width: '.9em', textAlign: 'center', fontWeight: '700', color: 'var(--bad)' },
  '.cm-lint-marker-error::before': { content: '"✗"' },
  '.cm-lint-marker-warning::before': { content: '"!"', color: 'var(--warn)' },
  '&.cm-focused': { outline: '3px solid var(--focus)', outlineOffset: '1px' },
})

export interface KnownReference {
  text: string
  kind: string
  about: string
}

export interface ReferencesHere {
  where: string
  expression: boolean
  references: KnownReference[]
}

export interface Knowledge {
  schema: () => Schema | undefined
  names: () => Names
  isJson: boolean
  references: (text: string, line: number, column: number) => Promise<ReferencesHere>
}

export interface TextEditor {
  text: () => string
  // The same text with the smallest change that makes it so; one step of the history.
  become: (text: string, isShown?: boolean) => void // `isShown`: the place of the change is scrolled to
  insert: (text: string) => void
  show: (problems: Problem[], warnings: Problem[]) => void
  reveal: (line: number, column?: number) => void
  place: () => { line: number; column: number; braces: boolean }
  find: () => void
  undo: () => void
  redo: () => void
  depth: () => { undo: number; redo: number }
  complete: () => void
  focus: () => void
  destroy: () => void
}

// `changed`: told of every change; without it the text is only shown. `knows`: what is offered while it is written.
export function open(parent: HTMLElement, text: string, changed?: (text: string) => void, knows?: Knowledge): TextEditor {
  // In a shadow root the editor's styles are adopted sheets, which a strict Content-Security-Policy allows.
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' })
  const writing = changed
    ? [history(), closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(), EditorView.updateListener.of((update) => void (update.docChanged && changed(update.state.doc.toString())))]
    : [EditorState.readOnly.of(true)]
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(), lintGutter(), bracketMatching(), search({ top: true }), highlightSelectionMatches(), yaml(), syntaxHighlighting(COLOURS), THEME, ...writing,
      knows ? autocompletion({ override: [(context) => offer(context, knows)], activateOnTyping: true, icons: false }) : [],
      // Tab leads out of the editor, unless a list of words is open.
      keymap.of([{ key: 'Tab', run: acceptCompletion }, ...completionKeymap, ...searchKeymap, ...lintKeymap, ...defaultKeymap, ...historyKeymap, ...(changed ? [indentWithTab] : [])]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': 'Text of the workflow', tabindex: '0' }),
    ],
  })
  const view = new EditorView({ state, parent: root, root })
  return handleOf(view)
}

function handleOf(view: EditorView): TextEditor {
  const now = (): string => view.state.doc.toString()
  return {
    text: now,
    become: (text, isShown = false) => {
      if (text === now()) return
      const changes = change(now(), text)
      const end = changes.from + changes.insert.trimEnd().length
      view.dispatch({ changes, userEvent: 'input', ...(isShown ? { selection: { anchor: end }, effects: EditorView.scrollIntoView(end, { y: 'center' }) } : {}) })
    },
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text))
      view.focus()
    },
    show: (problems, warnings) => view.dispatch(setDiagnostics(view.state, [...marks(view, problems, 'error'), ...marks(view, warnings, 'warning')])),
    reveal: (line, column = 1) => {
      const at = offset(view, line, column)
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) })
    },
    place: () => placeOf(view.state),
    find: () => void openSearchPanel(view),
    undo: () => void undo(view),
    redo: () => void redo(view),
    depth: () => ({ undo: undoDepth(view.state), redo: redoDepth(view.state) }),
    complete: () => (view.focus(), void startCompletion(view)),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  }
}

// The server counts characters, and the editor halves of them.
function offset(view: EditorView, line: number, column: number): number {
  const row = view.state.doc.line(Math.max(1, Math.min(line, view.state.doc.lines)))
  return Math.min(row.from + [...row.text].slice(0, column - 1).join('').length, row.to)
}

function marks(view: EditorView, problems: Problem[], severity: 'error' | 'warning'): Diagnostic[] {
  return problems.map((problem) => {
    const from = offset(view, problem.line ?? 1, problem.column ?? 1)
    const to = problem.line ? offset(view, problem.line, (problem.column ?? 1) + (problem.width ?? 1)) : from
    return { from, to: Math.max(from, to), severity, message: `${problem.code} ${problem.message}${problem.hint ? `\n${problem.hint}` : ''}` }
  })
}

function placeOf(state: EditorState): { line: number; column: number; braces: boolean } {
  const at = state.selection.main.head
  const row = state.doc.lineAt(at)
  const before = row.text.slice(0, at - row.from)
  return { line: row.number, column: [...before].length + 1, braces: before.lastIndexOf('{{') > before.lastIndexOf('}}') }
}

const EXPRESSION = /^\s*(?:- +)*"?(?:when|eval|until|value|merge_when|over|feedback_path)"?\s*:\s|[{,]\s*"?(?:when|eval|until|value|merge_when|over)"?\s*:\s*["']?[^,}]*$/

async function offer(context: CompletionContext, knows: Knowledge): Promise<CompletionResult | null> {
  const place = placeOf(context.state)
  const row = context.state.doc.lineAt(context.pos)
  const before = row.text.slice(0, context.pos - row.from)
  if (place.braces || EXPRESSION.test(before)) {
    const word = /[\w.[\]-]*$/.exec(before)![0]
    const found = await knows.references(context.state.doc.toString(), place.line, place.column)
    if ((!place.braces && !found.expression) || !found.references.length) return null
    const closes = place.braces && !/^[\w.[\]-]*\s*\}\}/.test(row.text.slice(before.length))
    return { from: context.pos - word.length, options: found.references.map((each, at) => ofReference(each, at, closes)), validFor: /^[\w.[\]-]*$/ }
  }
  const schema = knows.schema()
  const spot = schema && spotAt(context.state.doc.toString().split('\n'), row.number - 1, before.length)
  if (!spot || (!spot.word && !spot.key && !context.explicit)) return null
  const rest = row.text.slice(before.length)
  const from = context.pos - spot.word.length
  const isQuoted = /["']$/.test(before.slice(0, before.length - spot.word.length))
  const isKeyThere = /^\S*\s*:/.test(rest)
  const options = offersAt(spot, schema, knows.names()).map((each): Completion => ({ label: each.text, detail: each.about, apply: spelt(each, isQuoted, isKeyThere, knows.isJson) }))
  return options.length ? { from, options, validFor: /^[\w$/.:*()-]*$/ } : null
}

// JSON has its words in quotes, which may be there already.
function spelt({ text, isKey }: Offer, isQuoted: boolean, isKeyThere: boolean, isJson: boolean): string {
  const word = isJson && !isQuoted && (isKey || !/^(true|false|null|-?\d+)$/.test(text)) ? `"${text}"` : text
  return isKey && !isKeyThere && !isQuoted ? `${word}: ` : word
}

function ofReference(reference: KnownReference, at: number, closes: boolean): Completion {
  return { label: reference.text, detail: reference.about, boost: -at / 100, apply: closes ? `${reference.text}}}` : reference.text }
}
