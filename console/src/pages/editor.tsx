// Edit a workflow: its text and its graph side by side. Bytes that nobody touched stay as they are: what is saved is the
// text itself, and a change in the graph is a change of the text that the server makes (/api/recipes/edit).
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, get, part, post } from '../api'
import { Builder, type StepEdit } from '../builder'
import { open, type ReferencesHere, type TextEditor } from '../codemirror'
import type { Named, Names, Schema } from '../completion'
import { plain } from '../markdown'
import { announce, Failure, Title, useAction } from '../parts'
import { dropTyped, keepTyped, type Typed, typedElsewhere, type TypedElsewhere, typedHere, watchTyped } from '../typed'
import type { Outline, Problem, Saved } from '../types'
import { count } from '../words'
import { WrittenText } from '../written'
import { ChangedOnDisk, FromAnotherTab, Restored, Save, SaveAs, TryIt, Users, Variables } from './editor_dialogs'

const CALM_MS = 300
const LOST_MS = 2000

interface Props {
  name: string
  saved: Saved | undefined
  start: string // the text of a new one
  done: () => Promise<void>
}

type Asked = 'save' | 'as' | 'variable' | 'try'

export default function Editor({ name, saved, start, done }: Props): JSX.Element {
  const [base, setBase] = useState({ text: saved?.text ?? start, etag: saved?.etag })
  const written = useMemo(() => new WrittenText(base.text), [base])
  const [shown, setShown] = useState(written.shown)
  const [asked, setAsked] = useState<Asked>()
  const [theirs, setTheirs] = useState<Saved>()
  const editor = useRef<TextEditor>()
  const latest = useRef({ shown, written })
  latest.current = { shown, written }
  const file = saved?.workflow.file.split('/').at(-1) ?? `${name}.yaml`
  const outline = useOutline(shown, file)
  const graph = useGraphEdits(editor, latest, file, outline.reload)
  const text = useMemo(() => written.restored(shown), [written, shown])
  const isUnchanged = text === base.text
  const isSame = saved !== undefined && isUnchanged
  useEffect(() => editor.current?.show(outline.value?.problems ?? [], outline.value?.warnings ?? []), [outline.value])
  const look = useElsewhere(name, base.etag, setTheirs)
  const become = (whole: string): void => editor.current?.become(new WrittenText(whole).shown)
  const restore = (typed: Typed): void => {
    if (typed.etag !== base.etag && saved) (setBase({ text: typed.base, etag: typed.etag }), setTheirs(saved))
    become(typed.text)
  }
  const kept = useTyped(name, { base: base.text, etag: base.etag, text }, isUnchanged, restore, look)
  const stored = async (etag: string): Promise<void> => {
    await kept.drop()
    setBase({ text, etag })
    setTheirs(undefined)
    setAsked(undefined)
    announce('Saved.')
    await done()
  }
  const over = (found: Saved): void => (setBase({ text: found.text, etag: found.etag }), setTheirs(undefined))
  // A dialog says that it was closed a moment later, when the next one may be open already.
  const leave = (which: Asked) => (): void => setAsked((now) => (now === which ? undefined : now))
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== 's' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
    event.preventDefault()
    if (!isSame) setAsked('save')
  }
  const choose = (step: string, line?: number): void => (graph.choose(step), line ? editor.current?.reveal(line) : undefined)
  const references = (edit: StepEdit): Promise<ReferencesHere> => referencesOf(latest.current, file, edit)
  const drawn = useRef<Outline>() // the last text that could be read: a graph that goes and comes as one types is of no use
  if (outline.value?.steps.length) drawn.current = outline.value
  const now = outline.value
  const graphed = now && !now.steps.length && now.problems.length ? (drawn.current ?? now) : now
  const toText = (line: number): void => (editor.current?.reveal(line), editor.current?.focus())
  // The same element for the same graph: a key that is typed draws the text, and not a thousand boxes.
  const builder = useMemo(() => (graphed ? <Builder outline={graphed} isOld={graphed !== now} chosen={graph.chosen} isBusy={graph.isBusy} edit={graph.edit} choose={choose} toText={toText} references={references} /> : <p class="quiet">Reading the text …</p>), [now, graph.chosen, graph.isBusy])
  return (
    <div onKeyDown={keys}>
      {saved ? null : <Title page={`New: ${name}`}>New workflow: {name}</Title>}
      <div class="bar between toolbar">
        <div class="bar snug">
          <button type="button" onClick={() => editor.current?.undo()} title="Ctrl+Z" aria-keyshortcuts="Control+Z">Undo</button>
          <button type="button" onClick={() => editor.current?.redo()} title="Ctrl+Y" aria-keyshortcuts="Control+Y">Redo</button>
          <button type="button" onClick={() => editor.current?.find()} title="Ctrl+F" aria-keyshortcuts="Control+F">Find</button>
          <button type="button" onClick={() => setAsked('variable')}>Insert a variable</button>
        </div>
        <div class="bar snug">
          <Verdict outline={outline.value} isLost={outline.isLost} />
          <span class="quiet small">{isSame ? 'Nothing has changed.' : 'Not saved yet.'}</span>
          {saved ? <button type="button" onClick={() => setAsked('as')}>Save as …</button> : null}
          <button type="button" disabled={!outline.value} onClick={() => setAsked('try')}>Dry run …</button>
          <button type="button" class="main" disabled={isSame} title="Ctrl+S" aria-keyshortcuts="Control+S" onClick={() => setAsked('save')}>Save …</button>
          {saved ? <a class="button" href={`/workflows/${part(name)}`}>Run …</a> : null}
        </div>
      </div>
      {kept.restoredAt && !isSame ? <Restored at={kept.restoredAt} close={kept.accept} discard={() => (kept.accept(), theirs ? over(theirs) : undefined, become(theirs?.text ?? base.text))} /> : null}
      {kept.elsewhere.filter((each) => each.text !== text).map((each) => <FromAnotherTab key={each.tab} typed={each} mine={text} take={() => (restore(each), each.isOpen ? undefined : void kept.drop(each.tab))} drop={() => void kept.drop(each.tab)} />)}
      {theirs && theirs.etag !== base.etag ? <ChangedOnDisk before={base.text} theirs={theirs} mine={text} isSame={isUnchanged} isJson={file.endsWith('.json')} take={() => (over(theirs), become(theirs.text))} keep={() => over(theirs)} merge={(both) => (over(theirs), become(both))} /> : null}
      <div class="editing">
        <div>
          <TextBox editor={editor} text={shown} changed={setShown} file={file} outline={outline.value} />
          <p class="quiet small hint">Tab indents; Esc and then Tab leaves the text. Ctrl+Space offers what fits.</p>
          <ProblemList outline={outline.value} show={(problem) => (editor.current?.reveal(problem.line ?? 1, problem.column ?? 1), editor.current?.focus())} />
        </div>
        <div>
          {graph.error ? <Failure error={graph.error} /> : null}
          {builder}
        </div>
      </div>
      {graph.users ? <Users error={graph.users.error} step={graph.users.step} close={graph.forget} remove={() => { const { step } = graph.users!; graph.forget(); void graph.edit({ do: 'remove', step, force: true }) }} /> : null}
      {asked === 'save' ? <Save name={name} before={saved ? base.text : ''} text={text} etag={base.etag} problems={outline.value?.problems ?? []} close={leave('save')} stored={stored} changed={setTheirs} /> : null}
      {asked === 'as' ? <SaveAs name={name} text={text} close={leave('as')} /> : null}
      {asked === 'variable' ? <Variables text={shown} place={editor.current!.place()} file={file} close={leave('variable')} insert={(word) => (leave('variable')(), setTimeout(() => editor.current?.insert(word)))} /> : null}
      {asked === 'try' ? <TryIt text={text} outline={outline.value!} close={leave('try')} /> : null}
    </div>
  )
}

interface OutlineNow {
  value: Outline | undefined
  isLost: boolean // the server does not answer: what is shown is of an earlier text
  reload: () => void
}

function useOutline(recipe: string, file: string): OutlineNow {
  const [value, setValue] = useState<Outline>()
  const [isLost, setLost] = useState(false)
  const turn = useRef(0)
  const now = useRef(recipe)
  now.current = recipe
  const load = (): void => {
    const mine = ++turn.current
    const lost = (): void => {
      if (mine !== turn.current) return
      setLost(true)
      setTimeout(() => mine === turn.current && load(), LOST_MS)
    }
    void post<Outline>('/api/recipes/outline', { recipe: now.current, file }).then((found) => mine === turn.current && (setValue(found), setLost(false)), lost)
  }
  useEffect(() => {
    const timer = setTimeout(load, value ? CALM_MS : 0)
    return () => clearTimeout(timer)
  }, [recipe])
  useEffect(() => () => void turn.current++, [])
  return { value, isLost, reload: load }
}

interface GraphEdits {
  chosen: string
  choose: (step: string) => void
  isBusy: boolean
  error: ApiError | undefined
  users: { step: string; error: ApiError } | undefined // others that name a step which is to be removed
  forget: () => void
  edit: (edit: StepEdit) => Promise<boolean>
}

interface Latest {
  shown: string
  written: WrittenText
}

const DONE: Record<StepEdit['do'], string> = { connect: 'It waits for the other step now.', disconnect: 'It does not wait for the other step any more.', add: 'The step is added.', duplicate: 'The step is duplicated.', rename: 'The step has its new name.', remove: 'The step is removed.' }

function useGraphEdits(editor: { current?: TextEditor | undefined }, latest: { current: Latest }, file: string, reload: () => void): GraphEdits {
  const [chosen, choose] = useState('')
  const [users, setUsers] = useState<{ step: string; error: ApiError }>()
  const action = useAction()
  const edit = async (change: StepEdit): Promise<boolean> => {
    let refused: ApiError | undefined
    const isDone = await action.run(async () => {
      const sent = latest.current.shown
      const asked = post<{ recipe: string }>('/api/recipes/edit', { recipe: latest.current.written.restored(sent), file, edit: change })
      const { recipe } = await asked.catch((error: ApiError) => {
        refused = error
        if (error.kind === 'in_use') return { recipe: '' }
        throw error
      })
      if (refused) return setUsers({ step: 'step' in change ? change.step : '', error: refused })
      if (latest.current.shown !== sent) throw new ApiError(0, 'changed', 'The text was changed meanwhile, so the graph was not. Do it again.')
      editor.current?.become(new WrittenText(recipe).shown, true)
      announce(DONE[change.do])
      reload()
    })
    return isDone && !refused
  }
  return { chosen, choose, isBusy: action.isBusy, error: action.error, users, forget: () => setUsers(undefined), edit }
}

// What the text of a step could refer to that is not there yet: the step is added to a copy, with a mark for its text.
async function referencesOf({ shown, written }: Latest, file: string, edit: StepEdit): Promise<ReferencesHere> {
  if (edit.do !== 'add') return { where: '', expression: false, references: [] }
  const { recipe } = await post<{ recipe: string }>('/api/recipes/edit', { recipe: written.restored(shown), file, edit })
  const before = new WrittenText(recipe).shown.split(edit.instruction)[0]!.split('\n')
  return post<ReferencesHere>('/api/recipes/references', { recipe: new WrittenText(recipe).shown, line: before.length, column: [...before.at(-1)!].length + 1, file })
}

// Whoever comes back to the window is told that the file was changed elsewhere.
function useElsewhere(name: string, etag: string | undefined, found: (saved: Saved) => void): () => void {
  const now = useRef(etag)
  now.current = etag
  const look = (): void => {
    if (now.current) void get<Saved>(`/api/workflows/${part(name)}`).then((saved) => saved.etag !== now.current && found(saved), () => undefined)
  }
  useEffect(() => {
    const timer = setInterval(look, 15_000)
    addEventListener('focus', look)
    return () => (clearInterval(timer), removeEventListener('focus', look))
  }, [name])
  return look
}

interface KeptText {
  restoredAt: number
  elsewhere: TypedElsewhere[]
  accept: () => void
  drop: (tab?: string) => Promise<void>
}

// What is typed is kept by the browser until it is saved. Where it could not be, a page that is left asks first.
function useTyped(name: string, now: { base: string; etag: string | undefined; text: string }, isUnchanged: boolean, restore: (typed: Typed) => void, look: () => void): KeptText {
  const [restoredAt, setRestoredAt] = useState(0)
  const [elsewhere, setElsewhere] = useState<TypedElsewhere[]>([])
  const [isReady, setReady] = useState(false)
  const [isKept, setKept] = useState(true)
  const latest = useRef({ now, isUnchanged, isReady })
  latest.current = { now, isUnchanged, isReady }
  const others = (): void => void typedElsewhere(name).then(setElsewhere)
  const keep = async (): Promise<void> => {
    const { now: typed, isUnchanged: isGone, isReady: may } = latest.current
    if (may) setKept(isGone ? (await dropTyped(name), true) : await keepTyped(name, typed))
  }
  useEffect(() => {
    void typedHere(name).then((typed) => {
      if (typed && typed.text !== latest.current.now.text) (restore(typed), setRestoredAt(typed.at))
      setReady(true)
      others()
    })
    const leave = (): void => void keep()
    addEventListener('pagehide', leave)
    const stop = watchTyped(name, () => (others(), look()))
    return () => (removeEventListener('pagehide', leave), stop(), leave())
  }, [name])
  useEffect(() => {
    const timer = setTimeout(() => void keep(), CALM_MS)
    return () => clearTimeout(timer)
  }, [now.text, now.etag, isReady])
  useLayoutEffect(() => {
    if (isKept || isUnchanged) return
    const hold = (event: BeforeUnloadEvent): void => event.preventDefault()
    addEventListener('beforeunload', hold)
    return () => removeEventListener('beforeunload', hold)
  }, [isKept, isUnchanged])
  const drop = async (tab?: string): Promise<void> => {
    await dropTyped(name, tab)
    others()
  }
  return { restoredAt, elsewhere, accept: () => setRestoredAt(0), drop }
}

interface Known {
  schema?: Schema
  names?: Omit<Names, 'agents' | 'steps'>
  outline?: Outline | undefined
}

function TextBox({ editor, text, changed, file, outline }: { editor: { current?: TextEditor | undefined }; text: string; changed: (text: string) => void; file: string; outline: Outline | undefined }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const known = useRef<Known>({})
  known.current.outline = outline
  useEffect(() => {
    void get<{ schema: Schema }>('/api/recipes/schema').then(({ schema }) => (known.current.schema = schema), () => undefined)
    void get<Omit<Names, 'agents' | 'steps'>>('/api/recipes/names').then((names) => (known.current.names = names), () => undefined)
    const view = open(box.current!, text, changed, {
      schema: () => known.current.schema,
      names: () => namesOf(known.current),
      isJson: file.endsWith('.json'),
      references: (recipe, line, column) => post<ReferencesHere>('/api/recipes/references', { recipe, line, column, file }),
    })
    editor.current = view
    return () => view.destroy()
  }, [])
  return <div ref={box} class="editor" />
}

function namesOf({ outline, names }: Known): Names {
  const named = (id: string, about: string): Named => ({ name: id, about })
  const others = names ?? { tools: [], models: [], workflows: [], folders: [] }
  return { ...others, agents: outline?.agents.map((each) => named(each.id, each.about || 'agent')) ?? [], steps: outline?.steps.map((each) => named(each.id, 'step')) ?? [] }
}

function Verdict({ outline, isLost }: { outline: Outline | undefined; isLost: boolean }): JSX.Element {
  if (isLost) return <span class="state warn" data-mark="!">not checked: the server does not answer</span>
  if (!outline) return <span class="quiet small">checking …</span>
  const { problems, warnings } = outline
  if (problems.length) return <span class="state bad" data-mark="✗">{count(problems.length, 'problem')}</span>
  return warnings.length ? <span class="state warn" data-mark="!">{count(warnings.length, 'warning')}</span> : <span class="state good" data-mark="✓">no problems</span>
}

function ProblemList({ outline, show }: { outline: Outline | undefined; show: (problem: Problem) => void }): JSX.Element | null {
  const all = [...(outline?.problems ?? []), ...(outline?.warnings ?? [])]
  if (!all.length) return null
  return (
    <ul class="problems" aria-label="Problems">
      {all.map((problem) => (
        <li key={`${problem.code} ${problem.line} ${problem.column} ${problem.message}`}>
          <button type="button" class="plain" onClick={() => show(problem)}>{problem.line ? `line ${problem.line}` : 'here'}</button>
          <span><code>{problem.code}</code> {plain(problem.message)}{problem.hint ? <span class="quiet"> · {plain(problem.hint)}</span> : null}</span>
        </li>
      ))}
    </ul>
  )
}
