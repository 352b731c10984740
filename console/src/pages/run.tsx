// One run: where it is and why, its graph and steps, its timeline, its events, its report.
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { getText, part } from '../api'
import { Graph } from '../graph'
import { changes } from '../live'
import { plain, Raw, Value } from '../markdown'
import { announce, Facts, Loaded, StartedBy, State, Title, Until, useNow, When } from '../parts'
import { useResource } from '../resource'
import { query, setQuery } from '../router'
import { useRun } from '../run_state'
import { type RunAnswer, stepsOf } from '../types'
import { clock, count, dollars, duration, now, oneLine, shortened, shortId, toneOf } from '../words'
import { Events } from './events'
import { RunActions } from './run_actions'
import { StepCard } from './step'
import { StepList, TaskCards } from './step_list'
import { Timeline } from './timeline'

const TABS = { '': 'Steps', timeline: 'Timeline', events: 'Events', report: 'Report' }
const ENDED = ['complete', 'partial', 'failed', 'cancelled', 'unreadable']
const FIRST = ['failed', 'awaiting approval', 'overdue']
const BUSY = ['running', 'retrying', 'merging']
const SETTLED_MS = 1500

export function Run({ id }: { id: string }): JSX.Element {
  const run = useRun(id)
  const status = run.value?.status
  const before = useRef<string>()
  useNow(1000, status !== undefined && !ENDED.includes(status)) // which step is shown may change with the time alone
  const held = useRef<string | null>(null)
  const chosen = run.value ? chosenOf(run.value, held.current) : null
  held.current = chosen
  useFollowed(run.value, chosen)
  useEffect(() => {
    if (status && before.current && before.current !== status) announce(`The run is ${status}.`)
    before.current = status
  }, [status])
  return <Loaded from={run} title="Run">{(view) => <Whole view={view} chosen={chosen} reload={run.reload} />}</Loaded>
}

// While it goes on: changes come at once, and with them the words of the step that is shown.
function useFollowed(view: RunAnswer | undefined, chosen: string | null): void {
  const isGoingOn = view !== undefined && !ENDED.includes(view.status)
  const step = query.value.get('tab') ? '' : (chosen ?? '')
  useEffect(() => (isGoingOn ? changes.follow(view.run_id, step, view.cursor) : undefined), [view?.run_id, step, isGoingOn])
}

function Whole({ view, chosen, reload }: { view: RunAnswer; chosen: string | null; reload: () => Promise<void> }): JSX.Element {
  const asked = query.value.get('tab') ?? ''
  const tab = Object.hasOwn(TABS, asked) ? asked : ''
  const base = `/runs/${part(view.run_id)}`
  return (
    <>
      <Header view={view} chosen={chosen} reload={reload} />
      <nav class="tabs" aria-label="Parts of this run">
        {Object.entries(TABS).map(([key, name]) => (
          <a key={key} href={key ? `${base}?tab=${key}` : base} aria-current={tab === key ? 'page' : undefined}>{name}</a>
        ))}
      </nav>
      {tab === '' ? <Steps view={view} chosen={chosen} /> : null}
      {tab === 'timeline' ? <Timeline view={view} /> : null}
      {tab === 'events' ? <Events view={view} /> : null}
      {tab === 'report' ? <Report id={view.run_id} /> : null}
    </>
  )
}

function Header({ view, chosen, reload }: { view: RunAnswer; chosen: string | null; reload: () => Promise<void> }): JSX.Element {
  const isRunning = !ENDED.includes(view.status)
  return (
    <>
      <p class="crumbs"><a href="/runs">Runs</a> / <span class="mono">{view.run_id}</span></p>
      <div class="bar between top">
        <Title page={`${view.status} · ${view.workflow}`}><a href={`/workflows/${part(view.workflow)}`}>{view.workflow}</a> <State status={view.status} of="run" /></Title>
        <RunActions view={view} chosen={chosen} isRunning={isRunning} reload={reload} />
      </div>
      <Standing view={view} chosen={chosen} />
      <Facts
        label="About this run"
        of={[
          ['Started', <time title={clock(view.started_at)}><When at={view.started_at} /></time>],
          [isRunning ? 'Running for' : 'Took', isRunning ? <Elapsed since={view.started_at} /> : duration(view.duration_seconds)],
          ['Tokens', (view.usage.input_tokens + view.usage.output_tokens).toLocaleString('en')],
          ['Cost', dollars(view.usage.usd)],
          ['Model calls', view.usage.model_calls ? view.usage.model_calls.toLocaleString('en') : ''],
          ['Retries', view.retries ? String(view.retries) : ''],
          ['Started by', <StartedBy trigger={view.trigger} owner={view.owner} />],
          ['Made from', view.parent ? <a class="mono" title={view.parent} href={`/runs/${part(view.parent)}`}>{shortId(view.parent)}</a> : ''],
          ['Recipe', view.recipe.now === 'edited' ? <a class="state warn" data-mark="✎" href={`/workflows/${part(view.workflow)}?tab=versions`} title="This run goes by the recipe as it was when the run began">edited since</a> : ''],
        ]}
      />
      {view.warnings.length ? (
        <details class="card warning slim">
          <summary>{count(view.warnings.length, 'warning')}</summary>
          <ul>{view.warnings.map((warning) => <li key={warning}>{plain(warning)}</li>)}</ul>
        </details>
      ) : null}
    </>
  )
}

// One sentence: why the run is where it is; once it has ended, how it came out.
function Standing({ view, chosen }: { view: RunAnswer; chosen: string | null }): JSX.Element {
  const asked = Object.keys(view.steps).find((id) => view.steps[id]!.status === 'awaiting approval')
  const isChosen = chosen === asked && !query.value.get('tab')
  return (
    <p class={`standing ${toneOf(asked || view.status === 'waiting' ? 'awaiting approval' : view.status)}`} aria-live="off">
      {plain(oneLine(view.standing.says || view.summary))}
      {view.standing.at ? <Until at={view.standing.at} /> : null}
      {view.standing.says ? '.' : ''}
      {asked && !isChosen ? <> <a href={`/runs/${part(view.run_id)}?step=${part(asked)}`}>Decide</a></> : null}
    </p>
  )
}

function Elapsed({ since }: { since: string }): JSX.Element {
  const seenAt = useNow()
  return <>{duration(Math.max(0, Math.round((seenAt - new Date(since).getTime()) / 1000)))}</>
}

function Steps({ view, chosen }: { view: RunAnswer; chosen: string | null }): JSX.Element {
  const steps = stepsOf(view)
  const asked = query.value.get('step')
  const base = `/runs/${part(view.run_id)}`
  const isFlat = steps.every((step) => !step.needs.length)
  const side = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // Where the card stands below the list, a choice would otherwise change what nobody sees.
    if (asked && side.current && side.current.offsetLeft < 400 && matchMedia('(max-width: 1000px)').matches) side.current.scrollIntoView()
  }, [asked])
  if (steps.length === 1)
    return (
      <>
        <StepCard view={view} step={steps[0]!.id} isOnly />
        {Object.keys(view.inputs).length ? <details><summary>Inputs of the run</summary><Inputs inputs={view.inputs} /></details> : null}
      </>
    )
  return (
    <div class={`halves ${asked ? 'asked' : chosen ? 'wanted' : ''}`}>
      <div>
        {asked && !chosen ? <p class="card warning">This run has no step <span class="mono">{plain(shortened(asked, 100))}</span>. These are its steps:</p> : null}
        {isFlat ? <TaskCards view={view} steps={steps} chosen={chosen} /> : (
          <>
            <Graph steps={steps} chosen={chosen} href={(id) => `${base}?step=${part(id)}`} />
            <StepList run={view.run_id} steps={steps} chosen={chosen} />
          </>
        )}
      </div>
      <div ref={side} class="detail" tabIndex={0} role="group" aria-label={chosen ? 'The chosen step' : 'The run as a whole'}>
        {chosen ? <StepCard key={chosen} view={view} step={chosen} /> : <Overview view={view} />}
      </div>
    </div>
  )
}

// The step that was asked for; else the one that wants to be looked at, or the one that is at work; null: the run as a whole.
// `before`: what is shown now. It stays while it wants a person: what somebody types there must not give way to another step.
function chosenOf(view: RunAnswer, before: string | null): string | null {
  const asked = query.value.get('step')
  if (asked !== null) return Object.hasOwn(view.steps, asked) ? asked : null
  if (view.plan.length === 1) return view.plan[0]!.id
  if (before !== null && FIRST.includes(view.steps[before]?.status ?? '')) return before
  const wanted = view.plan.find((step) => FIRST.includes(view.steps[step.id]!.status))
  if (wanted) return wanted.id
  const busy = view.plan.filter((step) => BUSY.includes(view.steps[step.id]!.status))
  return busy.length === 1 && isSettled(view.steps[busy[0]!.id]!.started_at) ? busy[0]!.id : null
}

// A step that has gone on for a while, and not one of many that come and go.
function isSettled(startedAt: string | null): boolean {
  return startedAt !== null && now() - new Date(startedAt).getTime() > SETTLED_MS
}

function Overview({ view }: { view: RunAnswer }): JSX.Element {
  const isOver = ENDED.includes(view.status)
  return (
    <section class="card" aria-label="Answer and inputs">
      <h2>Answer</h2>
      {view.output === null || view.output === undefined ? <p class="quiet">{isOver ? 'The run gave no answer.' : 'Not there yet: it comes once the steps that it is made of have ended.'}</p> : <Value value={view.output} />}
      <h3>Inputs</h3>
      {Object.keys(view.inputs).length ? <Inputs inputs={view.inputs} /> : <p class="quiet">This run was given none.</p>}
      {view.next.length ? (
        <>
          <h3>In the terminal</h3>
          <ul class="plain">{view.next.map((command) => <li key={command}><code>{command}</code></li>)}</ul>
        </>
      ) : null}
    </section>
  )
}

// A short one stands in the line; a long one has a box of its own.
function Given({ text }: { text: string }): JSX.Element {
  return text.length < 2_000 ? <>{plain(text)}</> : <Raw text={text} />
}

export function Inputs({ inputs }: { inputs: Record<string, unknown> }): JSX.Element {
  return (
    <dl class="inputs">
      {Object.entries(inputs).map(([name, value]) => (
        <div key={name}>
          <dt class="mono">{name}</dt>
          <dd>{value === null ? <span class="quiet">none</span> : typeof value === 'object' ? <Raw text={JSON.stringify(value, null, 2)} /> : <Given text={String(value)} />}</dd>
        </div>
      ))}
    </dl>
  )
}

const FORMS = { md: 'As it reads', raw: 'Markdown', json: 'JSON' }

function Report({ id }: { id: string }): JSX.Element {
  const asked = query.value.get('form') ?? ''
  const form = Object.hasOwn(FORMS, asked) ? asked : 'md'
  const path = `/api/runs/${part(id)}/report?format=`
  const kind = form === 'json' ? 'json' : 'md'
  const report = useResource(() => getText(path + kind), `${id} ${kind}`, id)
  return (
    <>
      <div class="bar between">
        <div class="bar" role="group" aria-label="Form of the report">
          {Object.entries(FORMS).map(([key, name]) => <button key={key} aria-pressed={form === key} onClick={() => setQuery('form', key)}>{name}</button>)}
        </div>
        <div class="bar">
          <span class="quiet small">Download</span>
          {['md', 'json', 'html'].map((each) => <a key={each} class="button" href={path + each} download={`${id}.${each}`}>{each}</a>)}
        </div>
      </div>
      <Loaded from={report}>{(text) => <div class="card">{form === 'md' ? <Value value={text} /> : <Raw is="whole" text={kind === 'json' ? indented(text) : text} />}</div>}</Loaded>
    </>
  )
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
