// What an editor asks before it goes on: what is saved, under which name, what a dry run is given, which variable.
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type ApiError, get, part, post, put } from '../api'
import { References } from '../builder'
import type { ReferencesHere } from '../codemirror'
import { lineDiff, merged } from '../difference'
import { type DryRun, DryRunView } from '../dry_run'
import { faultsOf, InputForm, Mend } from '../inputs'
import { announce, Dialog, Diff, Failure, Field, Told, useAction, When } from '../parts'
import { go } from '../router'
import type { Outline, Problem, Saved } from '../types'
import type { TypedElsewhere } from '../typed'
import { count } from '../words'

export function Save({ name, before, text, etag, problems, close, stored, changed }: { name: string; before: string; text: string; etag: string | undefined; problems: Problem[]; close: () => void; stored: (etag: string) => Promise<void>; changed: (theirs: Saved) => void }): JSX.Element {
  const action = useAction()
  const [why, setWhy] = useState('')
  const [isGone, setGone] = useState(false)
  const save = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      const headers: Record<string, string> = etag && !isGone ? { 'If-Match': `"${etag}"` } : { 'If-None-Match': '*' }
      try {
        const saved = await put<{ etag: string }>(`/api/workflows/${part(name)}`, { recipe: text, why: why || 'edited in the console' }, headers)
        await stored(saved.etag)
      } catch (error) {
        if ((error as ApiError).kind !== 'changed') throw error
        const theirs = await get<Saved>(`/api/workflows/${part(name)}`).catch((refused: ApiError) => {
          if (refused.status !== 404) throw refused
        })
        setGone(!theirs)
        if (!theirs) return
        // Nothing was there when this one was begun, and now there is.
        changed(theirs)
        close()
      }
    })
  }
  return (
    <Dialog title="Save these changes?" close={close}>
      <form onSubmit={save}>
        {problems.length ? <div class="card warning"><p>The text has {count(problems.length, 'problem')}. It is saved only without any; until then this browser keeps what you typed.</p></div> : null}
        <Diff text={lineDiff(before, text)} />
        {isGone && !action.error ? <div class="card warning" role="alert"><p><strong>The file was deleted meanwhile.</strong> What you typed is still here. Save it again, and the file is made anew.</p></div> : null}
        <Field label="Why" note="kept with the version">{(id) => <input id={id} class="wide" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />}</Field>
        {action.error ? <Failure error={action.error} next={<ul>{((action.error.details.problems as Problem[] | undefined) ?? []).map((each) => <li>{each.line ? `line ${each.line}: ` : ''}{each.message}</li>)}</ul>} /> : null}
        <p class="bar"><button class="main" disabled={action.isBusy}>Save</button><button type="button" onClick={close}>Back to the text</button></p>
      </form>
    </Dialog>
  )
}

export function SaveAs({ name, text, close }: { name: string; text: string; close: () => void }): JSX.Element {
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
        <Field label="Its name" note="letters, digits, hyphens, underscores">{(id) => <input id={id} value={as} required pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" onInput={(event) => setAs(event.currentTarget.value)} />}</Field>
        {action.error ? <Failure error={action.error} next={action.error.kind === 'changed' ? <p>There is a workflow of this name already: choose another one.</p> : null} /> : null}
        <p class="bar"><button class="main" disabled={action.isBusy || !as}>Save it</button><button type="button" onClick={close}>Cancel</button></p>
      </form>
    </Dialog>
  )
}

export function Users({ step, error, close, remove }: { step: string; error: ApiError; close: () => void; remove: () => void }): JSX.Element {
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

export function Variables({ text, place, file, close, insert }: { text: string; place: { line: number; column: number; braces: boolean }; file: string; close: () => void; insert: (word: string) => void }): JSX.Element {
  const [found, setFound] = useState<ReferencesHere>()
  const action = useAction()
  useEffect(() => void action.run(async () => setFound(await post<ReferencesHere>('/api/recipes/references', { recipe: text, line: place.line, column: place.column, file }))), [])
  return (
    <Dialog title="Insert a variable" close={close}>
      {action.error ? <Failure error={action.error} /> : null}
      {found && !found.where ? <p>Nothing is filled in at line {place.line}. Put the cursor into a prompt, an input, a condition or another text of a step first.</p> : null}
      {found?.where ? (
        <>
          <p class="quiet small">What the {found.where} may name: inputs, and what steps give that do not wait for it.</p>
          <References found={found} close={close} insert={(word) => insert(place.braces || found.expression ? word : `{{${word}}}`)} />
        </>
      ) : null}
      <p class="bar"><button type="button" onClick={close}>Close</button></p>
    </Dialog>
  )
}

// The text as it is, saved or not: what it would do with these inputs.
export function TryIt({ text, outline, close }: { text: string; outline: Outline; close: () => void }): JSX.Element {
  const [values, setValues] = useState<Record<string, unknown>>({})
  const [faults, setFaults] = useState<string[]>([])
  const [plan, setPlan] = useState<DryRun>()
  const action = useAction()
  const work = (event: Event): void => {
    event.preventDefault()
    const found = faultsOf(outline.inputs, values)
    setFaults(found)
    setPlan(undefined)
    if (!found.length) void action.run(async () => (setPlan(await post<DryRun>('/api/runs', { recipe: text, inputs: values, dry_run: true })), announce('What it would do is shown below.')))
  }
  const problems = (action.error?.details.problems as Problem[] | undefined) ?? []
  return (
    <Dialog title="Dry run" close={close}>
      <form onSubmit={work} noValidate>
        <p class="quiet small">What a run of this text would do, saved or not. No model is called.</p>
        {outline.inputs.length ? <InputForm inputs={outline.inputs} values={values} change={setValues} /> : <p class="quiet">It takes no inputs.</p>}
        <Mend faults={faults} />
        {action.error ? <Failure error={action.error} next={problems.length ? <ul>{problems.map((each) => <li>{each.line ? `line ${each.line}: ` : ''}{each.message}</li>)}</ul> : null} /> : null}
        <p class="bar"><button class="main" disabled={action.isBusy}>{plan ? 'Again' : 'Show what it would do'}</button><button type="button" onClick={close}>Close</button></p>
      </form>
      {plan ? <section aria-label="What it would do"><DryRunView plan={plan} /></section> : null}
    </Dialog>
  )
}

export interface Theirs {
  before: string // the file's text that mine was made from
  theirs: Saved
  mine: string
  isSame: boolean
  isJson: boolean
}

export function ChangedOnDisk({ before, theirs, mine, isSame, isJson, take, keep, merge }: Theirs & { take: () => void; keep: () => void; merge: (text: string) => void }): JSX.Element {
  const both = useMemo(() => (isSame ? undefined : merged(before, mine, theirs.text)), [before, mine, theirs])
  // A clash is marked with comments, which JSON does not have.
  const canMerge = both && !(both.clashes && isJson)
  return (
    <div class="card warning" role="alert">
      <p><strong>The file was changed by somebody else.</strong> {isSame ? 'You have changed nothing yet.' : 'What you typed is still here, and nothing is overwritten.'}</p>
      <details><summary>What they changed</summary><Diff text={lineDiff(before, theirs.text)} /></details>
      {isSame ? null : <details><summary>Your text against theirs</summary><Diff text={lineDiff(theirs.text, mine)} /></details>}
      <p class="bar">
        {canMerge ? <button type="button" class="main" onClick={() => merge(both.text)}>{both.clashes ? `Merge them, and settle ${count(both.clashes, 'clash').replace('clashs', 'clashes')}` : 'Merge them'}</button> : null}
        <button type="button" onClick={take}>Take their text</button>
        {isSame ? null : <button type="button" onClick={keep}>Keep mine; a save replaces theirs</button>}
      </p>
      {isSame ? null : <p class="quiet small">{both?.clashes ? 'Where both changed the same lines, both stand in the text, between marks. ' : ''}Undo brings your text back. What is replaced is kept as a version.</p>}
    </div>
  )
}

// What was typed and not saved: here before a reload, or in another tab.
export function Restored({ at, discard, close }: { at: number; discard: () => void; close: () => void }): JSX.Element {
  return (
    <div class="card">
      <Told says="What you typed before and did not save is here again." />
      <p class="bar between"><span>What you typed <When at={at / 1000} /> and did not save is here again.</span><span class="bar snug"><button type="button" onClick={discard}>Discard it</button><button type="button" onClick={close}>Keep it</button></span></p>
    </div>
  )
}

export function FromAnotherTab({ typed, mine, take, drop }: { typed: TypedElsewhere; mine: string; take: () => void; drop: () => void }): JSX.Element {
  return (
    <div class="card warning">
      <Told says={typed.isOpen ? 'This workflow is being edited in another tab.' : 'A tab that was closed left a text that was not saved.'} />
      <p><strong>{typed.isOpen ? 'This workflow is being edited in another tab.' : 'A tab that was closed left a text that was not saved.'}</strong> <span class="quiet">Last typed there <When at={typed.at / 1000} />.</span></p>
      <details><summary>Your text against that one</summary><Diff text={lineDiff(mine, typed.text)} /></details>
      <p class="bar"><button type="button" onClick={take}>Take that text</button>{typed.isOpen ? null : <button type="button" onClick={drop}>Throw it away</button>}</p>
    </div>
  )
}
