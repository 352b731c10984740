// The steps of a run as a list that says what the graph says, and the tasks of a batch as cards.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { part } from '../api'
import { plain } from '../markdown'
import { Failure, State, Tallies, Until, useAction } from '../parts'
import type { RunAnswer, StepRow } from '../types'
import { count, duration, glance, oneLine, shortened, toneOf, tokens } from '../words'
import { follow } from './run_actions'

const FIRST = ['failed', 'awaiting approval', 'overdue', 'running', 'retrying', 'merging', 'interrupted']
const AT_ONCE = 60
const LONGEST = 160

function rank(status: string): number {
  const place = FIRST.indexOf(status)
  return place < 0 ? FIRST.length : place
}

interface Sift {
  shown: StepRow[]
  left: number
  controls: JSX.Element
  more: JSX.Element | null
}

// Failed first, found by name, agent or state, a few at a time.
function useSift(steps: StepRow[], nameOf: (step: StepRow) => string, isLong: boolean): Sift {
  const [text, setText] = useState('')
  const [status, setStatus] = useState('')
  const [most, setMost] = useState(AT_ONCE)
  const fits = (step: StepRow): boolean => (!status || step.status === status) && `${step.id} ${nameOf(step)} ${step.agent} ${step.status}`.toLowerCase().includes(text.toLowerCase())
  const fitting = steps.filter(fits)
  const sorted = isLong ? [...fitting].sort((a, b) => rank(a.status) - rank(b.status)) : fitting
  const left = sorted.length - most
  return {
    shown: sorted.slice(0, most),
    left,
    controls: (
      <>
        <Tallies of={steps.map((step) => step.status)} chosen={status} choose={setStatus} />
        {isLong ? <input class="wide" type="search" aria-label="Filter the steps" placeholder="filter by name, agent or state" value={text} onInput={(event) => setText(event.currentTarget.value)} /> : null}
      </>
    ),
    more: left > 0 ? <p><button onClick={() => setMost(most + 500)}>Show {left.toLocaleString('en')} more</button></p> : null,
  }
}

export function StepList({ run, steps, chosen }: { run: string; steps: StepRow[]; chosen: string | null }): JSX.Element {
  const sift = useSift(steps, () => '', steps.length > 20)
  return (
    <>
      {sift.controls}
      <div class="scroll">
        <table class="steps">
          <thead><tr><th>Step</th><th>State</th><th class="agent">Agent</th><th class="num">Took</th><th class="num">Tokens</th></tr></thead>
          {sift.shown.map((step) => <Row key={step.id} run={run} step={step} isChosen={step.id === chosen} />)}
        </table>
      </div>
      {sift.more}
    </>
  )
}

// A step has a group of rows: what it is, and below that, as wide as the table, why it is so.
function Row({ run, step, isChosen }: { run: string; step: StepRow; isChosen: boolean }): JSX.Element {
  const spent = step.usage.input_tokens + step.usage.output_tokens
  const notes = [step.attempts > 1 ? `${step.attempts} attempts` : '', step.warnings.length ? count(step.warnings.length, 'warning') : ''].filter(Boolean).join(', ')
  return (
    <tbody aria-current={isChosen ? 'true' : undefined}>
      <tr>
        <td><a href={`/runs/${part(run)}?step=${part(step.id)}`}>{step.id}</a></td>
        <td class="nowrap"><State status={step.status} /></td>
        <td class="agent quiet" title={step.agent}>{step.agent || step.kind}</td>
        <td class="num nowrap">{duration(step.duration_seconds)}</td>
        <td class="num">{spent ? spent.toLocaleString('en') : ''}</td>
      </tr>
      {step.why || notes ? <tr class="why"><td colSpan={5} class="small quiet">{plain(shortened(oneLine(step.why), LONGEST))}<Until at={step.whyAt} />{step.why && notes ? ' · ' : ''}{notes}</td></tr> : null}
    </tbody>
  )
}

// Steps that do not depend on each other, such as the tasks of a batch: a graph would say nothing.
export function TaskCards({ view, steps, chosen }: { view: RunAnswer; steps: StepRow[]; chosen: string | null }): JSX.Element {
  const titles = titlesOf(view)
  const titleOf = (step: StepRow): string => titles.get(step.id) ?? step.id
  const sift = useSift(steps, titleOf, true)
  return (
    <>
      {sift.controls}
      <ul class="tasks">
        {sift.shown.map((step) => <Task key={step.id} view={view} step={step} title={titleOf(step)} isChosen={step.id === chosen} />)}
      </ul>
      {sift.more}
    </>
  )
}

function titlesOf(view: RunAnswer): Map<string, string> {
  const tasks = view.workflow === 'batch' && Array.isArray(view.inputs.tasks) ? (view.inputs.tasks as { title?: string }[]) : []
  return new Map(view.plan.flatMap((step, number) => (tasks[number]?.title ? [[step.id, tasks[number]!.title!]] : [])))
}

function Task({ view, step, title, isChosen }: { view: RunAnswer; step: StepRow; title: string; isChosen: boolean }): JSX.Element {
  const action = useAction()
  const isOver = view.ended_at !== null
  const output = typeof step.output === 'string' ? step.output : step.output === null ? '' : JSON.stringify(step.output)
  const says = step.why ? shortened(oneLine(step.why), LONGEST) : glance(output, LONGEST) // what is no Markdown keeps its marks
  return (
    <li class={`task ${toneOf(step.status)}`} aria-current={isChosen ? 'true' : undefined}>
      <div class="bar between">
        <a href={`/runs/${part(view.run_id)}?step=${part(step.id)}`}>{plain(title)}</a>
        <State status={step.status} />
      </div>
      {says ? <p class="small says">{plain(says)}<Until at={step.whyAt} /></p> : null}
      <div class="bar between small quiet">
        <span>{[step.agent, duration(step.duration_seconds), step.usage.output_tokens ? tokens(step.usage) : '', step.attempts > 1 ? `${step.attempts} attempts` : '', step.warnings.length ? count(step.warnings.length, 'warning') : ''].filter(Boolean).join(' · ')}</span>
        {isOver && step.status !== 'succeeded' ? <button class="tight" disabled={action.isBusy} aria-label={`Retry ${title}`} onClick={() => void action.run(() => follow(`/api/runs/${part(view.run_id)}`, 'retry', { from_step: step.id }))}>Retry</button> : null}
      </div>
      {action.error ? <Failure error={action.error} /> : null}
    </li>
  )
}
