// Two runs side by side: inputs, states, outputs; what differs is marked.
import type { JSX } from 'preact'
import { get, part } from '../api'
import { Value } from '../markdown'
import { Loaded, State, Title } from '../parts'
import { useResource } from '../resource'
import { query } from '../router'
import type { RunAnswer } from '../types'
import { duration, tokens } from '../words'

export function Compare(): JSX.Element {
  const [left, right] = [query.value.get('left') ?? '', query.value.get('right') ?? '']
  const both = useResource(() => Promise.all([left, right].map((id) => get<RunAnswer>(`/api/runs/${part(id)}`))), `${left} ${right}`)
  return (
    <>
      <Title page="Compare two runs">Compare two runs</Title>
      <Loaded from={both}>{([a, b]) => <Both runs={[a!, b!]} />}</Loaded>
    </>
  )
}

function Both({ runs }: { runs: [RunAnswer, RunAnswer] }): JSX.Element {
  const ids = [...new Set(runs.flatMap((run) => Object.keys(run.steps)))]
  return (
    <>
      <div class="two">
        {runs.map((run) => (
          <div class="card">
            <p><a href={`/runs/${part(run.run_id)}`}>{run.workflow}</a> <State status={run.status} /><br /><span class="mono quiet small">{run.run_id}</span></p>
            <p class="small">{duration(run.duration_seconds)} · {tokens(run.usage)}</p>
            <pre tabIndex={0}>{JSON.stringify(run.inputs, null, 2)}</pre>
          </div>
        ))}
      </div>
      {ids.map((id) => <Pair id={id} runs={runs} />)}
      <h2>Answers</h2>
      <div class="two">{runs.map((run) => <div><Value value={run.output} /></div>)}</div>
    </>
  )
}

function Pair({ id, runs }: { id: string; runs: [RunAnswer, RunAnswer] }): JSX.Element {
  const [a, b] = runs.map((run) => run.steps[id])
  const isSame = JSON.stringify([a?.status, a?.output]) === JSON.stringify([b?.status, b?.output])
  return (
    <details class="card">
      <summary>{id} {isSame ? <span class="quiet small">the same</span> : <span class="state warn" data-mark="≠">differs</span>}</summary>
      <div class="two">{[a, b].map((step) => <div>{step ? <><State status={step.status} /><Value value={step.output} /></> : <p class="quiet">This run has no such step.</p>}</div>)}</div>
    </details>
  )
}
