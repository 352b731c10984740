// The list of runs: filters, search, two to compare.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part } from '../api'
import { Empty, Loaded, StartedBy, State, Title, When } from '../parts'
import { useResource } from '../resource'
import { go, query, setQuery } from '../router'
import type { RunRow } from '../types'
import { count, duration, moment } from '../words'

const STATES = ['running', 'waiting', 'overdue', 'interrupted', 'complete', 'partial', 'failed', 'cancelled']

interface Page {
  runs: RunRow[]
  next: string | null
}

export function Runs(): JSX.Element {
  const filters = ['status', 'workflow', 'text', 'since']
  const asked = new URLSearchParams(filters.flatMap((name) => (query.value.get(name) ? [[name, query.value.get(name)!]] : [])))
  const runs = useResource(() => get<Page>(`/api/runs?${asked}`), asked.toString(), '*')
  return (
    <>
      <Title page="Runs">Runs</Title>
      <Filters />
      <Loaded from={runs}>
        {(page) =>
          page.runs.length ? <Table first={page} asked={asked} /> : asked.toString() ? (
            <p>No run fits these filters. <button onClick={() => go('/runs', true)}>Show all runs</button></p>
          ) : (
            <Empty what="A run is one execution of a workflow. Its steps, prompts, answers and changes are kept here." action={<a class="button" href="/workflows">Choose a workflow to run</a>} command="stretto run research-and-brief -i topic=tea" />
          )}
      </Loaded>
    </>
  )
}

function Filters(): JSX.Element {
  return (
    <form class="bar" role="search" onSubmit={(event) => event.preventDefault()}>
      <select aria-label="State" value={query.value.get('status') ?? ''} onChange={(event) => setQuery('status', event.currentTarget.value)}>
        <option value="">all states</option>
        {STATES.map((state) => <option>{state}</option>)}
      </select>
      <select aria-label="Since" value={query.value.get('since') ?? ''} onChange={(event) => setQuery('since', event.currentTarget.value)}>
        <option value="">any time</option>
        <option value="1h">last hour</option>
        <option value="1d">last day</option>
        <option value="7d">last week</option>
      </select>
      <input aria-label="Workflow" placeholder="workflow" value={query.value.get('workflow') ?? ''} onChange={(event) => setQuery('workflow', event.currentTarget.value)} />
      <input aria-label="Text in id, workflow or inputs" placeholder="id, workflow or inputs" value={query.value.get('text') ?? ''} onChange={(event) => setQuery('text', event.currentTarget.value)} />
    </form>
  )
}

function Table({ first, asked }: { first: Page; asked: URLSearchParams }): JSX.Element {
  const [more, setMore] = useState<Page[]>([])
  const [chosen, setChosen] = useState<string[]>([])
  const rows = [first, ...more].flatMap((page) => page.runs)
  const next = (more.at(-1) ?? first).next
  const choose = (id: string, is: boolean): void => setChosen(is ? [...chosen, id].slice(-2) : chosen.filter((other) => other !== id))
  return (
    <>
      <p class="bar between">
        <span class="quiet small">{count(rows.length, 'run')}{next ? ', and older ones' : ''}. Choose two to compare them.</span>
        <button disabled={chosen.length !== 2} onClick={() => go(`/compare?left=${part(chosen[1]!)}&right=${part(chosen[0]!)}`)}>Compare the two chosen</button>
      </p>
      <div class="scroll">
        <table>
          <thead>
            <tr><th><span class="visually-hidden">Choose</span></th><th>Workflow</th><th>State</th><th>Started</th><th class="by">By</th><th class="num">Took</th><th class="num">Cost</th><th>Id</th></tr>
          </thead>
          <tbody>{rows.map((run) => <Row key={run.run_id} run={run} isChosen={chosen.includes(run.run_id)} choose={choose} />)}</tbody>
        </table>
      </div>
      {next ? <button onClick={() => void get<Page>(`/api/runs?${asked}&cursor=${part(next)}`).then((page) => setMore([...more, page]))}>Show more</button> : null}
    </>
  )
}

function Row({ run, isChosen, choose }: { run: RunRow; isChosen: boolean; choose: (id: string, is: boolean) => void }): JSX.Element {
  const [start, end] = [moment(run.started_at), moment(run.ended_at)]
  return (
    <tr>
      <td><input type="checkbox" aria-label={`Choose ${run.run_id}`} checked={isChosen} onChange={(event) => choose(run.run_id, event.currentTarget.checked)} /></td>
      <td><a href={`/runs/${part(run.run_id)}`}>{run.workflow}</a></td>
      <td class="nowrap"><State status={run.status} /></td>
      <td class="nowrap"><When at={run.started_at} /></td>
      <td class="by small"><StartedBy trigger={run.trigger} owner={run.owner} /></td>
      <td class="num nowrap">{start && end ? duration((end.getTime() - start.getTime()) / 1000) : ''}</td>
      <td class="num">{run.cost}</td>
      <td class="mono quiet small nowrap">{run.run_id}</td>
    </tr>
  )
}
