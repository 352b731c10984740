// What waits for a person: what would run and on what grounds; approve, edit and approve, reject with a reason.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type ApiError, get, part, post } from '../api'
import { plain, Value } from '../markdown'
import { announce, Empty, Failure, Field, Loaded, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import type { Gate } from '../types'
import { clock } from '../words'

export function Approvals(): JSX.Element {
  const waiting = useResource(() => get<{ approvals: Gate[] }>('/api/approvals'), 'approvals', '*')
  return (
    <>
      <Title page="Approvals">Approvals</Title>
      <Loaded from={waiting}>
        {({ approvals }) =>
          approvals.length ? approvals.map((gate) => <GateCard key={`${gate.run_id} ${gate.step} ${gate.key}`} gate={gate} />) : (
            <Empty what="A step with a gate, or a writer in the permission mode ask, waits here until a person decides. Nothing waits now." action={<a class="button" href="/runs">See the runs</a>} command="stretto approve RUN STEP" />
          )}
      </Loaded>
    </>
  )
}

// The gate of one step, on the page of its run.
export function Decision({ run, step }: { run: string; step: string }): JSX.Element {
  const waiting = useResource(() => get<{ approvals: Gate[] }>('/api/approvals'), `${run} ${step}`, run)
  return <Loaded from={waiting}>{({ approvals }) => <>{approvals.filter((gate) => gate.run_id === run && gate.step === step).map((gate) => <GateCard gate={gate} />)}</>}</Loaded>
}

export function GateCard({ gate }: { gate: Gate }): JSX.Element {
  const action = useAction()
  const [reason, setReason] = useState('')
  const first = gate.parts[0]?.prompt ?? ''
  const [edited, setEdited] = useState<string | null>(null)
  const path = `/api/runs/${part(gate.run_id)}/steps/${gate.step.split('/').map(part).join('/')}`
  const decide = (what: string, body: Record<string, unknown>): void => {
    void action.run(async () => {
      await post(`${path}/${what}`, { reason, ...body })
      announce(`${gate.step}: ${what === 'reject' ? 'rejected' : 'approved'}.`)
    })
  }
  return (
    <section class="card asking" aria-label={`Approval of ${gate.step}`}>
      <p><strong><a href={`/runs/${part(gate.run_id)}?step=${part(gate.step)}`}>{gate.workflow} / {gate.step}</a></strong> <span class="quiet">asked <When at={gate.asked_at} /></span></p>
      {gate.about ? <p>{plain(gate.about)}</p> : null}
      {gate.deadline ? <p class="state warn" data-mark="!">until {clock(gate.deadline)}; then: {gate.then}</p> : null}
      {gate.parts.map((each, number) => (
        <div>
          <p class="small quiet">{[each.part, each.agent, each.model, each.tools?.length ? `tools ${each.tools.join(', ')}` : '', each.write_set?.length ? `writes ${each.write_set.join(', ')}` : ''].filter(Boolean).join(' · ')}</p>
          {number === 0 && edited !== null ? <Field label="Prompt to run instead">{(id) => <textarea id={id} class="code" value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />}</Field> : <pre tabIndex={0}>{plain(each.prompt ?? '')}</pre>}
        </div>
      ))}
      {gate.grounds.length ? <details><summary>What came before</summary>{gate.grounds.map((ground) => <div><h3>{ground.step}</h3><Value value={ground.output ?? ground.status} /></div>)}</details> : null}
      <Field label="Reason" note="shown in the report">{(id) => <input id={id} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
      <p class="bar">
        {edited === null ? <button class="main" disabled={action.isBusy} onClick={() => decide('approve', { key: gate.key })}>Approve</button> : <button class="main" disabled={action.isBusy || !edited.trim()} onClick={() => decide('edit', { key: gate.key, prompt: edited })}>Approve with this prompt</button>}
        {gate.parts.length === 1 ? <button onClick={() => setEdited(edited === null ? first : null)}>{edited === null ? 'Edit the prompt' : 'Keep the prompt as it was'}</button> : null}
        <button class="bad" disabled={action.isBusy} onClick={() => decide('reject', {})}>Reject</button>
      </p>
      {action.error ? <Decided error={action.error} /> : null}
    </section>
  )
}

// Somebody else was faster: that is no failure, and what stands is said.
function Decided({ error }: { error: ApiError }): JSX.Element {
  return error.kind === 'already_decided' ? <div class="card warning" role="status"><p><strong>Already decided.</strong> {error.message}</p></div> : <Failure error={error} />
}
