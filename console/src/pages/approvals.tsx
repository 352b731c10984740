// What waits for a person: what would run and on what grounds; approve, edit and approve, reject with a reason.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, get, part, post } from '../api'
import { plain, Raw, Value } from '../markdown'
import { announce, Empty, Facts, Failure, Field, Loaded, Title, Told, Until, useAction, When } from '../parts'
import { useResource } from '../resource'
import type { Gate, GatePart } from '../types'
import { clock, count, shortened, shortId } from '../words'

// Each stays as it was when it came: an answer to one must not move what is typed into the others.
export function Approvals(): JSX.Element {
  const waiting = useResource(() => get<{ approvals: Gate[] }>('/api/approvals'), 'approvals', '*')
  const typed = useRef(new Map<string, Gate>()) // where somebody has typed: it is kept when another one decides
  const [, forget] = useState(0)
  return (
    <>
      <Title page="Approvals">Approvals</Title>
      <Loaded from={waiting}>
        {({ approvals }) => {
          const open = new Set(approvals.map(keyOf))
          const gone = [...typed.current.values()].filter((gate) => !open.has(keyOf(gate)))
          const shown = [...approvals, ...gone].sort((a, b) => (a.asked_at ?? '').localeCompare(b.asked_at ?? '')) // each stays where it is
          const close = (key: string): void => (typed.current.delete(key), forget((times) => times + 1))
          const note = (gate: Gate, isTyped: boolean): void => void (isTyped ? typed.current.set(keyOf(gate), gate) : typed.current.delete(keyOf(gate)))
          return shown.length ? (
            <>
              <p class="quiet">{count(approvals.length, 'decision')} to make, the one that waits longest first. Nothing is done at a step before you decide.</p>
              {shown.map((gate) => <GateCard key={keyOf(gate)} gate={gate} isAlone typed={(isTyped) => note(gate, isTyped)} gone={open.has(keyOf(gate)) ? undefined : () => close(keyOf(gate))} />)}
            </>
          ) : (
            <Empty what="A step with a gate, or a writer in the permission mode ask, waits here until a person decides. Nothing waits now." action={<a class="button" href="/runs">See the runs</a>} command="stretto approve RUN STEP" />
          )
        }}
      </Loaded>
    </>
  )
}

function keyOf(gate: Gate): string {
  return `${gate.run_id} ${gate.step} ${gate.key}`
}

// The gate of one step, on the page of its run.
export function Decision({ run, step, reload }: { run: string; step: string; reload: () => Promise<void> }): JSX.Element {
  const waiting = useResource(() => get<{ approvals: Gate[] }>(`/api/approvals?run=${part(run)}`), `${run} ${step}`, run)
  return <Loaded from={waiting}>{({ approvals }) => <>{approvals.filter((gate) => gate.step === step).map((gate) => <GateCard key={keyOf(gate)} gate={gate} done={reload} />)}</>}</Loaded>
}

const ABOUT: Record<string, string> = {
  start: 'This would run:',
  again: 'It was interrupted. This would run again:',
  merge: 'Its work is done, and its change waits to be merged:',
}

// `isAlone`: not within the card of its step, which says where it belongs.
// `typed`: told whether anything is typed; `gone`: it was decided elsewhere meanwhile, and is forgotten by this.
export function GateCard({ gate, isAlone, done, typed, gone }: { gate: Gate; isAlone?: boolean; done?: () => Promise<void>; typed?: (isTyped: boolean) => void; gone?: (() => void) | undefined }): JSX.Element {
  const action = useAction()
  const [reason, setReason] = useState('')
  const first = gate.parts[0]?.prompt ?? ''
  const [edited, setEdited] = useState<string | null>(null)
  useEffect(() => typed?.(reason !== '' || (edited !== null && edited !== first)), [reason, edited])
  const path = `/api/runs/${part(gate.run_id)}/steps/${gate.step.split('/').map(part).join('/')}`
  const decide = (what: string, body: Record<string, unknown>): void => {
    void action.run(async () => {
      typed?.(false) // its own decision is nobody else's
      await post(`${path}/${what}`, { reason, ...body }).catch((error: unknown) => (typed?.(true), Promise.reject(error)))
      announce(`${gate.step}: ${what === 'reject' ? 'rejected' : 'approved'}.`)
      await done?.()
    })
  }
  return (
    <section class={isAlone ? 'card asking' : 'gate'} aria-label={isAlone ? `Approval of ${gate.step} in run ${gate.run_id}` : `Approval of ${gate.step}`}>
      {isAlone ? <h2><a href={`/runs/${part(gate.run_id)}?step=${part(gate.step)}`}>{gate.workflow} / {gate.step}</a> <span class="quiet small">run <span class="mono" title={gate.run_id}>{shortId(gate.run_id)}</span>, asked <When at={gate.asked_at} />{gate.owner ? `, started by ${gate.owner}` : ''}</span></h2> : null}
      {gate.deadline ? <p class="small"><span class="state warn" data-mark="!">Decide by {clock(gate.deadline)}<Until at={gate.deadline} /></span>. Otherwise {gate.then}.</p> : null}
      <div class={isAlone && gate.grounds.length ? 'two wide-first' : ''}>
      <div>
      <p>{gate.question ? plain(gate.question) : (ABOUT[gate.about] ?? plain(gate.about))}</p>
      {gate.parts.map((each, number) => <Would key={number} part={each} sets={number === 0 ? setsOf(gate) : []} edited={number === 0 ? edited : null} edit={setEdited} />)}
      {gate.uses ? <Used of={gate.uses} /> : null}
      {gate.later.length ? <Later parts={gate.later} /> : null}
      {gate.about === 'merge' ? <p><a href={`/runs/${part(gate.run_id)}?step=${part(gate.step)}`}>See what it changed</a></p> : null}
      {isAlone ? null : <Grounds of={gate} />}
      <Field label="Reason" note="optional, shown in the report">{(id) => <input id={id} class="wide" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
      {gone ? <div class="card warning"><Told says={`${gate.step} was decided elsewhere.`} /><p><strong>It was decided elsewhere</strong>, or its run has gone on without it. What you typed is still here. <a href={`/runs/${part(gate.run_id)}?step=${part(gate.step)}`}>See its run</a></p><p class="bar"><button type="button" onClick={gone}>Close this</button></p></div> : null}
      {gone ? null : <p class="bar">
        {edited === null ? <button class="main" disabled={action.isBusy} onClick={() => decide('approve', { key: gate.key })}>Approve</button> : <button class="main" disabled={action.isBusy || !edited.trim()} onClick={() => decide('edit', { key: gate.key, prompt: edited })}>Approve with this prompt</button>}
        {gate.parts.length === 1 && first ? <button onClick={() => setEdited(edited === null ? first : null)}>{edited === null ? 'Edit the prompt' : 'Keep the prompt as it was'}</button> : null}
        <button class="bad" disabled={action.isBusy} onClick={() => decide('reject', { key: gate.key })}>Reject</button>
      </p>}
      {action.error ? <Decided error={action.error} /> : null}
      </div>
      {isAlone && gate.grounds.length ? <Grounds of={gate} isOpen /> : null}
      </div>
    </section>
  )
}

function Grounds({ of: gate, isOpen }: { of: Gate; isOpen?: boolean }): JSX.Element | null {
  if (!gate.grounds.length) return null
  const all = <div class="grounds" tabIndex={0} role="group" aria-label="What came before">{gate.grounds.map((ground) => <div class="said" key={ground.step}><h3>{ground.step}</h3><Value value={ground.output ?? ground.status} /></div>)}</div>
  return isOpen ? <div><p class="quiet">What came before</p>{all}</div> : <details><summary>What came before</summary>{all}</details>
}

// What is approved with the step, though it starts only after something else of it.
function Later({ parts }: { parts: Gate['later'] }): JSX.Element {
  return (
    <div class="grounds" role="group" aria-label="What may follow" tabIndex={0}>
      {parts.map((each, number) => (
        <div key={number}>
          <h3>{each.when === 'later' ? 'Later in this step' : plain(each.when)}</h3>
          <Would part={each} sets={[]} edited={null} edit={() => undefined} />
        </div>
      ))}
    </div>
  )
}

function Used({ of: used }: { of: NonNullable<Gate['uses']> }): JSX.Element {
  const inputs = typeof used.inputs === 'string' ? { 'do not fit': used.inputs } : used.inputs
  return (
    <div>
      <Facts of={[['Recipe', plain(`${used.name} (${used.file || 'given as text'}, digest ${used.digest.slice(0, 12)})`)], ['Its steps', used.steps.join(', ')]]} />
      {Object.entries(inputs).map(([name, value]) => <div class="said" key={name}><h3>Input {plain(name)}</h3><Value value={value} /></div>)}
    </div>
  )
}

// Which files it may write, for a step that writes at all.
function setsOf(gate: Gate): [string, string][] {
  if (gate.posture !== 'writer') return []
  return [['Writes', gate.write_set.join(', ') || 'any file'], ['Workspace', gate.workspace]]
}

function Would({ part: each, sets, edited, edit }: { part: GatePart; sets: [string, string][]; edited: string | null; edit: (text: string) => void }): JSX.Element {
  return (
    <div>
      <Facts of={[['Part', each.part], ['Agent', each.agent], ['Model', each.models?.map((model) => shortened(model, 60)).join(', then ')], ['Tools', each.tools?.join(', ')], ...sets]} />
      {edited !== null ? <Field label="Prompt to run instead">{(id) => <textarea id={id} class="code" value={edited} onInput={(event) => edit(event.currentTarget.value)} />}</Field> : each.prompt ? <Raw text={each.prompt} /> : null}
      {each.instructions ? <details class="small"><summary>Instructions of the agent</summary><Raw text={each.instructions} /></details> : null}
    </div>
  )
}

// Somebody else was faster: that is no failure, and what stands is said.
function Decided({ error }: { error: ApiError }): JSX.Element {
  return error.kind === 'already_decided' ? <div class="card warning"><Told says={`Already decided. ${error.message}`} /><p><strong>Already decided.</strong> {error.message}</p></div> : <Failure error={error} />
}
