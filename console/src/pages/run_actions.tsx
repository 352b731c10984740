// What can be done with a run: cancel, resume, retry, fork. In: the run. Out: buttons, and dialogs for what needs more.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { part, post } from '../api'
import { announce, Dialog, Failure, Field, Menu, useAction } from '../parts'
import { go } from '../router'
import type { RunAnswer } from '../types'

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
  const [texts, setTexts] = useState(() => Object.fromEntries(Object.entries(view.inputs).map(([name, value]) => [name, written(value)])))
  const faults = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, faultOf(view.inputs[name], text)]))
  const isFaulty = Object.values(faults).some(Boolean)
  const submit = (event: Event): void => {
    event.preventDefault()
    const inputs = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, readAs(view.inputs[name], text)]))
    void action.run(async () => {
      await follow(`/api/runs/${part(view.run_id)}`, verb, { inputs, ...(verb === 'fork' ? { from_step: from } : {}) })
      close()
    })
  }
  return (
    <Dialog title={verb === 'fork' ? 'Fork this run' : 'Retry with other inputs'} close={close} error={action.error}>
      <p>{ABOUT[verb]}</p>
      <form onSubmit={submit}>
        {verb === 'fork' ? <Field label="From step">{(id) => <select id={id} value={from} onChange={(event) => setFrom(event.currentTarget.value)}>{view.plan.map((step) => <option key={step.id}>{step.id}</option>)}</select>}</Field> : null}
        {Object.entries(texts).map(([name, text]) => (
          <Field key={name} label={name} note={isText(view.inputs[name]) ? undefined : 'as JSON'}>
            {(id) => (
              <>
                <textarea id={id} class={isText(view.inputs[name]) ? 'short' : 'code'} value={text} aria-describedby={`${id}-fault`} aria-invalid={faults[name] ? 'true' : undefined} onInput={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })} />
                <p id={`${id}-fault`} class="small fault">{faults[name] ? <span class="state bad" data-mark="✗">{faults[name]}</span> : null}</p>
              </>
            )}
          </Field>
        ))}
        {Object.keys(texts).length ? null : <p class="quiet">This run has no inputs.</p>}
        <p class="bar"><button class="main" disabled={action.isBusy || isFaulty}>{verb === 'fork' ? 'Start the fork' : 'Start the retry'}</button><button type="button" onClick={close}>Leave it</button></p>
      </form>
    </Dialog>
  )
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function written(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}

function readAs(before: unknown, text: string): unknown {
  return isText(before) ? text : (JSON.parse(text) as unknown)
}

function faultOf(before: unknown, text: string): string {
  try {
    readAs(before, text)
    return ''
  } catch (error) {
    return `This is no JSON: ${(error as Error).message}`
  }
}
