// Give one agent one task, or many agents tasks side by side.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { Failure, Field, Loaded, Title, useAction } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'

interface Task {
  agent: string
  prompt: string
}

export function Single(): JSX.Element {
  const agents = useResource(() => get<{ agents: { name: string }[] }>('/api/agents'), 'names')
  return (
    <>
      <Title page="Single and batch">Single and batch</Title>
      <p class="quiet">One task for one agent, or several that do not depend on each other. If one needs the answer of another, write a <a href="/workflows">workflow</a>.</p>
      <Loaded from={agents}>{({ agents: all }) => <Tasks names={all.map((agent) => agent.name)} />}</Loaded>
    </>
  )
}

function Tasks({ names }: { names: string[] }): JSX.Element {
  const first = names.includes('worker') ? 'worker' : (names[0] ?? '')
  const [tasks, setTasks] = useState<Task[]>([{ agent: first, prompt: '' }])
  const action = useAction()
  const set = (at: number, change: Partial<Task>): void => setTasks(tasks.map((task, number) => (number === at ? { ...task, ...change } : task)))
  const start = (event: Event): void => {
    event.preventDefault()
    const key = { 'Idempotency-Key': crypto.randomUUID() }
    void action.run(async () => {
      const { run_id } = tasks.length === 1 ? await post<{ run_id: string }>('/api/tasks', { ...tasks[0], wait: false }, key) : await post<{ run_id: string }>('/api/batches', { tasks, wait: false }, key)
      go(`/runs/${part(run_id)}`)
    })
  }
  return (
    <form onSubmit={start}>
      {tasks.map((task, at) => (
        <fieldset class="card" key={at}>
          <legend>{tasks.length > 1 ? `Task ${at + 1}` : 'Task'}</legend>
          <Field label="Agent">{(id) => <select id={id} value={task.agent} onChange={(event) => set(at, { agent: event.currentTarget.value })}>{names.map((name) => <option>{name}</option>)}</select>}</Field>
          <Field label="What to do">{(id) => <textarea id={id} required value={task.prompt} onInput={(event) => set(at, { prompt: event.currentTarget.value })} />}</Field>
          {tasks.length > 1 ? <button type="button" onClick={() => setTasks(tasks.filter((_, number) => number !== at))}>Remove this task</button> : null}
        </fieldset>
      ))}
      {action.error ? <Failure error={action.error} /> : null}
      <p class="bar"><button class="main" disabled={action.isBusy || tasks.some((task) => !task.prompt.trim())}>{tasks.length > 1 ? `Run ${tasks.length} tasks` : 'Run'}</button><button type="button" onClick={() => setTasks([...tasks, { agent: first, prompt: '' }])}>Add a task beside it</button></p>
    </form>
  )
}
