// Two runs side by side: inputs, states, times, outputs; what differs is marked.
import type { ComponentChildren, JSX } from 'preact'
import { get, part } from '../api'
import { lineDiff } from '../difference'
import { plain, Value } from '../markdown'
import { Diff, Empty, Facts, Loaded, State, Title, When } from '../parts'
import { useResource } from '../resource'
import { query } from '../router'
import type { RunAnswer, StepReport } from '../types'
import { dollars, duration } from '../words'
import { Inputs } from './run'

type Two<T> = [T, T]

export function Compare(): JSX.Element {
  const [left, right] = [query.value.get('left') ?? '', query.value.get('right') ?? '']
  return (
    <>
      <p class="crumbs"><a href="/runs">Runs</a> / compare</p>
      <Title page="Compare two runs">Compare two runs</Title>
      {left && right ? <Both key={`${left} ${right}`} ids={[left, right]} /> : <Empty what="Two runs side by side show what another model, another input or another recipe changed." action={<a class="button" href="/runs">Choose two runs</a>} command="stretto diff RUN OTHER" />}
    </>
  )
}

function Both({ ids }: { ids: Two<string> }): JSX.Element {
  const both = useResource(() => Promise.all(ids.map((id) => get<RunAnswer>(`/api/runs/${part(id)}`))), ids.join(' '), '*')
  return <Loaded from={both}>{([a, b]) => <Pages runs={[a!, b!]} />}</Loaded>
}

function Pages({ runs }: { runs: Two<RunAnswer> }): JSX.Element {
  const steps = [...new Set(runs.flatMap((run) => Object.keys(run.steps)))]
  const [a, b] = runs.map((run) => JSON.stringify(run.inputs)) as Two<string>
  return (
    <>
      <div class="two">{runs.map((run) => <Head key={run.run_id} run={run} />)}</div>
      <h2>Inputs <Differs is={a !== b} /></h2>
      <div class="two">{runs.map((run) => <Inputs key={run.run_id} inputs={run.inputs} />)}</div>
      <h2>Steps</h2>
      {steps.map((id) => <Pair key={id} name={id} steps={runs.map((run) => run.steps[id]) as Two<StepReport | undefined>} />)}
      <h2>Answers <Differs is={!isEqual(runs[0].output, runs[1].output)} /></h2>
      <Outputs of={[runs[0].output, runs[1].output]} />
    </>
  )
}

function Head({ run }: { run: RunAnswer }): JSX.Element {
  return (
    <div class="card">
      <h2 style="margin:0"><a href={`/runs/${part(run.run_id)}`}>{run.workflow}</a> <State status={run.status} of="run" /></h2>
      <p class="mono quiet small">{run.run_id}</p>
      <Facts of={[['Started', <When at={run.started_at} />], ['Took', run.ended_at ? duration(run.duration_seconds) : ''], ['Tokens', (run.usage.input_tokens + run.usage.output_tokens).toLocaleString('en')], ['Cost', dollars(run.usage.usd)], ['Retries', run.retries ? String(run.retries) : '']]} />
    </div>
  )
}

function Differs({ is }: { is: boolean }): JSX.Element {
  return is ? <span class="state warn small" data-mark="≠">differs</span> : <span class="quiet small">the same</span>
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function Pair({ name, steps: [a, b] }: { name: string; steps: Two<StepReport | undefined> }): JSX.Element {
  const isSame = a?.status === b?.status && isEqual(a?.output, b?.output)
  return (
    <details class="card slim">
      <summary>{name} <Differs is={!isSame} /></summary>
      <div class="two">{[a, b].map((step, side) => <div key={side}>{step ? <Side step={step} /> : <p class="quiet">This run has no such step.</p>}</div>)}</div>
      {a && b && !isEqual(a.output, b.output) ? <Outputs of={[a.output, b.output]} /> : a && b ? <Value value={a.output} /> : null}
    </details>
  )
}

function Side({ step }: { step: StepReport }): JSX.Element {
  const facts: [string, ComponentChildren][] = [['State', <State status={step.status} />], ['Took', duration(step.duration_seconds)], ['Tokens', (step.usage.input_tokens + step.usage.output_tokens).toLocaleString('en')], ['Attempts', String(step.attempts)]]
  return <><Facts of={facts} />{step.error ? <p class="small">{plain(step.error)}</p> : null}</>
}

// Side by side as they read, and below that line by line.
function Outputs({ of: [a, b] }: { of: Two<unknown> }): JSX.Element {
  const [left, right] = [written(a), written(b)]
  return (
    <>
      <div class="two"><div><Value value={a} /></div><div><Value value={b} /></div></div>
      {left && right && left !== right ? <details class="small"><summary>Line by line</summary><Diff text={lineDiff(left, right)} /></details> : null}
    </>
  )
}

function written(value: unknown): string {
  if (value === null || value === undefined) return ''
  return plain(typeof value === 'string' ? value : JSON.stringify(value, null, 2))
}
