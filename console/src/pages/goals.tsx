// Goals: run again until a verifier passes. The condition, how far it is, what the verifier saw, and clearing it.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, get, part, post } from '../api'
import { faultsOf, InputForm } from '../inputs'
import { plain, Raw } from '../markdown'
import { announce, Cell, Dialog, Empty, Facts, Failure, Field, List, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'
import type { WorkflowRow } from '../types'
import { type Usage, count, dollars, duration, toneOf, tokens } from '../words'

interface Iteration {
  iteration: number
  run_id: string | null
  run_status: string | null
  met: boolean | null
  evidence: string | null
  error: string | null
  warnings: string[]
  usage: Usage
}

interface Goal {
  id: string
  text: string
  verify: string
  workflow: string | null
  status: string
  why: string | null
  iterations: number
  history: Iteration[]
  before: string | null
  ended_at: number | null
  usage: Usage
  worked_seconds: number
  limits: { iterations: number; tokens: number | null; usd: number | null; seconds: number | null }
  made_at: number
  run_id: string | null
}

export function Goals({ id }: { id: string }): JSX.Element {
  return id ? <One id={id} /> : <All />
}

function All(): JSX.Element {
  const [isSetting, setSetting] = useState(false)
  const goals = useResource(() => get<{ goals: Goal[] }>('/api/goals'), 'goals', '*')
  return (
    <>
      <div class="bar between"><Title page="Goals">Goals</Title>{isSetting ? null : <button class="main" onClick={() => setSetting(true)}>Set a goal</button>}</div>
      <p class="quiet">A goal says when to stop, not how: the lead agent or a workflow works on it until its verifier passes, the budget is spent, or it is given up.</p>
      {isSetting ? <SetGoal close={() => setSetting(false)} /> : null}
      <Loaded from={goals}>
        {({ goals: all }) =>
          all.length ? (
            <List label="Goals" columns={[{ name: 'Goal' }, { name: 'State' }, { name: 'It is met when' }, { name: 'Iteration', is: 'num' }, { name: 'Set' }]}>
              {all.map((goal) => (
                <tr key={goal.id} role="row">
                  <Cell is="title"><a href={`/goals/${part(goal.id)}`}>{plain(goal.text)}</a></Cell>
                  <Cell is="nowrap"><State status={goal.status} of="run" /></Cell>
                  <Cell name="It is met when"><Verifier of={goal.verify} /></Cell>
                  <Cell name="Iteration" is="num nowrap">{goal.iterations} of {goal.limits.iterations}</Cell>
                  <Cell name="Set" is="nowrap"><When at={goal.made_at} /></Cell>
                </tr>
              ))}
            </List>
          ) : isSetting ? null : <Empty what="No goal is set. Know the finish, not the steps? Set a goal with a verifier that a machine can check." action={<button onClick={() => setSetting(true)}>Set the first one</button>} command={'stretto goal set "the tests pass" --verify test:tests --max-iterations 5'} />}
      </Loaded>
    </>
  )
}

// 'command:make test' reads better as: a command succeeds, make test.
function Verifier({ of }: { of: string }): JSX.Element {
  const [kind = '', ...rest] = of.split(':')
  return <>{VERIFIERS[kind]?.[0] ?? kind}: <code>{plain(rest.join(':'))}</code></>
}

const GOES_ON = ['active', 'interrupted', 'waiting', 'overdue', 'stalled']

function One({ id }: { id: string }): JSX.Element {
  const path = `/api/goals/${part(id)}`
  const found = useResource(() => get<{ goal: Goal }>(path), id, '*')
  const action = useAction()
  const [isClearing, setClearing] = useState(false)
  const change = (verb: string): void => void action.run(async () => { await post(`${path}/${verb}`); announce(verb === 'clear' ? 'The goal is cleared.' : 'The goal goes on.'); setClearing(false); await found.reload() })
  return (
    <Loaded from={found} title="Goal">
      {({ goal }) => (
        <>
          <p class="crumbs"><a href="/goals">Goals</a> / <span class="mono">{goal.id}</span></p>
          <div class="bar between top">
            <Title page={`${goal.status} · goal`}>{plain(goal.text)} <State status={goal.status} /></Title>
            <div class="bar">
              {['interrupted', 'waiting', 'overdue'].includes(goal.status) ? <button class="main" disabled={action.isBusy} onClick={() => change('resume')}>Resume</button> : null}
              {GOES_ON.includes(goal.status) ? <button class="bad" disabled={action.isBusy} onClick={() => setClearing(true)}>Clear …</button> : null}
            </div>
          </div>
          <p class={`standing ${toneOf(goal.status)}`}>{plain(goal.why ?? standingOf(goal))}{goal.run_id ? <> <a href={`/runs/${part(goal.run_id)}`}>See its run</a></> : null}</p>
          <Facts
            label="About this goal"
            of={[
              ['It is met when', <Verifier of={goal.verify} />],
              ['Worked on by', goal.workflow ? <a href={`/workflows/${part(goal.workflow)}`}>{goal.workflow}</a> : 'turns of the lead agent'],
              ['Iteration', `${goal.iterations} of ${goal.limits.iterations}`],
              ['Set', <When at={goal.made_at} />],
              ['Worked', duration(goal.worked_seconds) + (goal.limits.seconds ? ` of ${duration(goal.limits.seconds)}` : '')],
              ['Tokens', (goal.usage.input_tokens + goal.usage.output_tokens).toLocaleString('en') + (goal.limits.tokens ? ` of ${goal.limits.tokens.toLocaleString('en')}` : '')],
              ['Cost', goal.limits.usd ? `${goal.usage.usd === null ? 'unknown' : dollars(goal.usage.usd) || '$0'} of ${dollars(goal.limits.usd)}` : dollars(goal.usage.usd)],
            ]}
          />
          {action.error && !isClearing ? <Failure error={action.error} /> : null}
          <h2>History</h2>
          {goal.history.length ? null : <p class="quiet">No iteration has ended yet.</p>}
          <ul class="tasks">{[...goal.history].reverse().map((each) => <Round key={each.iteration} of={each} />)}</ul>
          {goal.before ? <details><summary>What the verifier saw before the first iteration</summary><Raw text={goal.before} /></details> : null}
          {isClearing ? (
            <Dialog title="Clear this goal?" close={() => setClearing(false)} error={action.error}>
              <p>It is given up, and the run that works on it is cancelled. What was done so far is kept.</p>
              <p class="bar"><button class="bad" disabled={action.isBusy} onClick={() => change('clear')}>Clear the goal</button><button onClick={() => setClearing(false)}>Keep it</button></p>
            </Dialog>
          ) : null}
        </>
      )}
    </Loaded>
  )
}

function standingOf(goal: Goal): string {
  if (goal.ended_at !== null) return `It ended after ${count(goal.iterations, 'iteration')}.`
  return `Iteration ${Math.min(goal.iterations + 1, goal.limits.iterations)} of ${goal.limits.iterations} at the most is under way.`
}

function Round({ of }: { of: Iteration }): JSX.Element {
  const [word, tone, mark] = of.met === null ? ['not checked', 'idle', '–'] : of.met ? ['verified', 'good', '✓'] : ['not met', 'warn', '✗']
  return (
    <li class={`task ${tone}`}>
      <div class="bar between"><span><strong>Iteration {of.iteration}</strong>{of.run_id ? <> · <a href={`/runs/${part(of.run_id)}`}>its run</a>{of.run_status ? <> <State status={of.run_status} /></> : null}</> : null}</span><span class={`state ${tone}`} data-mark={mark}>{word}</span></div>
      {of.error ? <p>{plain(of.error)}</p> : null}
      {of.warnings.length ? <ul class="small">{of.warnings.map((warning) => <li key={warning}>{plain(warning)}</li>)}</ul> : null}
      {of.evidence ? <><p class="small quiet">What the verifier saw</p><Raw text={of.evidence} /></> : null}
      <p class="small quiet">{tokens(of.usage)}</p>
    </li>
  )
}

// --- setting one -----------------------------------------------------------------------------------------------------

const VERIFIERS: Record<string, [string, string, string]> = {
  command: ['a command succeeds', 'make test', 'It runs in the project, on the machine of the server; exit code 0 means that the goal is met.'],
  test: ['tests pass', 'tests', 'Paths of tests, with blanks between them.'],
  ci: ['the build passes', 'make check', 'A command, or a ref whose checks are looked up.'],
  data: ['an expression holds', 'report.json#count >= 3', 'A file or an address, #, and an expression over its data.'],
  llm: ['a model says so', 'The brief names three sources', 'Words that a model judges by. It can be wrong: prefer one that a machine can check.'],
}

interface Most {
  iterations: string
  tokens: string
  usd: string
  timeout: string
}

// What was typed as a limit and is none: left out in silence, it would limit nothing.
function unlimited(most: Most): string[] {
  const isWhole = (text: string): boolean => Number.isInteger(Number(text)) && Number(text) >= 1
  return [
    isWhole(most.iterations) ? '' : 'Iterations: give a whole number from 1 on.',
    !most.tokens.trim() || isWhole(most.tokens) ? '' : `Tokens: “${most.tokens}” is no whole number, such as 200000.`,
    !most.usd.trim() || (Number.isFinite(Number(most.usd)) && Number(most.usd) > 0) ? '' : `US dollars: “${most.usd}” is no amount, such as 1.50.`,
  ].filter(Boolean)
}

function SetGoal({ close }: { close: () => void }): JSX.Element {
  const [text, setText] = useState('')
  const [kind, setKind] = useState('command')
  const [spec, setSpec] = useState('')
  const [workflow, setWorkflow] = useState('')
  const [inputs, setInputs] = useState<Record<string, unknown>>({})
  const [most, setMost] = useState<Most>({ iterations: '10', tokens: '', usd: '', timeout: '' })
  const workflows = useResource(() => get<{ workflows: WorkflowRow[] }>('/api/workflows'), 'of goals')
  const action = useAction()
  const declared = workflows.value?.workflows.find((each) => each.name === workflow)?.inputs ?? []
  const send = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      const faults = [...faultsOf(declared, inputs), ...unlimited(most)]
      if (faults.length) throw new ApiError(0, 'inputs', faults.join(' '))
      const budget = { ...(most.tokens.trim() ? { tokens: Number(most.tokens) } : {}), ...(most.usd.trim() ? { usd: Number(most.usd) } : {}) }
      const body = { text, verify: `${kind}:${spec}`, workflow: workflow || null, inputs, max_iterations: Number(most.iterations), budget: Object.keys(budget).length ? budget : null, timeout: most.timeout || null }
      const { goal } = await post<{ goal: Goal }>('/api/goals', body)
      go(`/goals/${part(goal.id)}`)
    })
  }
  const limit = (key: keyof typeof most, label: string, note: string): JSX.Element => <Field label={label} note={note}>{(id) => <input id={id} class="narrow" inputMode={key === 'timeout' ? 'text' : 'decimal'} value={most[key]} onInput={(event) => setMost({ ...most, [key]: event.currentTarget.value })} />}</Field>
  return (
    <form class="card" aria-label="Set a goal" onSubmit={send}>
      <h2 class="first">Set a goal</h2>
      <Field label="What is to be so" note="in a sentence">{(id) => <textarea id={id} class="short" rows={2} required value={text} onInput={(event) => setText(event.currentTarget.value)} />}</Field>
      <div class="fields">
        <Field label="It is met when">{(id) => <select id={id} value={kind} onChange={(event) => setKind(event.currentTarget.value)}>{Object.entries(VERIFIERS).map(([key, [word]]) => <option value={key}>{word}</option>)}</select>}</Field>
        <Field label={kind === 'llm' ? 'What it must say' : 'Which'}>{(id) => <input id={id} class="mono wide" required placeholder={VERIFIERS[kind]![1]} value={spec} onInput={(event) => setSpec(event.currentTarget.value)} />}</Field>
      </div>
      <p class="quiet small">{VERIFIERS[kind]![2]}</p>
      <Field label="Who works on it">{(id) => <select id={id} value={workflow} onChange={(event) => { setWorkflow(event.currentTarget.value); setInputs({}) }}><option value="">the lead agent, turn by turn</option>{(workflows.value?.workflows ?? []).filter((each) => each.ok).map((each) => <option value={each.name}>workflow {each.name}</option>)}</select>}</Field>
      {declared.length ? <fieldset><legend>Its inputs</legend><InputForm inputs={declared} values={inputs} change={setInputs} /></fieldset> : null}
      <fieldset><legend>It is given up after</legend><div class="fields">{limit('iterations', 'Iterations', '')}{limit('tokens', 'Tokens', 'of all of them')}{limit('usd', 'US dollars', '')}{limit('timeout', 'Time', 'such as 2h')}</div></fieldset>
      {action.error ? <Failure error={action.error} /> : null}
      <p class="bar"><button class="main" disabled={action.isBusy}>Set it</button><button type="button" onClick={close}>Cancel</button></p>
    </form>
  )
}
