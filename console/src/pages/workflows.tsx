// The saved workflows: the list, and one with its graph, its inputs, its text, its versions and its runs.
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { Graph, type GraphStep } from '../graph'
import { InputForm } from '../inputs'
import { plain } from '../markdown'
import { Diff, Empty, Failure, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go, query } from '../router'
import type { Problem, RunRow, WorkflowRow } from '../types'
import { count } from '../words'
import { Editor } from './editor'

export interface Saved {
  workflow: WorkflowRow
  text: string
  recipe: unknown
  etag: string
}

export interface DryRun {
  waves: string[][]
  would_run: { id: string; type: string; agent: string | null; depends_on: string[]; delegations: { role: string; agent: string; prompt: string }[] }[]
  summary: { steps: number; max_concurrency: number; max_model_calls: number; max_delegations: number }
}

export function Workflows(): JSX.Element {
  const all = useResource(() => get<{ workflows: WorkflowRow[] }>('/api/workflows'), 'workflows', '')
  const runs = useResource(() => get<{ runs: RunRow[] }>('/api/runs?limit=200'), 'last runs', '*')
  const last = new Map((runs.value?.runs ?? []).reverse().map((run) => [run.workflow, run]))
  return (
    <>
      <div class="bar between"><Title page="Workflows">Workflows</Title><a class="button" href="/workflows/new-workflow?tab=edit">Write a new one</a></div>
      <p class="quiet">A workflow is a saved recipe: steps in an order, each done by one agent or command. Know the steps? Use a workflow. Know only when it is done? Set a <a href="/goals">goal</a>.</p>
      <Loaded from={all}>
        {({ workflows }) =>
          workflows.length ? (
            <div class="scroll">
              <table>
                <thead><tr><th>Name</th><th>What it does</th><th>Inputs</th><th>Last run</th></tr></thead>
                <tbody>{workflows.map((each) => <Row key={each.file} row={each} last={last.get(each.name)} />)}</tbody>
              </table>
            </div>
          ) : <Empty what="There is no saved workflow here yet." action={<a class="button" href="/workflows/first?tab=edit">Write the first one</a>} command="stretto new digest --template map-reduce" />}
      </Loaded>
    </>
  )
}

function Row({ row, last }: { row: WorkflowRow; last: RunRow | undefined }): JSX.Element {
  return (
    <tr>
      <td><a href={`/workflows/${part(row.name)}`}>{row.name}</a><br /><span class="quiet small">{row.layer}{row.origin === 'written' ? '' : ` · ${row.origin}`}</span></td>
      <td>{row.ok ? row.description : <span class="state bad" data-mark="✗">{row.problems[0]?.message ?? 'broken'}</span>}</td>
      <td class="small">{row.inputs.map((input) => input.name + (input.required ? '' : '?')).join(', ')}</td>
      <td>{last ? <a href={`/runs/${part(last.run_id)}`}><State status={last.status} /> <When at={last.started_at} /></a> : <span class="quiet">never</span>}</td>
    </tr>
  )
}

const TABS = { '': 'Run', text: 'Text', edit: 'Edit', versions: 'Versions', runs: 'Runs' }

export function Workflow({ name }: { name: string }): JSX.Element {
  const tab = query.value.get('tab') ?? ''
  const saved = useResource(() => get<Saved>(`/api/workflows/${part(name)}`), name)
  if (tab === 'edit' && saved.error?.status === 404) return <Editor name={name} saved={undefined} done={() => go(`/workflows/${part(name)}`)} />
  const base = `/workflows/${part(name)}`
  return (
    <Loaded from={saved}>
      {(found) => (
        <>
          <p class="quiet small"><a href="/workflows">Workflows</a> / {found.workflow.layer}</p>
          <Title page={name}>{found.workflow.title || name}</Title>
          <p>{found.workflow.description}</p>
          <nav class="tabs" aria-label="Parts of this workflow">
            {Object.entries(TABS).map(([key, word]) => <a href={key ? `${base}?tab=${key}` : base} aria-current={tab === key ? 'page' : undefined}>{word}</a>)}
          </nav>
          <Problems problems={found.workflow.problems} />
          {tab === '' ? <RunIt saved={found} /> : null}
          {tab === 'text' ? <pre tabIndex={0}>{plain(found.text)}</pre> : null}
          {tab === 'edit' ? <Editor name={name} saved={found} done={() => void saved.reload()} /> : null}
          {tab === 'versions' ? <Versions name={name} /> : null}
          {tab === 'runs' ? <LastRuns name={name} /> : null}
        </>
      )}
    </Loaded>
  )
}

export function Problems({ problems }: { problems: Problem[] }): JSX.Element | null {
  if (!problems.length) return null
  const areWarnings = problems.every((problem) => /^RCP9/.test(problem.code))
  return (
    <div class={`card ${areWarnings ? 'warning' : 'error'}`} role="status">
      <p><strong>{count(problems.length, areWarnings ? 'warning' : 'problem')}</strong></p>
      <ul>{problems.map((problem) => <li><code>{problem.code}</code> {problem.line ? `line ${problem.line}: ` : ''}{problem.message}{problem.hint ? <span class="quiet"> · {problem.hint}</span> : null}</li>)}</ul>
    </div>
  )
}

function RunIt({ saved }: { saved: Saved }): JSX.Element {
  const name = saved.workflow.name
  const action = useAction()
  const [values, setValues] = useState<Record<string, unknown>>({})
  const [missing, setMissing] = useState<string[]>([])
  const [plan, setPlan] = useState<DryRun>()
  const path = `/api/workflows/${part(name)}/run`
  const lacking = (): string[] => saved.workflow.inputs.filter((input) => input.required && (values[input.name] === undefined || values[input.name] === '')).map((input) => input.name)
  const start = (event: Event): void => {
    event.preventDefault()
    const lack = lacking()
    setMissing(lack)
    if (lack.length) return
    void action.run(async () => {
      const { run_id } = await post<{ run_id: string }>(path, { inputs: values, wait: false }, { 'Idempotency-Key': crypto.randomUUID() })
      go(`/runs/${part(run_id)}`)
    })
  }
  const tryIt = (): void => {
    const lack = lacking()
    setMissing(lack)
    if (!lack.length) void action.run(async () => setPlan(await post<DryRun>(path, { inputs: values, dry_run: true })))
  }
  const steps = useMemo(() => stepsOfPlan(plan), [plan])
  return (
    <form onSubmit={start} noValidate>
      <InputForm inputs={saved.workflow.inputs} values={values} change={setValues} />
      {missing.length ? <div class="card error" role="alert"><p><strong>Still missing: {missing.join(', ')}.</strong></p></div> : null}
      {action.error ? <Failure error={action.error} next={<Faults error={action.error.details} />} /> : null}
      <p class="bar"><button class="main" disabled={action.isBusy || !saved.workflow.ok}>Run</button><button type="button" disabled={action.isBusy || !saved.workflow.ok} onClick={tryIt}>Dry run</button></p>
      {plan ? (
        <>
          <h2>Dry run</h2>
          <p>{count(plan.summary.max_delegations, 'delegation')} and {count(plan.summary.max_model_calls, 'model call')} at the most, {plan.summary.max_concurrency} side by side.</p>
          <p class="quiet small">{count(plan.waves.length, 'wave')} when every step takes equally long: {plan.waves.map((wave) => wave.join(' + ')).join(' → ')}</p>
          <Graph steps={steps} href={(id) => `#step-${id}`} />
          {plan.would_run.map((step) => (
            <details id={`step-${step.id}`}>
              <summary>{step.id}</summary>
              {step.delegations.map((each) => <><p class="small quiet">{each.role} · {each.agent}</p><pre tabIndex={0}>{plain(each.prompt)}</pre></>)}
            </details>
          ))}
        </>
      ) : null}
    </form>
  )
}

export function Faults({ error }: { error: Record<string, unknown> }): JSX.Element | null {
  const problems = error.problems as Problem[] | undefined
  return problems?.length ? <Problems problems={problems} /> : null
}

function stepsOfPlan(plan: DryRun | undefined): GraphStep[] {
  return (plan?.would_run ?? []).map((step) => ({ id: step.id, kind: step.type, agent: step.agent ?? '', needs: step.depends_on }))
}

interface Version {
  version: number
  at: number
  by: string
  origin: string
  why: string
  current: boolean
}

function Versions({ name }: { name: string }): JSX.Element {
  const action = useAction()
  const versions = useResource(() => get<{ versions: Version[] }>(`/api/workflows/${part(name)}/versions`), name)
  const [diff, setDiff] = useState('')
  const show = (number: number): void =>
    void action.run(async () => setDiff(await (await fetch(`/api/workflows/${part(name)}/diff?old=${number}`)).text()))
  return (
    <Loaded from={versions}>
      {({ versions: all }) =>
        all.length ? (
          <>
            {action.error ? <Failure error={action.error} /> : null}
            <div class="scroll">
              <table>
                <thead><tr><th class="num">Version</th><th>When</th><th>By</th><th>Why</th><th></th></tr></thead>
                <tbody>
                  {[...all].reverse().map((each) => (
                    <tr key={each.version}>
                      <td class="num">{each.version}{each.current ? ' (current)' : ''}</td><td><When at={each.at} /></td><td>{each.by || each.origin}</td><td>{each.why}</td>
                      <td class="bar"><button onClick={() => show(each.version)}>What changed since</button>{each.current ? null : <button disabled={action.isBusy} onClick={() => void action.run(async () => { await post(`/api/workflows/${part(name)}/restore`, { version: each.version }); await versions.reload() })}>Restore</button>}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {diff ? <Diff text={diff} /> : null}
          </>
        ) : <p class="quiet">Every save through Stretto keeps the version before it. This file was only edited by hand so far.</p>}
    </Loaded>
  )
}

function LastRuns({ name }: { name: string }): JSX.Element {
  const runs = useResource(() => get<{ runs: RunRow[] }>(`/api/runs?workflow=${part(name)}`), name, '*')
  return <Loaded from={runs}>{({ runs: rows }) => rows.length ? <ul>{rows.map((run) => <li key={run.run_id}><a href={`/runs/${part(run.run_id)}`}>{run.run_id}</a> <State status={run.status} /> <When at={run.started_at} /></li>)}</ul> : <p class="quiet">It has not run yet.</p>}</Loaded>
}
