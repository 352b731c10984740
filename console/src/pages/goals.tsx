// Goals: run again until a verifier passes. The condition, how far it is, what the verifier saw, and clearing it.
import type { JSX } from 'preact'
import { get, part, post } from '../api'
import { plain } from '../markdown'
import { announce, Empty, Failure, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { type Usage, duration, tokens } from '../words'

interface Goal {
  id: string
  text: string
  verify: string
  workflow: string | null
  status: string
  why: string | null
  iterations: number
  history: { iteration: number; run_id: string | null; run_status: string | null; met: boolean | null; evidence: string | null; error: string | null }[]
  usage: Usage
  worked_seconds: number
  limits: { iterations: number }
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

function One({ id }: { id: string }): JSX.Element {
  const path = `/api/goals/${part(id)}`
  const found = useResource(() => get<{ goal: Goal }>(path), id, '*')
  const action = useAction()
  const change = (verb: string): void => void action.run(async () => { await post(`${path}/${verb}`); announce(`goal ${verb}`); await found.reload() })
  return (
    <Loaded from={found}>
      {({ goal }) => (
        <>
          <p class="quiet small"><a href="/goals">Goals</a> / <span class="mono">{goal.id}</span></p>
          <Title page={`${goal.status} · goal`}>{plain(goal.text)} <State status={goal.status} /></Title>
          {goal.why ? <p>{plain(goal.why)}</p> : null}
          <p class="quiet small">verified by <code>{plain(goal.verify)}</code> · {goal.workflow ? <>by workflow <a href={`/workflows/${part(goal.workflow)}`}>{goal.workflow}</a></> : 'by turns of the lead agent'} · iteration {goal.iterations} of {goal.limits.iterations} · {duration(goal.worked_seconds)} · {tokens(goal.usage)}</p>
          {action.error ? <Failure error={action.error} /> : null}
          <p class="bar">
            {['interrupted', 'waiting', 'overdue'].includes(goal.status) ? <button class="main" disabled={action.isBusy} onClick={() => change('resume')}>Resume</button> : null}
            {['active', 'interrupted', 'waiting', 'overdue'].includes(goal.status) ? <button class="bad" disabled={action.isBusy} onClick={() => change('clear')}>Clear</button> : null}
          </p>
          <h2>History</h2>
          {goal.history.map((each) => (
            <div class={`card ${each.met ? '' : 'warning'}`} key={each.iteration}>
              <p><strong>Iteration {each.iteration}</strong> {each.run_id ? <a href={`/runs/${part(each.run_id)}`}>{each.run_status ?? 'run'}</a> : null} {each.met === null ? '' : each.met ? '· verified' : '· not met'}</p>
              {each.error ? <p>{plain(each.error)}</p> : null}
              {each.evidence ? <pre tabIndex={0}>{plain(each.evidence)}</pre> : null}
            </div>
          ))}
        </>
      )}
    </Loaded>
  )
}
