// What can be done with a run: cancel, resume, retry, fork. In: the run. Out: buttons, and dialogs for what needs more.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { faultsOf, InputForm, Mend } from '../inputs'
import { announce, Dialog, Failure, Field, Menu, useAction } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'
import type { RunAnswer, Saved, WorkflowInput } from '../types'

type Asked = 'cancel' | 'retry' | 'fork' | null

export function RunActions({ view, chosen, isRunning, reload }: { view: RunAnswer; chosen: string | null; isRunning: boolean; reload: () => Promise<void> }): JSX.Element {
  const action = useAction()
  const [asked, setAsked] = useState<Asked>(null)
  const path = `/api/runs/${part(view.run_id)}`
  const again = (body: unknown): void => void action.run(() => follow(path, 'retry', body))
  return (
    <div class="actions">
      <div class="bar">
        {view.status === 'interrupted' || view.status === 'overdue' ? <button class="main" disabled={action.isBusy} onClick={() => void action.run(async () => { await post(`${path}/resume`); await reload() })}>Resume</button> : null}
        {isRunning ? <button class="bad" disabled={action.isBusy} onClick={() => setAsked('cancel')}>Cancel</button> : (
          <Menu label="Retry">
            <button disabled={action.isBusy || view.status === 'complete'} onClick={() => again({})}>What did not succeed</button>
            {chosen ? <button disabled={action.isBusy} onClick={() => again({ from_step: chosen })}>From {chosen} on</button> : null}
            <button disabled={action.isBusy} onClick={() => setAsked('retry')}>With other inputs …</button>
          </Menu>
        )}
        <button disabled={action.isBusy} onClick={() => setAsked('fork')}>Fork …</button>
      </div>
      {action.error ? <Failure error={action.error} /> : null}
      {asked === 'cancel' ? <Cancel path={path} close={() => setAsked(null)} done={reload} /> : null}
      {asked === 'fork' || asked === 'retry' ? <Again view={view} verb={asked} first={chosen ?? view.plan[0]?.id ?? ''} close={() => setAsked(null)} /> : null}
    </div>
  )
}

// A new run is shown at once, whether it was begun by a retry or by a fork.
export async function follow(path: string, verb: string, body: unknown): Promise<void> {
  const { run_id } = await post<{ run_id: string }>(`${path}/${verb}`, { wait: false, ...(body as object) })
  go(`/runs/${part(run_id)}`)
}

function Cancel({ path, close, done }: { path: string; close: () => void; done: () => Promise<void> }): JSX.Element {
  const action = useAction()
  const [reason, setReason] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      await post(`${path}/cancel`, { reason })
      announce('The run is being cancelled.')
      close()
      await done()
    })
  }
  return (
    <Dialog title="Cancel this run?" close={close} error={action.error}>
      <p>What is under way is stopped. What has ended is kept, and a retry uses it again.</p>
      <form onSubmit={submit}>
        <Field label="Reason" note="shown in the report">{(id) => <input id={id} class="wide" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
        <p class="bar"><button class="bad" disabled={action.isBusy}>Cancel the run</button><button type="button" onClick={close}>Let it run</button></p>
      </form>
    </Dialog>
  )
}

const ABOUT = {
  fork: 'A new run that shares everything before a step, and does that step and what follows anew.',
  retry: 'A new run with these inputs. Steps to which the change makes no difference are not done again.',
}

function Again({ view, verb, first, close }: { view: RunAnswer; verb: 'fork' | 'retry'; first: string; close: () => void }): JSX.Element {
  const action = useAction()
  const [from, setFrom] = useState(first)
  const [values, setValues] = useState<Record<string, unknown>>(() => Object.fromEntries(Object.entries(view.inputs).filter(([, value]) => value !== null)))
  const declared = useDeclared(view)
  const faults = faultsOf(declared ?? [], values)
  const submit = (event: Event): void => {
    event.preventDefault()
    // What is empty is what the recipe says, and not what it was before.
    const inputs = Object.fromEntries(Object.keys(view.inputs).map((name) => [name, values[name] ?? null]))
    void action.run(async () => {
      await follow(`/api/runs/${part(view.run_id)}`, verb, { inputs, ...(verb === 'fork' ? { from_step: from } : {}) })
      close()
    })
  }
  return (
    <Dialog title={verb === 'fork' ? 'Fork this run' : 'Retry with other inputs'} close={close} error={action.error}>
      <p>{ABOUT[verb]}</p>
      <form onSubmit={submit} noValidate>
        {verb === 'fork' ? <Field label="From step">{(id) => <select id={id} value={from} onChange={(event) => setFrom(event.currentTarget.value)}>{view.plan.map((step) => <option key={step.id}>{step.id}</option>)}</select>}</Field> : null}
        {declared ? <InputForm inputs={declared} values={values} change={setValues} /> : <p class="quiet">Loading …</p>}
        <Mend faults={faultsOf((declared ?? []).filter((input) => values[input.name] === undefined), values)} />
        {declared?.length === 0 ? <p class="quiet">This run has no inputs.</p> : null}
        <p class="bar"><button class="main" disabled={action.isBusy || !declared || faults.length > 0}>{verb === 'fork' ? 'Start the fork' : 'Start the retry'}</button><button type="button" onClick={close}>Leave it</button></p>
      </form>
    </Dialog>
  )
}

// As the recipe declares them, where it still is what the run began with; else as their values are.
function useDeclared(view: RunAnswer): WorkflowInput[] | undefined {
  const isSaved = view.recipe.now === 'unchanged' && Object.keys(view.inputs).length > 0
  const saved = useResource(() => (isSaved ? get<Saved>(`/api/workflows/${part(view.workflow)}`).then((found) => found.workflow.inputs) : Promise.resolve([])), view.run_id)
  const known = new Map((saved.value ?? []).map((input) => [input.name, input]))
  if (saved.value === undefined && !saved.error) return undefined
  return Object.entries(view.inputs).map(([name, value]) => known.get(name) ?? { name, type: KINDS[typeof value] ?? 'json', required: false })
}

const KINDS: Record<string, WorkflowInput['type']> = { string: 'string', number: 'number', boolean: 'boolean' }
