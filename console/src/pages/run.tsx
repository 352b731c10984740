// One run: where it is and why, its graph and steps, its timeline, its events, its report.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, getText, part, post } from '../api'
import { Graph } from '../graph'
import { Value } from '../markdown'
import { announce, Dialog, Failure, Field, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go, query, setQuery } from '../router'
import { type RunAnswer, type StepRow, stepsOf } from '../types'
import { duration, toneOf, tokens } from '../words'
import { Events } from './events'
import { StepCard } from './step'

const TABS = { '': 'Steps', timeline: 'Timeline', events: 'Events', report: 'Report' }
const ENDED = ['complete', 'partial', 'failed', 'cancelled', 'unreadable']

export function Run({ id }: { id: string }): JSX.Element {
  const run = useResource(() => get<RunAnswer>(`/api/runs/${part(id)}`), id, id)
  const status = run.value?.status
  const before = useRef<string>()
  useEffect(() => {
    if (status && before.current && before.current !== status) announce(`The run is ${status}.`)
    before.current = status
  }, [status])
  return <Loaded from={run}>{(view) => <Whole view={view} />}</Loaded>
}

function Whole({ view }: { view: RunAnswer }): JSX.Element {
  const tab = query.value.get('tab') ?? ''
  const base = `/runs/${part(view.run_id)}`
  return (
    <>
      <Header view={view} />
      <nav class="tabs" aria-label="Parts of this run">
        {Object.entries(TABS).map(([key, name]) => (
          <a href={key ? `${base}?tab=${key}` : base} aria-current={tab === key ? 'page' : undefined}>{name}</a>
        ))}
      </nav>
      {tab === '' ? <Steps view={view} /> : null}
      {tab === 'timeline' ? <Timeline view={view} /> : null}
      {tab === 'events' ? <Events id={view.run_id} /> : null}
      {tab === 'report' ? <Report id={view.run_id} /> : null}
    </>
  )
}

function Header({ view }: { view: RunAnswer }): JSX.Element {
  const running = !ENDED.includes(view.status)
  return (
    <>
      <p class="quiet small"><a href="/runs">Runs</a> / <span class="mono">{view.run_id}</span></p>
      <Title page={`${view.status} · ${view.workflow}`}><a href={`/workflows/${part(view.workflow)}`}>{view.workflow}</a> <State status={view.status} /></Title>
      <p aria-live="off">{view.summary}</p>
      <p class="bar quiet small">
        <span>started <When at={view.started_at} /></span>
        <span>· {running ? <Elapsed since={view.started_at} /> : duration(view.duration_seconds)}</span>
        <span>· {tokens(view.usage)}</span>
        {view.usage.usd ? <span>· ${view.usage.usd.toFixed(4)}</span> : null}
        {view.trigger ? <span>· started by {view.trigger}</span> : null}
        {view.parent ? <span>· from <a href={`/runs/${part(view.parent)}`}>{view.parent}</a></span> : null}
      </p>
      <Actions view={view} isRunning={running} />
      {view.warnings.length ? (
        <details class="card warning" open>
          <summary>{view.warnings.length === 1 ? 'One warning' : `${view.warnings.length} warnings`}</summary>
          <ul>{view.warnings.map((warning) => <li>{warning}</li>)}</ul>
        </details>
      ) : null}
    </>
  )
}

function Elapsed({ since }: { since: string }): JSX.Element {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return <span>{duration((now - new Date(since).getTime()) / 1000)}</span>
}

function Actions({ view, isRunning }: { view: RunAnswer; isRunning: boolean }): JSX.Element {
  const action = useAction()
  const [isForking, setForking] = useState(false)
  const step = query.value.get('step')
  const path = `/api/runs/${part(view.run_id)}`
  const follow = async (where: string, body: unknown): Promise<void> => {
    const { run_id } = await post<{ run_id: string }>(`${path}/${where}`, body)
    go(`/runs/${part(run_id)}`)
  }
  return (
    <div>
      <div class="bar">
        {isRunning ? <button class="bad" disabled={action.isBusy} onClick={() => void action.run(() => post(`${path}/cancel`))}>Cancel</button> : null}
        {view.status === 'interrupted' || view.status === 'overdue' ? <button class="main" disabled={action.isBusy} onClick={() => void action.run(() => post(`${path}/resume`))}>Resume</button> : null}
        {!isRunning ? (
          <>
            <button disabled={action.isBusy} onClick={() => void action.run(() => follow('retry', {}))}>Retry what did not succeed</button>
            {step ? <button disabled={action.isBusy} onClick={() => void action.run(() => follow('retry', { from_step: step }))}>Retry from {step}</button> : null}
          </>
        ) : null}
        <button disabled={action.isBusy} onClick={() => setForking(true)}>Fork …</button>
      </div>
      {action.error ? <Failure error={action.error} /> : null}
      {isForking ? <Fork view={view} first={step ?? view.plan[0]?.id ?? ''} follow={follow} close={() => setForking(false)} /> : null}
    </div>
  )
}

function Fork({ view, first, follow, close }: { view: RunAnswer; first: string; follow: (where: string, body: unknown) => Promise<void>; close: () => void }): JSX.Element {
  const action = useAction()
  const [from, setFrom] = useState(first)
  const [inputs, setInputs] = useState(JSON.stringify(view.inputs, null, 2))
  const submit = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      await follow('fork', { from_step: from, inputs: JSON.parse(inputs) as unknown })
      close()
    })
  }
  return (
    <Dialog title="Fork this run" close={close}>
      <p>A new run that shares everything before a step, with other inputs if you like.</p>
      <form onSubmit={submit}>
        <Field label="From step">{(id) => <select id={id} value={from} onChange={(event) => setFrom(event.currentTarget.value)}>{view.plan.map((step) => <option>{step.id}</option>)}</select>}</Field>
        <Field label="Inputs" note="as JSON">{(id) => <textarea id={id} class="code" value={inputs} onInput={(event) => setInputs(event.currentTarget.value)} />}</Field>
        {action.error ? <Failure error={action.error} /> : null}
        <p class="bar"><button class="main" disabled={action.isBusy}>Start the fork</button><button type="button" onClick={close}>Leave it</button></p>
      </form>
    </Dialog>
  )
}

function Steps({ view }: { view: RunAnswer }): JSX.Element {
  const steps = stepsOf(view)
  const chosen = query.value.get('step') ?? steps.find((step) => ['failed', 'awaiting approval'].includes(step.status))?.id ?? null
  const base = `/runs/${part(view.run_id)}`
  return (
    <>
      <Counts steps={steps} />
      <Graph steps={steps} chosen={chosen} href={(id) => `${base}?step=${part(id)}`} />
      <StepList run={view.run_id} steps={steps} chosen={chosen} />
      {chosen ? <StepCard key={chosen} run={view.run_id} step={chosen} status={view.steps[chosen]?.status ?? ''} /> : null}
      <h2>Answer</h2>
      <Value value={view.output} />
    </>
  )
}

function Counts({ steps }: { steps: StepRow[] }): JSX.Element {
  const many = new Map<string, number>()
  for (const step of steps) many.set(step.status, (many.get(step.status) ?? 0) + 1)
  const entries = [...many.entries()]
  return (
    <>
      <div class="counts" aria-hidden="true">{entries.map(([status, n]) => <span class={toneOf(status)} style={{ width: `${(100 * n) / steps.length}%` }} />)}</div>
      <p class="small quiet">{entries.map(([status, n]) => `${n} ${status}`).join(' · ')}</p>
    </>
  )
}

const FIRST = ['failed', 'awaiting approval', 'overdue', 'running', 'retrying', 'merging']

function StepList({ run, steps, chosen }: { run: string; steps: StepRow[]; chosen: string | null }): JSX.Element {
  const [text, setText] = useState('')
  const fitting = steps.filter((step) => `${step.id} ${step.agent} ${step.status}`.toLowerCase().includes(text.toLowerCase()))
  const isLong = steps.length > 20
  const shown = isLong ? [...fitting].sort((a, b) => rank(a) - rank(b)) : fitting
  const [most, setMost] = useState(60)
  return (
    <>
      <h2>Steps</h2>
      {isLong ? <input aria-label="Filter the steps" placeholder="filter by name, agent or state" value={text} onInput={(event) => setText(event.currentTarget.value)} /> : null}
      <div class="scroll">
        <table>
          <thead><tr><th>Step</th><th>State</th><th>Agent</th><th class="num">Attempts</th><th class="num">Took</th><th class="num">Tokens</th><th>Why</th></tr></thead>
          <tbody>
            {shown.slice(0, most).map((step) => (
              <tr key={step.id} aria-current={chosen === step.id ? 'true' : undefined}>
                <td><a href={`/runs/${part(run)}?step=${part(step.id)}`}>{step.id}</a></td>
                <td><State status={step.status} /></td>
                <td>{step.agent || step.kind}</td>
                <td class="num">{step.attempts || ''}</td>
                <td class="num">{duration(step.duration_seconds)}</td>
                <td class="num">{step.usage.model_calls ? tokens(step.usage) : ''}</td>
                <td class="small">{step.error ?? step.warnings[0] ?? ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length > most ? <button onClick={() => setMost(most + 500)}>Show {shown.length - most} more</button> : null}
    </>
  )
}

function rank(step: StepRow): number {
  const place = FIRST.indexOf(step.status)
  return place < 0 ? FIRST.length : place
}

function Timeline({ view }: { view: RunAnswer }): JSX.Element {
  const steps = stepsOf(view)
  const start = new Date(view.started_at).getTime()
  const end = view.ended_at ? new Date(view.ended_at).getTime() : Math.max(start + 1, ...steps.flatMap((s) => [s.started_at, s.ended_at]).map((t) => (t ? new Date(t).getTime() : 0)))
  const critical = new Set(view.critical_path.map((step) => step.step))
  const share = (at: string | null): number => (at ? (100 * (new Date(at).getTime() - start)) / Math.max(1, end - start) : 100)
  return (
    <>
      <p class="quiet small">A bar for each step; the outlined ones determined when the run ended.</p>
      <div class="scroll">
        <table>
          <thead><tr><th>Step</th><th style="width:65%">From {duration(0)} to {duration((end - start) / 1000)}</th><th class="num">Took</th></tr></thead>
          <tbody>
            {steps.filter((step) => step.started_at).map((step) => (
              <tr>
                <td><a href={`/runs/${part(view.run_id)}?step=${part(step.id)}`}>{step.id}</a></td>
                <td><div class={`lane ${critical.has(step.id) ? 'critical' : ''}`}><span class={toneOf(step.status)} style={{ left: `${share(step.started_at)}%`, width: `${Math.max(0.3, share(step.ended_at) - share(step.started_at))}%` }} /></div></td>
                <td class="num">{duration(step.duration_seconds)}{critical.has(step.id) ? <span class="visually-hidden"> on the critical path</span> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Report({ id }: { id: string }): JSX.Element {
  const form = query.value.get('form') ?? 'md'
  const path = `/api/runs/${part(id)}/report?format=`
  const report = useResource(() => getText(path + form), `${id} ${form}`, id)
  return (
    <>
      <div class="bar">
        <button aria-pressed={form === 'md'} onClick={() => setQuery('form', 'md')}>Markdown</button>
        <button aria-pressed={form === 'json'} onClick={() => setQuery('form', 'json')}>JSON</button>
        {['md', 'json', 'html'].map((kind) => <a class="button" href={path + kind} download={`${id}.${kind}`}>Download {kind}</a>)}
      </div>
      <Loaded from={report}>{(text) => (form === 'md' ? <Value value={text} /> : <pre tabIndex={0}>{text}</pre>)}</Loaded>
    </>
  )
}
