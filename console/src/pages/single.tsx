// Give one agent one task, or many agents tasks side by side.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { plain } from '../markdown'
import { Cell, Empty, Failure, Field, List, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'
import type { RunRow } from '../types'
import { count, shortened } from '../words'

interface Task {
  agent: string
  prompt: string
}

export function Single(): JSX.Element {
  const agents = useResource(() => get<{ agents: { name: string; ok?: boolean }[] }>('/api/agents'), 'names')
  return (
    <>
      <Title page="Single and batch">Single and batch</Title>
      <p class="quiet">One task for one agent, or several that do not depend on each other. If one needs the answer of another, write a <a href="/workflows">workflow</a>.</p>
      <Loaded from={agents}>{({ agents: all }) => <Tasks names={all.filter((agent) => agent.ok !== false).map((agent) => agent.name)} />}</Loaded>
      <Before />
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
        <fieldset class="card one-task" key={at}>
          <legend>{tasks.length > 1 ? `Task ${at + 1}` : 'Task'}</legend>
          <Field label="Agent">{(id) => <select id={id} value={task.agent} onChange={(event) => set(at, { agent: event.currentTarget.value })}>{names.map((name) => <option key={name}>{name}</option>)}</select>}</Field>
          <Field label="What to do">{(id) => <textarea id={id} required class={tasks.length > 1 ? 'short' : ''} value={task.prompt} onInput={(event) => set(at, { prompt: event.currentTarget.value })} />}</Field>
          {tasks.length > 1 ? <p><button type="button" class="tight" aria-label={`Remove task ${at + 1}`} onClick={() => setTasks(tasks.filter((_, number) => number !== at))}>Remove</button></p> : null}
        </fieldset>
      ))}
      {action.error ? <Failure error={action.error} /> : null}
      <p class="bar">
        <button class="main" disabled={action.isBusy || tasks.some((task) => !task.prompt.trim())}>{tasks.length > 1 ? `Run ${tasks.length} tasks` : 'Run'}</button>
        <button type="button" onClick={() => setTasks([...tasks, { agent: tasks.at(-1)?.agent ?? first, prompt: '' }])}>Add a task beside it</button>
      </p>
      <Many add={(prompts) => setTasks([...tasks.filter((task) => task.prompt.trim()), ...prompts.map((prompt) => ({ agent: tasks.at(-1)?.agent ?? first, prompt }))])} />
    </form>
  )
}

// A list that somebody has already: each line is a task.
function Many({ add }: { add: (prompts: string[]) => void }): JSX.Element {
  const [text, setText] = useState('')
  const prompts = text.split('\n').map((line) => line.trim()).filter(Boolean)
  return (
    <details>
      <summary>Many at once</summary>
      <Field label="One task a line" note="each for the agent of the last task above">{(id) => <textarea id={id} value={text} onInput={(event) => setText(event.currentTarget.value)} />}</Field>
      <p><button type="button" disabled={!prompts.length} onClick={() => { add(prompts); setText('') }}>Add {count(prompts.length, 'task')}</button></p>
      <p class="quiet">In the terminal: <code>stretto batch tasks.yaml</code> takes a file with an agent and a prompt for each.</p>
    </details>
  )
}

function Before(): JSX.Element {
  const load = async (): Promise<RunRow[]> => {
    const found = await Promise.all(['/api/tasks', '/api/batches'].map((path) => get<{ runs: RunRow[] }>(path)))
    return found.flatMap(({ runs }) => runs).sort((a, b) => (b.started_at ?? '').localeCompare(a.started_at ?? '')).slice(0, 10)
  }
  const runs = useResource(load, 'tasks and batches', '*')
  return (
    <>
      <h2>Lately</h2>
      <Loaded from={runs}>{(rows) => (rows.length ? <List label="Lately" columns={[{ name: 'What' }, { name: 'State' }, { name: 'Started' }]}>{rows.map((run) => <tr key={run.run_id} role="row"><Cell is="title"><a href={`/runs/${part(run.run_id)}`}>{plain(shortened(run.about || run.workflow, 90))}</a> <span class="chip">{run.workflow}</span></Cell><Cell is="nowrap"><State status={run.status} of="run" /></Cell><Cell name="Started" is="nowrap"><When at={run.started_at} /></Cell></tr>)}</List> : <Empty what="No task has run yet. A task is a run like any other: it is kept, and can be looked at and retried." command={'stretto task worker "Say hello"'} />)}</Loaded>
    </>
  )
}
