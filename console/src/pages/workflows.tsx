// The saved workflows: the list, and one with its graph, its inputs, its text, its versions and its runs.
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { get, getText, part, post, remove } from '../api'
import { type DryRun, DryRunView } from '../dry_run'
import { Graph, type GraphStep } from '../graph'
import { faultsOf, InputForm, Mend } from '../inputs'
import { Later } from '../later'
import { noteEvents } from '../live'
import { plain } from '../markdown'
import { announce, Cell, Dialog, Diff, Empty, Failure, List, Loaded, StartedBy as By, State, Title, useAction, When } from '../parts'
import { ON_RETURN, useResource } from '../resource'
import { go, query } from '../router'
import type { Outline, Problem, RunRow, Saved, WorkflowRow } from '../types'
import { clock, count, duration, moment, shortened } from '../words'

const FEW = 5 // runs, beside what else there is to see
const LATELY = 200 // runs that are looked through for the last one of each workflow
const NEW = { name: '', done: async (): Promise<void> => undefined }

export function Workflows(): JSX.Element {
  if (query.value.has('new')) return <Later load={() => import('./new')} with={NEW} />
  return <All />
}

function All(): JSX.Element {
  const all = useResource(() => get<{ workflows: WorkflowRow[] }>('/api/workflows'), 'workflows', ON_RETURN)
  const runs = useResource(() => lately(), 'last runs', '*')
  const last = new Map([...(runs.value?.runs ?? [])].reverse().map((run) => [run.workflow, run]))
  return (
    <>
      <div class="bar between"><Title page="Workflows">Workflows</Title><a class="button main" href="/workflows?new">New workflow</a></div>
      <p class="quiet">A workflow is a saved recipe: steps in an order, each done by one agent or command. Know the steps? Use a workflow. Know only when it is done? Set a <a href="/goals">goal</a>.</p>
      <Loaded from={all}>
        {({ workflows }) =>
          workflows.length ? (
            <List label="Workflows" columns={[{ name: 'Name' }, { name: 'What it does' }, { name: 'Inputs' }, { name: 'Steps', is: 'num' }, { name: 'Last run' }]}>
              {workflows.map((each) => <Row key={each.file} row={each} last={last.get(each.name) ?? <NotLately name={each.name} among={runs.value} />} />)}
            </List>
          ) : <Empty what="There is no saved workflow here yet." action={<a class="button" href="/workflows?new">Write the first one</a>} command="stretto new digest --template map-reduce" />}
      </Loaded>
    </>
  )
}

async function lately(): Promise<Lately> {
  const found = await get<Lately>(`/api/runs?limit=${LATELY}`)
  noteEvents(found.runs.flatMap((run) => [run.started_at, run.ended_at]))
  return found
}

interface Lately {
  runs: RunRow[]
  next: string | null
}

// What is not among the runs that were looked through may have run before them.
function NotLately({ name, among }: { name: string; among: Lately | undefined }): JSX.Element {
  if (!among) return <span class="quiet small">…</span>
  return among.next ? <a class="small" href={`/runs?workflow=${part(name)}`}>not among the last {LATELY}</a> : <span class="quiet small">never</span>
}

function Row({ row, last }: { row: WorkflowRow; last: RunRow | JSX.Element }): JSX.Element {
  const errors = row.problems.filter((each) => !/^RCP9/.test(each.code))
  return (
    <tr role="row">
      <Cell is="title"><a href={`/workflows/${part(row.name)}`}>{row.name}</a> <span class="chip">{row.layer}{row.origin === 'written' ? '' : `, ${row.origin}`}</span></Cell>
      <Cell is="text">{row.ok ? plain(row.description) : <><span class="state bad" data-mark="✗">{count(Math.max(1, errors.length), 'problem')}</span> <a class="small" href={`/workflows/${part(row.name)}?tab=edit`}>{errors[0]?.line ? `line ${errors[0].line}: ` : ''}{plain(errors[0]?.message ?? 'it cannot be read')}</a></>}</Cell>
      <Cell name="Inputs" is="small">{row.inputs.length ? row.inputs.map((input) => <span class="input" key={input.name} title={[input.description, input.required ? 'required' : 'optional'].filter(Boolean).join(' · ')}>{input.name}{input.required ? '' : <span class="quiet"> (optional)</span>}</span>) : null}</Cell>
      <Cell name="Steps" is="num">{row.steps || ''}</Cell>
      <Cell name="Last run" is="nowrap">{'run_id' in last ? <a href={`/runs/${part(last.run_id)}`}><State status={last.status} of="run" /> <span class="quiet small"><When at={last.started_at} /></span></a> : last}</Cell>
    </tr>
  )
}

const TABS = { '': 'Run', text: 'Text', edit: 'Edit', versions: 'Versions', runs: 'Runs' }

export function Workflow({ name }: { name: string }): JSX.Element {
  const asked = query.value.get('tab') ?? ''
  const tab = Object.hasOwn(TABS, asked) ? asked : ''
  const base = `/workflows/${part(name)}`
  if (query.value.get('from')) return <Later load={() => import('./new')} with={{ name, done: async () => go(`${base}?tab=edit`, true) }} />
  return <Known key={name} name={name} tab={tab} base={base} />
}

function Known({ name, tab, base }: { name: string; tab: string; base: string }): JSX.Element {
  const saved = useResource(() => get<Saved>(`/api/workflows/${part(name)}`), name, ON_RETURN)
  const [isDeleting, setDeleting] = useState(false)
  return (
    <Loaded from={saved} title={name}>
      {(found) => (
        <>
          <p class="crumbs"><a href="/workflows">Workflows</a> / {name}</p>
          <div class="bar between top">
            <Title page={name}>{plain(found.workflow.title || name)} <span class="chip">{found.workflow.layer}</span></Title>
            {found.workflow.layer === 'bundled' ? null : <button class="bad" onClick={() => setDeleting(true)}>Delete …</button>}
          </div>
          {isDeleting ? <Delete name={name} etag={found.etag} close={() => setDeleting(false)} /> : null}
          <p class="lead">{plain(found.workflow.description)}</p>
          <nav class="tabs" aria-label="Parts of this workflow">
            {Object.entries(TABS).map(([key, word]) => <a href={key ? `${base}?tab=${key}` : base} aria-current={tab === key ? 'page' : undefined}>{word}</a>)}
          </nav>
          {tab === 'edit' ? null : <Problems problems={found.workflow.problems} />}
          {tab === '' ? <Overview saved={found} /> : null}
          {tab === 'text' ? <Later key={found.etag} load={() => import('./text')} with={{ text: found.text, problems: found.workflow.problems }} /> : null}
          {tab === 'edit' ? <Later load={() => import('./editor')} with={{ name, saved: found, start: '', done: saved.reload }} /> : null}
          {tab === 'versions' ? <Versions name={name} restored={saved.reload} /> : null}
          {tab === 'runs' ? <LastRuns name={name} most={200} /> : null}
        </>
      )}
    </Loaded>
  )
}

function Delete({ name, etag, close }: { name: string; etag: string; close: () => void }): JSX.Element {
  const action = useAction()
  const work = (): void => void action.run(async () => { await remove(`/api/workflows/${part(name)}`, { 'If-Match': etag }); announce(`${name} is deleted.`); close(); go('/workflows') })
  return (
    <Dialog title={`Delete ${name}?`} close={close} error={action.error}>
      <p>Its file goes. Its runs and its versions stay: <code>stretto show {name} --versions</code> lists them, and a version can be restored. What starts it by itself fails from now on.</p>
      <p class="bar"><button class="bad" disabled={action.isBusy} onClick={work}>Delete the workflow</button><button onClick={close}>Keep it</button></p>
    </Dialog>
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
        <LastRuns name={saved.workflow.name} most={FEW} />
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
              <ul class="plain">{own.map((each) => <li key={each.name}><a href="/triggers">{each.name}</a> {each.kind === 'schedule' ? `${each.says} (${each.zone})` : each.kind === 'folder' ? `for each file that comes into ${plain(each.folder ?? '')}` : 'when its webhook is called'}{each.paused ? <span class="state warn" data-mark="‖"> paused</span> : each.next_at ? <span class="quiet small"> · next <time>{clock(each.next_at)}</time></span> : null}</li>)}</ul>
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
    <div class={`card ${areWarnings ? 'warning' : 'error'}`}>
      <p><strong>{count(problems.length, areWarnings ? 'warning' : 'problem')}</strong></p>
      <ul>{problems.map((problem) => <li><code>{problem.code}</code> {problem.line ? `line ${problem.line}: ` : ''}{plain(problem.message)}{problem.hint ? <span class="quiet"> · {plain(problem.hint)}</span> : null}</li>)}</ul>
    </div>
  )
}

function RunIt({ saved }: { saved: Saved }): JSX.Element {
  const name = saved.workflow.name
  const action = useAction()
  const [values, setValues] = useState<Record<string, unknown>>({})
  const [faults, setFaults] = useState<string[]>([])
  const [tried, setTried] = useState<{ of: string; plan?: DryRun; verdict?: Outline }>({ of: '' })
  const { plan, verdict } = tried.of === saved.etag ? tried : {} as typeof tried // of another text they would be untrue
  const path = `/api/workflows/${part(name)}/run`
  const isReady = (): boolean => {
    const found = faultsOf(saved.workflow.inputs, values)
    setFaults(found)
    return !found.length
  }
  const start = (event: Event): void => {
    event.preventDefault()
    if (!isReady()) return
    void action.run(async () => {
      const { run_id } = await post<{ run_id: string }>(path, { inputs: values, wait: false }, { 'Idempotency-Key': crypto.randomUUID() })
      go(`/runs/${part(run_id)}`)
    })
  }
  const tryIt = (): void => {
    if (isReady()) void action.run(async () => setTried({ of: saved.etag, plan: await post<DryRun>(path, { inputs: values, dry_run: true }) }))
  }
  const validate = (): void =>
    void action.run(async () => {
      const found = await post<Outline>('/api/recipes/outline', { recipe: saved.text, file: saved.workflow.file.split('/').at(-1) ?? '' })
      setTried({ of: saved.etag, verdict: found })
      announce(`${count(found.problems.length, 'problem')} and ${count(found.warnings.length, 'warning')}.`)
    })
  return (
    <form onSubmit={start} noValidate>
      <h2 class="first">Run it</h2>
      {saved.workflow.inputs.length ? <InputForm inputs={saved.workflow.inputs} values={values} change={setValues} /> : <p class="quiet">It takes no inputs.</p>}
      <Mend faults={faults} />
      {action.error ? <Failure error={action.error} next={<Faults error={action.error.details} />} /> : null}
      <p class="bar"><button class="main" disabled={action.isBusy || !saved.workflow.ok}>Run</button><button type="button" disabled={action.isBusy || !saved.workflow.ok} onClick={tryIt}>Dry run</button><button type="button" disabled={action.isBusy} onClick={validate}>Validate</button></p>
      {verdict ? verdict.problems.length + verdict.warnings.length ? <Problems problems={[...verdict.problems, ...verdict.warnings]} /> : <p><span class="state good" data-mark="✓">No problems, and no warnings.</span></p> : null}
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
            {action.error && !asked ? <Failure error={action.error} /> : null}
            <List label="Versions" columns={[{ name: 'Version', hidden: true }, { name: 'When' }, { name: 'By' }, { name: 'Why' }, { name: 'What to do', hidden: true }]}>
              {[...all].reverse().map((each) => (
                <tr key={each.version} role="row">
                  <Cell is="title nowrap">Version {each.version} {each.current ? <span class="chip">current</span> : null}</Cell>
                  <Cell name="When" is="nowrap"><When at={each.at} /></Cell>
                  <Cell name="By">{each.by || each.origin}</Cell>
                  <Cell is="text">{plain(each.why)}</Cell>
                  <Cell is="right">{each.current ? '' : <span class="bar snug"><button class="tight" onClick={() => show(each.version)}>What changed since</button><button class="tight" disabled={action.isBusy} onClick={() => ask(each)}>Restore …</button></span>}</Cell>
                </tr>
              ))}
            </List>
            {shown && !asked ? <><h2>Since version {shown.number}</h2>{shown.diff ? <Diff text={shown.diff} /> : <p class="quiet">Nothing: the file says the same.</p>}</> : null}
            {asked ? (
              <Dialog title={`Restore version ${asked.version}?`} close={() => setAsked(undefined)} error={action.error}>
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
  const runs = useResource(() => get<Lately>(`/api/runs?workflow=${part(name)}&limit=${most}`), name, '*')
  return (
    <Loaded from={runs}>
      {({ runs: rows, next }) =>
        rows.length ? (
          <>
          <List label="Last runs" columns={[{ name: 'State' }, { name: 'Started' }, { name: 'Took', is: 'num' }, { name: 'By' }, { name: 'With' }]}>
            {rows.map((run) => (
              <tr key={run.run_id} role="row">
                <Cell is="title"><a href={`/runs/${part(run.run_id)}`}><State status={run.status} of="run" /></a></Cell>
                <Cell name="Started" is="nowrap"><When at={run.started_at} /></Cell>
                <Cell name="Took" is="num nowrap">{run.started_at && run.ended_at ? duration((moment(run.ended_at)!.getTime() - moment(run.started_at)!.getTime()) / 1000) : ''}</Cell>
                <Cell name="By" is="small"><By trigger={run.trigger} owner={run.owner} /></Cell>
                <Cell is="small text">{plain(shortened(run.about, 60))}</Cell>
              </tr>
            ))}
          </List>
          {next ? <p><a href={`/runs?workflow=${part(name)}`}>All its runs</a></p> : null}
          </>
        ) : most > FEW ? <Empty what="It has not run yet. Each of its runs will be listed here, with what it was given and how it ended." action={<a class="button" href={`/workflows/${part(name)}`}>Run it</a>} command={`stretto run ${name}`} /> : <p class="quiet">It has not run yet.</p>}
    </Loaded>
  )
}
