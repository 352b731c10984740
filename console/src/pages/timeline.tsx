// When each step ran, and which of them the end of the run waited for. In: the run. Out: a row for each step.
import type { JSX } from 'preact'
import { part } from '../api'
import { useNow } from '../parts'
import { type RunAnswer, type StepRow, stepsOf } from '../types'
import { duration, moment, toneOf } from '../words'

const ROUND = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400]
const TICKS = 6
const LAST_LABEL = 0.92 // of the axis: a label further right would run into the next column

export function Timeline({ view }: { view: RunAnswer }): JSX.Element {
  const isOver = view.ended_at !== null
  const now = useNow(1000, !isOver)
  const begun = stepsOf(view).filter((step) => step.started_at).sort((a, b) => a.started_at!.localeCompare(b.started_at!))
  const start = moment(view.started_at)!.getTime()
  const end = isOver ? moment(view.ended_at)!.getTime() : Math.max(now, start + 1)
  const critical = new Map(view.critical_path.map((each) => [each.step, each]))
  if (!begun.length) return <p class="quiet">No step has begun yet.</p>
  const seconds = Math.max(0.001, (end - start) / 1000)
  const every = ROUND.find((each) => seconds / each <= TICKS) ?? 86400
  const ticks = Array.from({ length: Math.floor(seconds / every) + 1 }, (_, number) => number * every)
  return (
    <>
      <Path view={view} />
      <div class="scroll">
        <table class="gantt">
          <thead>
            <tr>
              <th>Step</th>
              <th class="axis"><div>{ticks.filter((tick) => tick / seconds < LAST_LABEL).map((tick) => <span key={tick} style={{ left: `${(100 * tick) / seconds}%` }}>{tick ? duration(tick).replace('.0 s', ' s') : '0'}</span>)}</div></th>
              <th class="num">Took</th>
            </tr>
          </thead>
          <tbody>
            {begun.map((step) => <Lane key={step.id} run={view.run_id} step={step} start={start} end={end} isCritical={critical.has(step.id)} every={(100 * every) / seconds} />)}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Lane({ run, step, start, end, isCritical, every }: { run: string; step: StepRow; start: number; end: number; isCritical: boolean; every: number }): JSX.Element {
  const share = (at: string | null): number => (at ? Math.min(100, Math.max(0, (100 * (moment(at)!.getTime() - start)) / Math.max(1, end - start))) : 100)
  const [left, right] = [share(step.started_at), share(step.ended_at)]
  return (
    <tr>
      <td class="nowrap">{isCritical ? <span class="critical" aria-hidden="true">◆ </span> : null}<a href={`/runs/${part(run)}?step=${part(step.id)}`}>{step.id}</a></td>
      <td><div class="lane" style={{ backgroundSize: `${every}% 100%` }}><span class={`${toneOf(step.status)}${isCritical ? ' on-path' : ''}`} title={`${step.status}, ${duration(step.duration_seconds) || 'under way'}`} style={{ left: `${left}%`, width: `${Math.max(0.3, right - left)}%` }} /></div></td>
      <td class="num nowrap">{duration(step.duration_seconds) || step.status}{isCritical ? <span class="visually-hidden"> on the critical path</span> : null}</td>
    </tr>
  )
}

// The chain of steps that the end waited for, and what each waited for itself.
function Path({ view }: { view: RunAnswer }): JSX.Element | null {
  if (!view.critical_path.length) return null
  return (
    <p class="path"><span class="critical">◆ Critical path</span>{' '}
      {view.critical_path.map((each, number) => (
        <span key={each.step}>{number ? ' → ' : ''}{each.waited_seconds >= 0.1 && each.waited_for ? <span class="quiet">{duration(each.waited_seconds)} waiting for {each.waited_for} → </span> : null}<a href={`/runs/${part(view.run_id)}?step=${part(each.step)}`}>{each.step}</a> <span class="quiet">{duration(each.duration_seconds)}</span></span>
      ))}
    </p>
  )
}
