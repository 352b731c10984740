// The list of runs: filters, search, two to compare.
import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { get, part } from '../api'
import { noteEvents } from '../live'
import { plain } from '../markdown'
import { Cell, Empty, List, Loaded, StartedBy, State, Title, useSettled, When } from '../parts'
import { useResource } from '../resource'
import { go, query, setQuery } from '../router'
import type { RunRow } from '../types'
import { count, duration, moment, shortened, shortId, withoutAsking } from '../words'

const STATES = ['running', 'waiting', 'overdue', 'interrupted', 'complete', 'partial', 'failed', 'cancelled']

interface Page {
  runs: RunRow[]
  next: string | null
}

export function Runs(): JSX.Element {
  const text = useSettled(query.value.get('text') ?? '')
  const filters = [...['status', 'workflow', 'since'].map((name) => [name, query.value.get(name) ?? '']), ['text', text]]
  const asked = new URLSearchParams(filters.filter(([, value]) => value))
  const pages = useRef({ of: '', many: 1 })
  if (pages.current.of !== asked.toString()) pages.current = { of: asked.toString(), many: 1 }
  const runs = useResource(() => firstPages(asked, pages.current.many), asked.toString(), '*')
  const more = (): void => void (pages.current.many++, runs.reload())
  return (
    <>
      <Title page="Runs">Runs</Title>
      <Filters />
      <Loaded from={runs}>
        {(page) =>
          page.runs.length ? <Table page={page} more={more} /> : asked.toString() ? (
            <p>No run fits these filters. <button onClick={() => go('/runs', true)}>Show all runs</button></p>
          ) : (
            <Empty what="A run is one execution of a workflow. Its steps, prompts, answers and changes are kept here." action={<a class="button" href="/workflows">Choose a workflow to run</a>} command="stretto run research-and-brief -i topic=tea" />
          )}
      </Loaded>
    </>
  )
}

// All that is shown is loaded together: between pages of different moments a run could be missing.
async function firstPages(asked: URLSearchParams, many: number): Promise<Page> {
  let page = await get<Page>(`/api/runs?${asked}`)
  for (let at = 1; at < many && page.next; at++) {
    const { runs, next } = await get<Page>(`/api/runs?${asked}&cursor=${part(page.next)}`)
    page = { runs: [...page.runs, ...runs], next }
  }
  noteEvents(page.runs.flatMap((run) => [run.started_at, run.ended_at]))
  return page
}

function Filters(): JSX.Element {
  const saved = useResource(() => get<{ workflows: { name: string }[] }>('/api/workflows'), 'names')
  const asked = query.value.get('workflow')
  const names = [...new Set([...(saved.value?.workflows ?? []).map((each) => each.name), 'task', 'batch', 'chat', ...(asked ? [asked] : [])])]
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
      <select aria-label="Workflow" value={query.value.get('workflow') ?? ''} onChange={(event) => setQuery('workflow', event.currentTarget.value)}>
        <option value="">all workflows</option>
        {names.map((name) => <option key={name}>{name}</option>)}
      </select>
      <input type="search" class="grow" aria-label="Text in id, workflow or inputs" placeholder="search ids and inputs" value={query.value.get('text') ?? ''} onInput={(event) => setQuery('text', event.currentTarget.value)} />
    </form>
  )
}

function Table({ page: { runs: rows, next }, more }: { page: Page; more: () => void }): JSX.Element {
  const [chosen, setChosen] = useState<string[]>([])
  const isPriced = rows.some((run) => run.cost !== 'unknown')
  const choose = (id: string, is: boolean): void => setChosen(is ? [...chosen, id].slice(-2) : chosen.filter((other) => other !== id))
  return (
    <>
      <p class="bar between">
        <span class="quiet small">{count(rows.length, 'run')}{next ? ', and older ones' : ''}</span>
        <button disabled={chosen.length !== 2} title="Choose two runs to compare them" onClick={() => go(`/compare?left=${part(chosen[1]!)}&right=${part(chosen[0]!)}`)}>Compare the two chosen</button>
      </p>
      <List label="Runs" columns={[{ name: 'Choose', hidden: true }, { name: 'Workflow' }, { name: 'State' }, { name: 'Started' }, { name: 'By' }, { name: 'Took', is: 'num' }, ...(isPriced ? [{ name: 'Cost', is: 'num' }] : []), { name: 'Id' }]}>
        {rows.map((run) => <Row key={run.run_id} run={run} isPriced={isPriced} isChosen={chosen.includes(run.run_id)} choose={choose} />)}
      </List>
      {next ? <button onClick={more}>Show more</button> : null}
    </>
  )
}

function Row({ run, isPriced, isChosen, choose }: { run: RunRow; isPriced: boolean; isChosen: boolean; choose: (id: string, is: boolean) => void }): JSX.Element {
  const [start, end] = [moment(run.started_at), moment(run.ended_at)]
  return (
    <tr role="row">
      <Cell is="pick"><input type="checkbox" aria-label={`Choose ${run.run_id}`} checked={isChosen} onChange={(event) => choose(run.run_id, event.currentTarget.checked)} /></Cell>
      <Cell is="title"><a href={`/runs/${part(run.run_id)}`}>{run.workflow}</a>{run.about ? <div class="quiet small about">{plain(shortened(withoutAsking(run.about), 90))}</div> : null}</Cell>
      <Cell is="nowrap"><State status={run.status} of="run" /></Cell>
      <Cell is="nowrap" name="Started"><When at={run.started_at} /></Cell>
      <Cell is="small nowrap" name="By"><StartedBy trigger={run.trigger} owner={run.owner} /></Cell>
      <Cell is="num nowrap" name="Took">{start && end ? duration((end.getTime() - start.getTime()) / 1000) : ''}</Cell>
      {isPriced ? <Cell is="num" name="Cost">{run.cost === 'unknown' ? '' : run.cost}</Cell> : null}
      <Cell is="nowrap" name="Id"><span class="mono quiet small" title={run.run_id}>{shortId(run.run_id)}</span></Cell>
    </tr>
  )
}
