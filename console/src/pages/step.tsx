// One step: its error first, then what it was told, what it said and did, what it changed.
import type { JSX } from 'preact'
import { get, part } from '../api'
import { plain, Value } from '../markdown'
import { Diff, Loaded, State } from '../parts'
import { useResource } from '../resource'
import type { StepReport } from '../types'
import { duration, tokens } from '../words'
import { Decision } from './approvals'

interface StepDetail {
  run_id: string
  step: string
  report: StepReport
  prompt: string
  transcript: Record<string, unknown>[]
  diff: { patch?: string; text?: string } | null
}

export function StepCard({ run, step, status }: { run: string; step: string; status: string }): JSX.Element {
  const path = `/api/runs/${part(run)}/steps/${step.split('/').map(part).join('/')}`
  const detail = useResource(() => get<StepDetail>(path), `${run} ${step}`, run)
  return (
    <section class="card" aria-label={`Step ${step}`}>
      <h2>{step} <State status={status} /></h2>
      {status === 'awaiting approval' ? <Decision run={run} step={step} /> : null}
      <Loaded from={detail}>{(found) => <Parts detail={found} />}</Loaded>
    </section>
  )
}

function Parts({ detail }: { detail: StepDetail }): JSX.Element {
  const { report } = detail
  const calls = report.tool_calls
  return (
    <>
      {report.error ? <div class="card error"><p><strong>{plain(report.error)}</strong></p></div> : null}
      {report.warnings.length ? <div class="card warning"><ul>{report.warnings.map((warning) => <li>{plain(warning)}</li>)}</ul></div> : null}
      <p class="quiet small">
        {[`${report.attempts} attempts`, duration(report.duration_seconds), report.usage.model_calls ? tokens(report.usage) : '', calls.made ? `${calls.made} tool calls, ${calls.refused} refused, ${calls.failed} failed` : '', report.playbooks.length ? `playbooks: ${report.playbooks.join(', ')}` : ''].filter(Boolean).join(' · ')}
      </p>
      <h3>Output</h3>
      <Value value={report.output} />
      {detail.prompt ? <details><summary>Prompt, as it was sent</summary><pre tabIndex={0}>{plain(detail.prompt)}</pre></details> : null}
      {detail.transcript.length ? <details><summary>Transcript</summary>{detail.transcript.map((entry) => <Entry entry={entry} />)}</details> : null}
      {detail.diff ? <details open><summary>Changed files</summary><Diff text={detail.diff.patch ?? detail.diff.text ?? JSON.stringify(detail.diff, null, 2)} /></details> : null}
    </>
  )
}

function Entry({ entry }: { entry: Record<string, unknown> }): JSX.Element {
  const { kind, type, text, ...rest } = entry
  return (
    <div class="card">
      <p class="small quiet">{String(kind ?? type ?? 'entry')}</p>
      {typeof text === 'string' ? <pre tabIndex={0}>{plain(text)}</pre> : <pre tabIndex={0}>{plain(JSON.stringify(rest, null, 2))}</pre>}
    </div>
  )
}
