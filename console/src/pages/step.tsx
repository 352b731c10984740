// One step: its error first, then what it was told, what it said and did, what it changed.
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { plain, Raw, Value } from '../markdown'
import { announce, Diff, Failure, Facts, Loaded, State, Tallies, Until, useAction } from '../parts'
import { type Resource, useResource } from '../resource'
import { useSpoken, withSpoken } from '../spoken'
import type { Attempt, RunAnswer, StepDetail, StepPart, StepReport } from '../types'
import { count, dollars, duration, glance, moment, oneLine, shortened, toneOf, tokens } from '../words'
import { Decision } from './approvals'
import { follow } from './run_actions'
import { Transcript } from './transcript'

const OPEN = ['running', 'retrying', 'merging', 'waiting', 'awaiting approval']

// Loaded again whenever the step has news; what its model says meanwhile is added as it comes.
function useDetail(view: RunAnswer, step: string, piece?: string): Resource<StepDetail> {
  const path = `/api/runs/${part(view.run_id)}/steps/${step.split('/').map(part).join('/')}`
  const found = useResource(() => get<StepDetail>(piece === undefined ? path : `${path}?part=${part(piece)}`), `${view.run_id} ${step} ${piece ?? ''}`)
  const touches = view.touches?.[step] ?? 0
  const seen = useRef(touches)
  useEffect(() => {
    if (touches !== seen.current) found.changed()
    seen.current = touches
  }, [touches])
  const spoken = useSpoken(view.run_id, step, found.value)
  return { ...found, value: found.value && withSpoken(found.value, spoken, piece) }
}

export function StepCard({ view, step, isOnly }: { view: RunAnswer; step: string; isOnly?: boolean }): JSX.Element {
  const status = view.steps[step]?.status ?? ''
  const action = useAction()
  const detail = useDetail(view, step)
  return (
    <section class={`card step-card ${toneOf(status)}`} aria-label={`Step ${step}`}>
      <div class="bar between top">
        <h2><span class="mono">{step}</span> <State status={status} /></h2>
        <div class="bar">
          {view.ended_at && status === 'succeeded' && isOneDelegation(view, step) ? <Keep run={view.run_id} step={step} /> : null}
          {view.ended_at ? <button class="tight" disabled={action.isBusy} onClick={() => void action.run(() => follow(`/api/runs/${part(view.run_id)}`, 'retry', { from_step: step }))}>Retry from here</button> : null}
          {isOnly ? null : <a class="button tight" href={`/runs/${part(view.run_id)}?step=`}>Whole run</a>}
        </div>
      </div>
      {action.error ? <Failure error={action.error} /> : null}
      {status === 'awaiting approval' ? <Decision run={view.run_id} step={step} reload={detail.reload} /> : null}
      <Loaded from={detail}>{(found) => <Parts view={view} detail={found} reload={detail.reload} />}</Loaded>
    </section>
  )
}

function Parts({ view, detail, reload }: { view: RunAnswer; detail: StepDetail; reload: () => Promise<void> }): JSX.Element {
  const { report } = detail
  const isOpen = OPEN.includes(report.status)
  const hasParts = detail.parts.length > 1 || Boolean(detail.parts[0]?.part)
  return (
    <>
      {report.error ? <div class="card error"><p class="pre"><strong>{plain(report.error)}</strong></p></div> : null}
      {report.warnings.length ? <div class="card warning"><ul>{report.warnings.map((warning) => <li key={warning}>{plain(warning)}</li>)}</ul></div> : null}
      {isOpen && detail.standing.says && report.status !== 'awaiting approval' ? <p class="quiet">{capital(plain(detail.standing.says))}<Until at={detail.standing.at} />.</p> : null}
      <About view={view} detail={detail} />
      {isOpen ? <Live detail={detail} /> : null}
      {hasParts ? <PartList view={view} detail={detail} /> : null}
      {isOpen || saysOnlyError(report) ? null : <><h3>Output</h3><Value value={report.output} /></>}
      <Validation detail={detail} />
      {report.changes ? <Changes view={view} detail={detail} reload={reload} /> : null}
      {detail.prompt && !hasParts ? <details><summary>Prompt, as it was sent</summary><Raw text={detail.prompt} /></details> : null}
      {detail.attempts.length > 1 && !hasParts ? <Attempts attempts={detail.attempts} /> : null}
      {hasParts ? null : <Transcript entries={detail.transcript} />}
    </>
  )
}

// How the words of the report read to somebody who may merge the change.
const STANDINGS: Record<string, string> = {
  merged: 'merged into the workspace', applied: 'merged by a person', held: 'waits for a person', 'to apply': 'not merged yet', 'nothing to apply': 'nothing to merge',
  removals: 'not merged: it removes much', conflict: 'not merged: it conflicts with what is there', unfinished: 'not merged: its step did not succeed', refused: 'must not be merged', kept: 'kept beside the workspace, as the recipe says',
}

function Changes({ view, detail, reload }: { view: RunAnswer; detail: StepDetail; reload: () => Promise<void> }): JSX.Element {
  const action = useAction()
  const changes = detail.report.changes!
  const merge = (): void => void action.run(async () => {
    await post(`/api/runs/${part(view.run_id)}/apply`, { step: detail.step })
    announce(`The change of ${detail.step} is merged.`)
    await reload()
  })
  return (
    <>
      <div class="bar between"><h3>Changed files</h3>{changes.standing === 'to apply' && view.ended_at ? <button class="tight" disabled={action.isBusy} onClick={merge}>Merge into the workspace</button> : null}</div>
      <p class="small">{count(changes.files, 'file')}, <span class="state good" data-mark="+">{changes.insertions}</span> <span class="state bad" data-mark="−">{changes.deletions}</span> · {STANDINGS[changes.standing] ?? changes.standing}{changes.applied_by ? ` (${changes.applied_by})` : ''}</p>
      {changes.conflicts.length ? <p class="small">In conflict: <span class="mono">{plain(changes.conflicts.join(', '))}</span></p> : null}
      {action.error ? <Failure error={action.error} /> : null}
      {detail.diff?.patch ? <Diff text={plain(detail.diff.patch)} /> : <p class="quiet small">The change itself is not kept any more.</p>}
    </>
  )
}

// A step with parts, or with a command, has no one prompt that could be kept.
function isOneDelegation(view: RunAnswer, step: string): boolean {
  return view.plan.find((each) => each.id === step)?.type === 'sequential'
}

// What went well once can be a method for later steps.
function Keep({ run, step }: { run: string; step: string }): JSX.Element {
  const action = useAction()
  const [name, setName] = useState('')
  const keep = (): void => void action.run(async () => {
    const { playbook } = await post<{ playbook: { name: string } }>('/api/playbooks', { run_id: run, step })
    setName(playbook.name)
    announce(`Kept as the playbook ${playbook.name}.`)
  })
  if (name) return <a class="small" href={`/playbooks/${part(name)}`}>Kept as a playbook</a>
  return <>{action.error ? <span class="small state bad" role="alert" data-mark="✗">{action.error.message}</span> : null}<button class="tight" disabled={action.isBusy} title="Keep its prompt and tools as a method for later steps" onClick={keep}>Keep as playbook</button></>
}

// What a failed step hands on is its error in other words, which stands above already.
function saysOnlyError({ error, output }: StepReport): boolean {
  return error !== null && (output === null || (typeof output === 'string' && output.includes(error)))
}

function About({ view, detail }: { view: RunAnswer; detail: StepDetail }): JSX.Element {
  const { report } = detail
  const node = view.plan.find((each) => each.id === detail.step)
  const calls = report.tool_calls
  const isAsked = report.status === 'awaiting approval'
  const agents = [...new Set(detail.attempts.map((each) => each.agent))]
  const step = (id: string): JSX.Element => <a key={id} href={`/runs/${part(view.run_id)}?step=${part(id)}`}>{id}</a>
  return (
    <Facts
      of={[
        // What awaits a person says both with its prompt.
        ['Agent', isAsked ? '' : (agents.length ? agents : (node?.agents ?? [])).join(', ') || node?.type],
        ['Model', isAsked ? '' : shortened(detail.model, 60)],
        ['Attempts', report.attempts ? String(report.attempts) : ''],
        ['Took', duration(report.duration_seconds)],
        ['Tokens', report.usage.output_tokens ? tokens(report.usage).replace(/ tokens?$/, '') : ''],
        ['Cost', dollars(report.usage.usd)],
        ['Tool calls', calls.made ? [String(calls.made), calls.refused ? `${calls.refused} refused` : '', calls.failed ? `${calls.failed} failed` : ''].filter(Boolean).join(', ') : ''],
        ['Playbooks', report.playbooks.length ? report.playbooks.map((name) => <a key={name} href={`/playbooks/${part(name)}`}>{name} </a>) : ''],
        ['Needs', node?.depends_on.length ? <>{node.depends_on.slice(0, 8).map((id, number) => <>{number ? ', ' : ''}{step(id)}</>)}{node.depends_on.length > 8 ? ` and ${node.depends_on.length - 8} more` : ''}</> : ''],
      ]}
    />
  )
}

// What the model says, as it comes. A screen reader is told of the end alone.
function Live({ detail }: { detail: StepDetail }): JSX.Element | null {
  const last = detail.transcript.at(-1)
  const box = useRef<HTMLPreElement>(null)
  const isAtEnd = useRef(true)
  const text = last?.kind === 'words' ? last.text : ''
  useLayoutEffect(() => {
    // Who has scrolled up reads there, and is left there.
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [text])
  const look = ({ currentTarget: at }: { currentTarget: HTMLElement }): void => void (isAtEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 24)
  if (!text) return null
  return (
    <>
      <h3>Writing now</h3>
      <pre ref={box} class="live" tabIndex={0} aria-live="off" onScroll={look}>{plain(text)}</pre>
    </>
  )
}

function Validation({ detail }: { detail: StepDetail }): JSX.Element | null {
  const rejected = detail.transcript.filter((entry) => entry.kind === 'rejected')
  if (!rejected.length && detail.validation === null) return null
  return (
    <>
      <h3>Validation</h3>
      {rejected.length ? <ul>{rejected.map((entry, number) => <li key={number}><span class="state bad" data-mark="✗">{[entry.part, `attempt ${entry.attempt}`].filter(Boolean).join(', ')}</span> {plain(oneLine(entry.text))}</li>)}</ul> : null}
      {detail.validation === null ? null : <Value value={detail.validation} />}
    </>
  )
}

function Attempts({ attempts }: { attempts: Attempt[] }): JSX.Element {
  return (
    <details open={attempts.some((each) => each.failure)}>
      <summary>{count(attempts.length, 'attempt')}</summary>
      <div class="scroll">
        <table>
          <thead><tr><th class="num">No.</th><th>State</th><th>Agent</th><th>Model</th><th class="num">Took</th><th>Why</th></tr></thead>
          <tbody>
            {attempts.map((each) => (
              <tr key={`${each.part} ${each.number}`}>
                <td class="num">{each.number}</td><td class="nowrap"><State status={each.status} /></td><td>{each.agent}</td><td>{each.model}</td><td class="num nowrap">{took(each)}</td>
                <td class="small">{plain(each.error || (each.reused_from ? `from run ${each.reused_from}` : ''))}{each.provider_retries.length ? <div class="quiet">asked its model again: {plain(each.provider_retries.join('; '))}</div> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

function took(each: { started_at: string | null; ended_at: string | null }): string {
  const [start, end] = [moment(each.started_at), moment(each.ended_at)]
  return start && end ? duration((end.getTime() - start.getTime()) / 1000) : ''
}

const FIRST = ['failed', 'asking', 'retrying', 'running', 'queued']
const AT_ONCE = 50

// Branches, tries of a loop, elements of a map: the failed ones first, and each can be opened.
function PartList({ view, detail }: { view: RunAnswer; detail: StepDetail }): JSX.Element {
  const [status, setStatus] = useState('')
  const [text, setText] = useState('')
  const [most, setMost] = useState(AT_ONCE)
  const rank = (one: StepPart): number => (FIRST.indexOf(one.status) + FIRST.length + 1) % (FIRST.length + 1)
  const fits = (one: StepPart): boolean => (!status || one.status === status) && `${one.part} ${one.agent} ${one.says} ${one.error ?? ''}`.toLowerCase().includes(text.toLowerCase())
  const fitting = detail.parts.filter(fits).sort((a, b) => rank(a) - rank(b))
  return (
    <>
      <h3>{count(detail.parts.length, 'part')}</h3>
      <Tallies of={detail.parts.map((one) => one.status)} chosen={status} choose={setStatus} />
      {detail.parts.length > 10 ? <input class="wide" type="search" aria-label="Filter the parts" placeholder="filter by name, agent or text" value={text} onInput={(event) => setText(event.currentTarget.value)} /> : null}
      <ul class="tasks">{fitting.slice(0, most).map((one) => <Part key={one.part} view={view} step={detail.step} of={one} />)}</ul>
      {fitting.length > most ? <button onClick={() => setMost(most + 500)}>Show {fitting.length - most} more</button> : null}
    </>
  )
}

function Part({ view, step, of }: { view: RunAnswer; step: string; of: StepPart }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  return (
    <li class={`task ${toneOf(of.status)}`}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary><span class="bar between"><span class="mono">{of.part || 'the whole step'}</span><State status={of.status} /></span></summary>
        {isOpen ? <PartDetail view={view} step={step} piece={of.part} /> : null}
      </details>
      {isOpen ? null : <p class="small says">{plain(of.error === null ? glance(of.says, 160) : shortened(oneLine(of.error), 160))}</p>}
      <p class="small quiet">{[of.agent, took(of), of.usage.output_tokens ? tokens(of.usage) : '', of.attempts > 1 ? `${of.attempts} attempts` : ''].filter(Boolean).join(' · ')}</p>
    </li>
  )
}

// What a retry can do again alone: a branch or an element. A turn of a loop needs those before it.
const ALONE = /^(?!(try|check)\.\d+$|reduce$)./

function PartDetail({ view, step, piece }: { view: RunAnswer; step: string; piece: string }): JSX.Element {
  const detail = useDetail(view, step, piece)
  const action = useAction()
  const again = (): void => void action.run(() => follow(`/api/runs/${part(view.run_id)}`, 'retry', { from_step: step, part: piece }))
  return (
    <Loaded from={detail}>
      {(found) => (
        <>
          {view.ended_at && ALONE.test(piece) ? <p class="bar"><button class="tight" disabled={action.isBusy} aria-label={`Retry ${piece} alone`} onClick={again}>Retry this one</button></p> : null}
          {action.error ? <Failure error={action.error} /> : null}
          {found.part_output === null ? <Live detail={found} /> : <><h3>Output</h3><Value value={found.part_output} /></>}
          {found.prompt ? <details><summary>Prompt, as it was sent</summary><Raw text={found.prompt} /></details> : null}
          {found.attempts.length > 1 ? <Attempts attempts={found.attempts} /> : null}
          <Transcript entries={found.transcript} />
        </>
      )}
    </Loaded>
  )
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
