// The saved workflows: the list, and one with its graph, its inputs, its text, its versions and its runs.
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { get, getText, part, post } from '../api'
import { type DryRun, DryRunView } from '../dry_run'
import { Graph, type GraphStep } from '../graph'
import { InputForm, missingOf } from '../inputs'
import { Later } from '../later'
import { announce, Dialog, Diff, Empty, Failure, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go, query } from '../router'
import type { Outline, Problem, RunRow, Saved, WorkflowRow } from '../types'
import { clock, count } from '../words'

const NEW = { name: '', done: async (): Promise<void> => undefined }

export function Workflows(): JSX.Element {
  if (query.value.has('new')) return <Later load={() => import('./new')} with={NEW} />
  return <List />
}

function List(): JSX.Element {
  const all = useResource(() => get<{ workflows: WorkflowRow[] }>('/api/workflows'), 'workflows', '')
  const runs = useResource(() => get<{ runs: RunRow[] }>('/api/runs?limit=200'), 'last runs', '*')
  const last = new Map((runs.value?.runs ?? []).reverse().map((run) => [run.workflow, run]))
  return (
    <>
      <div class="bar between"><Title page="Workflows">Workflows</Title><a class="button main" href="/workflows?new">New workflow</a></div>
      <p class="quiet">A workflow is a saved recipe: steps in an order, each done by one agent or command. Know the steps? Use a workflow. Know only when it is done? Set a <a href="/goals">goal</a>.</p>
      <Loaded from={all}>
        {({ workflows }) =>
          workflows.length ? (
            <div class="scroll">
              <table class="list">
                <thead><tr><th>Name</th><th>What it does</th><th>Inputs</th><th class="num">Steps</th><th>Last run</th></tr></thead>
                <tbody>{workflows.map((each) => <Row key={each.file} row={each} last={last.get(each.name)} />)}</tbody>
              </table>
            </div>
          ) : <Empty what="There is no saved workflow here yet." action={<a class="button" href="/workflows?new">Write the first one</a>} command="stretto new digest --template map-reduce" />}
      </Loaded>
    </>
  )
}

function Row({ row, last }: { row: WorkflowRow; last: RunRow | undefined }): JSX.Element {
  const errors = row.problems.filter((each) => !/^RCP9/.test(each.code))
  return (
    <tr>
      <td><a href={`/workflows/${part(row.name)}`}>{row.name}</a><br /><span class="quiet small">{row.layer}{row.origin === 'written' ? '' : ` · ${row.origin}`}</span></td>
      <td>{row.ok ? row.description : <><span class="state bad" data-mark="✗">{count(Math.max(1, errors.length), 'problem')}</span> <a class="small" href={`/workflows/${part(row.name)}?tab=edit`}>{errors[0]?.line ? `line ${errors[0].line}: ` : ''}{errors[0]?.message ?? 'it cannot be read'}</a></>}</td>
      <td class="small">{row.inputs.map((input) => <span class="input" title={input.description}>{input.name}{input.required ? '' : <span class="quiet"> ?</span>}</span>)}</td>
      <td class="num">{row.steps || ''}</td>
      <td class="small">{last ? <a href={`/runs/${part(last.run_id)}`}><State status={last.status} /> <When at={last.started_at} /></a> : <span class="quiet">never</span>}</td>
    </tr>
  )
}

const TABS = { '': 'Run', text: 'Text', edit: 'Edit', versions: 'Versions', runs: 'Runs' }

export function Workflow({ name }: { name: string }): JSX.Element {
  const tab = query.value.get('tab') ?? ''
  const base = `/workflows/${part(name)}`
  if (query.value.has('from')) return <Later load={() => import('./new')} with={{ name, done: async () => go(`${base}?tab=edit`, true) }} />
  return <Known key={name} name={name} tab={tab} base={base} />
}

function Known({ name, tab, base }: { name: string; tab: string; base: string }): JSX.Element {
  const saved = useResource(() => get<Saved>(`/api/workflows/${part(name)}`), name)
  return (
    <Loaded from={saved}>
      {(found) => (
        <>
          <p class="quiet small"><a href="/workflows">Workflows</a> / {found.workflow.layer}</p>
          <Title page={name}>{found.workflow.title || name}</Title>
          <p class="lead">{found.workflow.description}</p>
          <nav class="tabs" aria-label="Parts of this workflow">
            {Object.entries(TABS).map(([key, word]) => <a href={key ? `${base}?tab=${key}` : base} aria-current={tab === key ? 'page' : undefined}>{word}</a>)}
          </nav>
          {tab === 'edit' ? null : <Problems problems={found.workflow.problems} />}
          {tab === '' ? <Overview key={found.etag} saved={found} /> : null}
          {tab === 'text' ? <Later key={found.etag} load={() => import('./text')} with={{ text: found.text, problems: found.workflow.problems }} /> : null}
          {tab === 'edit' ? <Later load={() => import('./editor')} with={{ name, saved: found, start: '', done: saved.reload }} /> : null}
          {tab === 'versions' ? <Versions name={name} restored={saved.reload} /> : null}
          {tab === 'runs' ? <LastRuns name={name} most={200} /> : null}
        </>
      )}
    </Loaded>
  )
}

// What it is, and what can be done with it: its graph, the form that runs it, its last runs, and what starts it.
function Overview({ saved }: { saved: Saved }): JSX.Element {
  const file = saved.workflow.file.split('/').at(-1) ?? ''
  const outline = useResource(() => post<Outline>('/api/recipes/outline', { recipe: saved.text, file }), saved.etag)
  const steps = useMemo((): GraphStep[] => (outline.value?.steps ?? []).map((step) => ({ id: step.id, kind: step.gated ? 'asks a person' : step.type === 'sequential' ? '' : step.type, agent: step.agents.join(', '), needs: step.depends_on.map((each) => each.step) })), [outline.value])
  return (
    <div class="overview">
      <div>
        <RunIt saved={saved} />
      </div>
      <div>
        <h2 class="first">Steps</h2>
        {steps.length ? <Graph steps={steps} href={() => `/workflows/${part(saved.workflow.name)}?tab=edit`} /> : <p class="quiet">There is no step that could be read.</p>}
        <h2>Last runs</h2>
        <LastRuns name={saved.workflow.name} most={5} />
        <h2>Starts by itself</h2>
        <StartedBy name={saved.workflow.name} />
      </div>
    </div>
  )
}

interface Starter {
  name: string
  kind: string
  workflow: string
  says?: string
  zone?: string
  folder?: string
  paused: boolean
  next_at: string | null
}

function StartedBy({ name }: { name: string }): JSX.Element {
  const all = useResource(() => get<{ schedules: Starter[] }>('/api/schedules'), name, '*')
  return (
    <Loaded from={all}>
      {({ schedules }) => {
        const own = schedules.filter((each) => each.workflow === name)
        return (
          <>
            {own.length ? (
              <ul class="plain">{own.map((each) => <li key={each.name}><a href="/triggers">{each.name}</a> {each.kind === 'schedule' ? `${each.says} (${each.zone})` : each.kind === 'folder' ? `for each file that comes into ${each.folder}` : 'when its webhook is called'}{each.paused ? <span class="state warn" data-mark="‖"> paused</span> : each.next_at ? <span class="quiet small"> · next <time>{clock(each.next_at)}</time></span> : null}</li>)}</ul>
            ) : <p class="quiet">Nothing starts it by itself.</p>}
            <p><a class="button" href={`/triggers?for=${part(name)}`}>Add a trigger</a></p>
          </>
        )
      }}
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
  const [verdict, setVerdict] = useState<Outline>()
  const path = `/api/workflows/${part(name)}/run`
  const lacking = (): string[] => missingOf(saved.workflow.inputs, values)
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
  const validate = (): void => void action.run(async () => setVerdict(await post<Outline>('/api/recipes/outline', { recipe: saved.text, file: saved.workflow.file.split('/').at(-1) ?? '' })))
  return (
    <form onSubmit={start} noValidate>
      <h2 class="first">Run it</h2>
      {saved.workflow.inputs.length ? <InputForm inputs={saved.workflow.inputs} values={values} change={setValues} /> : <p class="quiet">It takes no inputs.</p>}
      {missing.length ? <div class="card error" role="alert"><p><strong>Still missing: {missing.join(', ')}.</strong></p></div> : null}
      {action.error ? <Failure error={action.error} next={<Faults error={action.error.details} />} /> : null}
      <p class="bar"><button class="main" disabled={action.isBusy || !saved.workflow.ok}>Run</button><button type="button" disabled={action.isBusy || !saved.workflow.ok} onClick={tryIt}>Dry run</button><button type="button" disabled={action.isBusy} onClick={validate}>Validate</button></p>
      {verdict ? verdict.problems.length + verdict.warnings.length ? <Problems problems={[...verdict.problems, ...verdict.warnings]} /> : <p role="status"><span class="state good" data-mark="✓">No problems, and no warnings.</span></p> : null}
      {plan ? <><h2>Dry run</h2><DryRunView plan={plan} /></> : null}
    </form>
  )
}

export function Faults({ error }: { error: Record<string, unknown> }): JSX.Element | null {
  const problems = error.problems as Problem[] | undefined
  return problems?.length ? <Problems problems={problems} /> : null
}

interface Version {
  version: number
  at: number
  by: string
  origin: string
  why: string
  current: boolean
}

function Versions({ name, restored }: { name: string; restored: () => Promise<void> }): JSX.Element {
  const action = useAction()
  const versions = useResource(() => get<{ versions: Version[] }>(`/api/workflows/${part(name)}/versions`), name)
  const [shown, setShown] = useState<{ number: number; diff: string }>()
  const [asked, setAsked] = useState<Version>()
  const show = (number: number): void => void action.run(async () => setShown({ number, diff: await getText(`/api/workflows/${part(name)}/diff?old=${number}`) }))
  const restore = (version: Version): void =>
    void action.run(async () => {
      await post(`/api/workflows/${part(name)}/restore`, { version: version.version })
      setAsked(undefined)
      announce(`Version ${version.version} is restored.`)
      await Promise.all([versions.reload(), restored()])
    })
  const ask = (version: Version): void => (show(version.version), setAsked(version))
  return (
    <Loaded from={versions}>
      {({ versions: all }) =>
        all.length ? (
          <>
            {action.error ? <Failure error={action.error} /> : null}
            <div class="scroll">
              <table class="list">
                <thead><tr><th class="num">Version</th><th>When</th><th>By</th><th>Why</th><th><span class="visually-hidden">What to do</span></th></tr></thead>
                <tbody>
                  {[...all].reverse().map((each) => (
                    <tr key={each.version}>
                      <td class="num">{each.version}</td><td><When at={each.at} /></td><td>{each.by || each.origin}</td><td>{each.why}{each.current ? <span class="chip">current</span> : null}</td>
                      <td><span class="bar snug">{each.current ? null : <><button onClick={() => show(each.version)}>What changed since</button><button disabled={action.isBusy} onClick={() => ask(each)}>Restore …</button></>}</span></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {shown && !asked ? <><h2>Since version {shown.number}</h2>{shown.diff ? <Diff text={shown.diff} /> : <p class="quiet">Nothing: the file says the same.</p>}</> : null}
            {asked ? (
              <Dialog title={`Restore version ${asked.version}?`} close={() => setAsked(undefined)}>
                <p>The file will say again what it said then. What it says now stays as a version. This is what was changed since, and would be undone:</p>
                {shown?.number === asked.version ? <Diff text={shown.diff || 'Nothing.'} /> : <p class="quiet">Loading …</p>}
                <p class="bar"><button class="main" disabled={action.isBusy} onClick={() => restore(asked)}>Restore it</button><button onClick={() => setAsked(undefined)}>Cancel</button></p>
              </Dialog>
            ) : null}
          </>
        ) : <Empty what="Each save through Stretto keeps the version before it. This file was only edited by hand so far." action={<a class="button" href={`/workflows/${part(name)}?tab=edit`}>Edit it</a>} command={`stretto show ${name} --versions`} />}
    </Loaded>
  )
}

function LastRuns({ name, most }: { name: string; most: number }): JSX.Element {
  const runs = useResource(() => get<{ runs: RunRow[] }>(`/api/runs?workflow=${part(name)}&limit=${most}`), name, '*')
  return (
    <Loaded from={runs}>
      {({ runs: rows }) =>
        rows.length ? (
          <div class="scroll"><table class="list"><tbody>{rows.map((run) => <tr key={run.run_id}><td><State status={run.status} /></td><td><a class="mono" href={`/runs/${part(run.run_id)}`}>{run.run_id}</a></td><td><When at={run.started_at} /></td><td class="quiet small">{run.trigger}</td></tr>)}</tbody></table></div>
        ) : <p class="quiet">It has not run yet.</p>}
    </Loaded>
  )
}
