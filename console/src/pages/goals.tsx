// Goals: run again until a verifier passes. The condition, how far it is, what the verifier saw, and clearing it.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { plain } from '../markdown'
import { announce, Dialog, Empty, Facts, Failure, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
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
  if (id) return <One id={id} />
  const goals = useResource(() => get<{ goals: Goal[] }>('/api/goals'), 'goals', '*')
  return (
    <>
      <Title page="Goals">Goals</Title>
      <p class="quiet">A goal says when to stop, not how: the lead agent or a workflow works on it until its verifier passes, the budget is spent, or it is given up.</p>
      <Loaded from={goals}>
        {({ goals: all }) =>
          all.length ? (
            <div class="scroll"><table>
              <thead><tr><th>Goal</th><th>State</th><th>Verifier</th><th class="num">Iteration</th><th>Set</th></tr></thead>
              <tbody>{all.map((goal) => <tr key={goal.id}><td><a href={`/goals/${part(goal.id)}`}>{plain(goal.text)}</a></td><td><State status={goal.status} /></td><td class="mono">{plain(goal.verify)}</td><td class="num">{goal.iterations} of {goal.limits.iterations}</td><td><When at={goal.made_at} /></td></tr>)}</tbody>
            </table></div>
          ) : <Empty what="No goal is set. Know the finish, not the steps? Set a goal with a verifier that a machine can check." command={'stretto goal set "the tests pass" --verify test:tests --max-iterations 5'} />}
      </Loaded>
    </>
  )
}

const GOES_ON = ['active', 'interrupted', 'waiting', 'overdue', 'stalled']

function One({ id }: { id: string }): JSX.Element {
  const path = `/api/goals/${part(id)}`
  const found = useResource(() => get<{ goal: Goal }>(path), id, '*')
  const action = useAction()
  const [isClearing, setClearing] = useState(false)
  const change = (verb: string): void => void action.run(async () => { await post(`${path}/${verb}`); announce(verb === 'clear' ? 'The goal is cleared.' : 'The goal goes on.'); setClearing(false); await found.reload() })
  return (
    <Loaded from={found}>
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
              ['Verified by', <code>{plain(goal.verify)}</code>],
              ['Worked on by', goal.workflow ? <a href={`/workflows/${part(goal.workflow)}`}>{goal.workflow}</a> : 'turns of the lead agent'],
              ['Iteration', `${goal.iterations} of ${goal.limits.iterations}`],
              ['Set', <When at={goal.made_at} />],
              ['Worked', duration(goal.worked_seconds) + (goal.limits.seconds ? ` of ${duration(goal.limits.seconds)}` : '')],
              ['Tokens', (goal.usage.input_tokens + goal.usage.output_tokens).toLocaleString('en') + (goal.limits.tokens ? ` of ${goal.limits.tokens.toLocaleString('en')}` : '')],
              ['Cost', dollars(goal.usage.usd) + (goal.limits.usd ? ` of ${dollars(goal.limits.usd)}` : '')],
            ]}
          />
          {action.error && !isClearing ? <Failure error={action.error} /> : null}
          <h2>History</h2>
          {goal.history.length ? null : <p class="quiet">No iteration has ended yet.</p>}
          <ul class="tasks">{[...goal.history].reverse().map((each) => <Round key={each.iteration} of={each} />)}</ul>
          {goal.before ? <details><summary>What the verifier saw before the first iteration</summary><pre tabIndex={0}>{plain(goal.before)}</pre></details> : null}
          {isClearing ? (
            <Dialog title="Clear this goal?" close={() => setClearing(false)}>
              <p>It is given up, and the run that works on it is cancelled. What was done so far is kept.</p>
              {action.error ? <Failure error={action.error} /> : null}
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
      {of.evidence ? <><p class="small quiet">What the verifier saw</p><pre tabIndex={0}>{plain(of.evidence)}</pre></> : null}
      <p class="small quiet">{tokens(of.usage)}</p>
    </li>
  )
}
