// The text editor, loaded only where a workflow is edited.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

// The colours of the page, which follow the reader's scheme.
const COLOURS = HighlightStyle.define([
  { tag: tags.comment, color: 'var(--soft)' },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--ask)' },
])
const THEME = EditorView.theme({
  '&': { border: '1px solid var(--line)', borderRadius: '6px', backgroundColor: 'var(--raised)' },
  '.cm-content': { fontFamily: 'ui-monospace, Menlo, Consolas, monospace', caretColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--soft)', border: '0' },
  '&.cm-focused': { outline: '3px solid var(--focus)' },
})

export function open(parent: HTMLElement, text: string, change: (text: string) => void): EditorView {
  // In a shadow root the editor's styles are adopted sheets, which a strict Content-Security-Policy allows.
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' })
  const breaks = text.includes('\r\n') ? '\r\n' : '\n'
  const state = EditorState.create({
    doc: text,
    extensions: [
      EditorState.lineSeparator.of(breaks),
      lineNumbers(), history(), bracketMatching(), yaml(), syntaxHighlighting(COLOURS), THEME,
      keymap.of([...defaultKeymap, ...historyKeymap]), // Tab is left alone: it leads out of the editor
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': 'Text of the workflow' }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) change(update.state.sliceDoc())
      }),
    ],
  })
  return new EditorView({ state, parent: root, root })
}
