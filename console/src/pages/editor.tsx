// Edit a workflow: its text and its graph side by side. Bytes that nobody touched stay as they are: what is saved is the
// text itself, and a change in the graph is a change of the text that the server makes (/api/recipes/edit).
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, get, part, post, put } from '../api'
import { Builder, type StepEdit } from '../builder'
import { open, type ReferencesHere, type TextEditor } from '../codemirror'
import type { Schema } from '../completion'
import { lineDiff } from '../difference'
import { announce, Dialog, Diff, Failure, Field, Title, useAction } from '../parts'
import { go } from '../router'
import type { Outline, Problem, Saved } from '../types'
import { count } from '../words'
import { WrittenText } from '../written'

const CALM_MS = 300

interface Props {
  name: string
  saved: Saved | undefined
  start: string // the text of a new one
  done: () => Promise<void>
}

export default function Editor({ name, saved, start, done }: Props): JSX.Element {
  const [base, setBase] = useState({ text: saved?.text ?? '', etag: saved?.etag })
  const written = useMemo(() => new WrittenText(saved ? base.text : start), [base])
  const [shown, setShown] = useState(written.shown)
  const [asked, setAsked] = useState<'save' | 'as' | 'variable'>()
  const [theirs, setTheirs] = useState<Saved>()
  const editor = useRef<TextEditor>()
  const latest = useRef({ shown, written })
  latest.current = { shown, written }
  const file = saved?.workflow.file.split('/').at(-1) ?? `${name}.yaml`
  const outline = useOutline(shown, file)
  const graph = useGraphEdits(editor, latest, file, outline.reload)
  const text = written.restored(shown)
  const isSame = saved !== undefined && text === base.text
  useEffect(() => editor.current?.show(outline.value?.problems ?? [], outline.value?.warnings ?? []), [outline.value])
  useUnsaved(!isSame && shown !== new WrittenText(start).shown)
  useElsewhere(name, base.etag, setTheirs)
  const stored = async (etag: string): Promise<void> => {
    setBase({ text, etag })
    setTheirs(undefined)
    setAsked(undefined)
    announce('Saved.')
    await done()
  }
  const takeTheirs = (): void => {
    if (theirs) (setBase({ text: theirs.text, etag: theirs.etag }), editor.current?.become(new WrittenText(theirs.text).shown), setTheirs(undefined))
  }
  return (
    <>
      {saved ? null : <Title page={`New: ${name}`}>New workflow: {name}</Title>}
      <div class="bar between toolbar">
        <div class="bar snug">
          <button type="button" onClick={() => editor.current?.undo()} title="Ctrl+Z" aria-keyshortcuts="Control+Z">Undo</button>
          <button type="button" onClick={() => editor.current?.redo()} title="Ctrl+Y" aria-keyshortcuts="Control+Y">Redo</button>
          <button type="button" onClick={() => setAsked('variable')}>Insert a variable</button>
        </div>
        <div class="bar snug">
          <Verdict outline={outline.value} />
          <span class="quiet small">{isSame ? 'Nothing has changed.' : 'Not saved yet.'}</span>
          {saved ? <button type="button" onClick={() => setAsked('as')}>Save as …</button> : null}
          <button type="button" class="main" disabled={isSame} onClick={() => setAsked('save')}>Save …</button>
        </div>
      </div>
      {theirs && theirs.etag !== base.etag ? <ChangedOnDisk before={base.text} theirs={theirs} mine={text} isSame={isSame} take={takeTheirs} keep={() => { setBase({ text: theirs.text, etag: theirs.etag }); setTheirs(undefined) }} /> : null}
      <div class="editing">
        <div>
          <TextBox editor={editor} text={shown} changed={setShown} file={file} outline={outline.value} />
          <ProblemList outline={outline.value} show={(problem) => (editor.current?.reveal(problem.line ?? 1, problem.column ?? 1), editor.current?.focus())} />
        </div>
        <div>
          {graph.error ? <Failure error={graph.error} /> : null}
          {outline.value ? <Builder outline={outline.value} chosen={graph.chosen} isBusy={graph.isBusy} edit={graph.edit} choose={(step, line) => { graph.choose(step); if (line) editor.current?.reveal(line) }} /> : <p class="quiet">Reading the text …</p>}
        </div>
      </div>
      {graph.users ? <Users error={graph.users.error} step={graph.users.step} close={graph.forget} remove={() => { const { step } = graph.users!; graph.forget(); void graph.edit({ do: 'remove', step, force: true }) }} /> : null}
      {asked === 'save' ? <Save name={name} before={base.text} text={text} etag={base.etag} problems={outline.value?.problems ?? []} close={() => setAsked(undefined)} stored={stored} changed={setTheirs} /> : null}
      {asked === 'as' ? <SaveAs name={name} text={text} close={() => setAsked(undefined)} /> : null}
      {asked === 'variable' ? <Variables text={shown} place={editor.current!.place()} file={file} close={() => setAsked(undefined)} insert={(word) => { setAsked(undefined); editor.current?.insert(word) }} /> : null}
    </>
  )
}

interface OutlineNow {
  value: Outline | undefined
  reload: () => void
}

function useOutline(recipe: string, file: string): OutlineNow {
  const [value, setValue] = useState<Outline>()
  const turn = useRef(0)
  const load = (): void => {
    const mine = ++turn.current
    void post<Outline>('/api/recipes/outline', { recipe, file }).then((found) => mine === turn.current && setValue(found), () => undefined)
  }
  useEffect(() => {
    const timer = setTimeout(load, value ? CALM_MS : 0)
    return () => clearTimeout(timer)
  }, [recipe])
  return { value, reload: load }
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

function useGraphEdits(editor: { current?: TextEditor | undefined }, latest: { current: { shown: string; written: WrittenText } }, file: string, reload: () => void): GraphEdits {
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
      editor.current?.become(new WrittenText(recipe).shown)
      announce(`${change.do}: done`)
      reload()
    })
    return isDone && !refused
  }
  return { chosen, choose, isBusy: action.isBusy, error: action.error, users, forget: () => setUsers(undefined), edit }
}

// A page that is left by accident does not take what was typed with it.
function useUnsaved(isUnsaved: boolean): void {
  useLayoutEffect(() => {
    if (!isUnsaved) return
    const hold = (event: BeforeUnloadEvent): void => event.preventDefault()
    addEventListener('beforeunload', hold)
    return () => removeEventListener('beforeunload', hold)
  }, [isUnsaved])
}

// Whoever comes back to the window is told that the file was changed elsewhere.
function useElsewhere(name: string, etag: string | undefined, found: (saved: Saved) => void): void {
  useEffect(() => {
    if (!etag) return
    const look = (): void => void get<Saved>(`/api/workflows/${part(name)}`).then((saved) => saved.etag !== etag && found(saved), () => undefined)
    const timer = setInterval(look, 15_000)
    addEventListener('focus', look)
    return () => (clearInterval(timer), removeEventListener('focus', look))
  }, [name, etag])
}

function TextBox({ editor, text, changed, file, outline }: { editor: { current?: TextEditor | undefined }; text: string; changed: (text: string) => void; file: string; outline: Outline | undefined }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const known = useRef<{ schema?: Schema; outline?: Outline | undefined }>({})
  known.current.outline = outline
  useEffect(() => {
    void get<{ schema: Schema }>('/api/recipes/schema').then(({ schema }) => (known.current.schema = schema), () => undefined)
    const view = open(box.current!, text, changed, {
      schema: () => known.current.schema,
      names: () => ({ agents: known.current.outline?.agents.map((each) => each.id) ?? [], steps: known.current.outline?.steps.map((each) => each.id) ?? [] }),
      references: (recipe, line, column) => post<ReferencesHere>('/api/recipes/references', { recipe, line, column, file }),
    })
    editor.current = view
    return () => view.destroy()
  }, [])
  return <div ref={box} class="editor" />
}

function Verdict({ outline }: { outline: Outline | undefined }): JSX.Element {
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
          <span><code>{problem.code}</code> {problem.message}{problem.hint ? <span class="quiet"> · {problem.hint}</span> : null}</span>
        </li>
      ))}
    </ul>
  )
}

function ChangedOnDisk({ before, theirs, mine, isSame, take, keep }: { before: string; theirs: Saved; mine: string; isSame: boolean; take: () => void; keep: () => void }): JSX.Element {
  return (
    <div class="card warning" role="alert">
      <p><strong>The file was changed by somebody else.</strong> {isSame ? 'You have changed nothing yet.' : 'What you typed is still here, and nothing is overwritten.'}</p>
      <details><summary>What they changed</summary><Diff text={lineDiff(before, theirs.text)} /></details>
      {isSame ? null : <details><summary>Your text against theirs</summary><Diff text={lineDiff(theirs.text, mine)} /></details>}
      <p class="bar"><button type="button" onClick={take}>Take their text</button>{isSame ? null : <button type="button" onClick={keep}>Keep mine; a save replaces theirs</button>}</p>
      {isSame ? null : <p class="quiet small">Their text can be undone to yours. What is replaced is kept as a version.</p>}
    </div>
  )
}

function Save({ name, before, text, etag, problems, close, stored, changed }: { name: string; before: string; text: string; etag: string | undefined; problems: Problem[]; close: () => void; stored: (etag: string) => Promise<void>; changed: (theirs: Saved) => void }): JSX.Element {
  const action = useAction()
  const [why, setWhy] = useState('')
  const save = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      const headers: Record<string, string> = etag ? { 'If-Match': `"${etag}"` } : { 'If-None-Match': '*' }
      try {
        const saved = await put<{ etag: string }>(`/api/workflows/${part(name)}`, { recipe: text, why: why || 'edited in the console' }, headers)
        await stored(saved.etag)
      } catch (error) {
        if ((error as ApiError).kind !== 'changed') throw error
        changed(await get<Saved>(`/api/workflows/${part(name)}`))
        close()
      }
    })
  }
  return (
    <Dialog title="Save these changes?" close={close}>
      <form onSubmit={save}>
        {problems.length ? <div class="card warning"><p>The text has {count(problems.length, 'problem')}. It is saved only without any.</p></div> : null}
        <Diff text={lineDiff(before, text)} />
        <Field label="Why" note="kept with the version">{(id) => <input id={id} class="wide" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />}</Field>
        {action.error ? <Failure error={action.error} next={<ul>{((action.error.details.problems as Problem[] | undefined) ?? []).map((each) => <li>{each.line ? `line ${each.line}: ` : ''}{each.message}</li>)}</ul>} /> : null}
        <p class="bar"><button class="main" disabled={action.isBusy}>Save</button><button type="button" onClick={close}>Back to the text</button></p>
      </form>
    </Dialog>
  )
}

function SaveAs({ name, text, close }: { name: string; text: string; close: () => void }): JSX.Element {
  const [as, setAs] = useState(`${name}-2`)
  const action = useAction()
  const save = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      await put(`/api/workflows/${part(as)}`, { recipe: text, why: `copied from ${name}` }, { 'If-None-Match': '*' })
      go(`/workflows/${part(as)}?tab=edit`)
    })
  }
  return (
    <Dialog title="Save as another workflow" close={close}>
      <form onSubmit={save}>
        <Field label="Its name" note="letters, digits, - and _">{(id) => <input id={id} value={as} required pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" onInput={(event) => setAs(event.currentTarget.value)} />}</Field>
        {action.error ? <Failure error={action.error} next={action.error.kind === 'changed' ? <p>There is a workflow of this name already: choose another one.</p> : null} /> : null}
        <p class="bar"><button class="main" disabled={action.isBusy || !as}>Save it</button><button type="button" onClick={close}>Cancel</button></p>
      </form>
    </Dialog>
  )
}

function Users({ step, error, close, remove }: { step: string; error: ApiError; close: () => void; remove: () => void }): JSX.Element {
  const problems = (error.details.problems as Problem[] | undefined) ?? []
  return (
    <Dialog title={`Remove ${step}?`} close={close}>
      <p>Other parts of the workflow name it:</p>
      <ul>{problems.map((each) => <li>{each.line ? `line ${each.line}: ` : ''}{each.message}</li>)}</ul>
      <p class="quiet">Who waits for it will no longer; texts that name it stay as they are, and are problems to fix.</p>
      <p class="bar"><button class="bad" onClick={remove}>Remove it</button><button onClick={close}>Keep it</button></p>
    </Dialog>
  )
}

function Variables({ text, place, file, close, insert }: { text: string; place: { line: number; column: number; braces: boolean }; file: string; close: () => void; insert: (word: string) => void }): JSX.Element {
  const [found, setFound] = useState<ReferencesHere>()
  const [filter, setFilter] = useState('')
  const action = useAction()
  useEffect(() => void action.run(async () => setFound(await post<ReferencesHere>('/api/recipes/references', { recipe: text, line: place.line, column: place.column, file }))), [])
  const rows = (found?.references ?? []).filter((each) => `${each.text} ${each.about}`.toLowerCase().includes(filter.toLowerCase()))
  return (
    <Dialog title="Insert a variable" close={close}>
      {action.error ? <Failure error={action.error} /> : null}
      {found && !found.where ? <p>Nothing is filled in at line {place.line}. Put the cursor into a prompt, an input, a condition or another text of a step first.</p> : null}
      {found?.where ? (
        <>
          <p class="quiet small">What the {found.where} may name: inputs, and what steps give that do not wait for it.</p>
          <Field label="Filter">{(id) => <input id={id} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />}</Field>
          <ul class="choices">{rows.map((each) => <li key={each.text}><button type="button" onClick={() => insert(place.braces || found.expression ? each.text : `{{${each.text}}}`)}><code>{each.text}</code> <span class="small">{each.about}</span></button></li>)}</ul>
          {rows.length ? null : <p class="quiet">Nothing fits.</p>}
        </>
      ) : null}
      <p class="bar"><button type="button" onClick={close}>Close</button></p>
    </Dialog>
  )
}
