// Agents and models: the definitions that a recipe may name, and what this machine can run.
import type { JSX } from 'preact'
import { get, part } from '../api'
import { plain } from '../markdown'
import { Empty, Loaded, Title } from '../parts'
import { useResource } from '../resource'

interface Agent {
  name: string
  description?: string
  layer: string
  posture?: string
  model?: string | null
  tools?: string[]
  ok?: boolean
  problems?: { message: string }[]
}

interface Model {
  name: string
  title: string
  state: string
  about: string
}

export function Agents(): JSX.Element {
  const agents = useResource(() => get<{ agents: Agent[] }>('/api/agents'), 'agents')
  const models = useResource(() => get<{ models: Model[]; in_use: unknown; folder: string }>('/api/models'), 'models')
  return (
    <>
      <Title page="Agents and models">Agents and models</Title>
      <Loaded from={agents}>
        {({ agents: all }) => all.length ? all.map((agent) => <Definition key={agent.name} agent={agent} />) : <Empty what="An agent is a role, a prompt, tools and limits." command="stretto agents" />}
      </Loaded>
      <h2>Models of this machine</h2>
      <Loaded from={models}>
        {(found) => (
          <>
            <p>In use: <code>{typeof found.in_use === 'string' ? found.in_use : JSON.stringify(found.in_use)}</code></p>
            <ul>{found.models.map((model) => <li><code>{model.name}</code> {model.title} · {model.state} <span class="quiet small">{model.about}</span></li>)}</ul>
            <p class="quiet">In the terminal: <code>stretto models test NAME</code> asks a model a question, <code>stretto models use NAME</code> chooses it.</p>
          </>
        )}
      </Loaded>
    </>
  )
}

function Definition({ agent }: { agent: Agent }): JSX.Element {
  const whole = useResource(() => get<{ agent: { prompt: string | null } }>(`/api/agents/${part(agent.name)}`), agent.name)
  return (
    <details class="card">
      <summary>{agent.name} <span class="quiet small">{[agent.layer, agent.posture, agent.model].filter(Boolean).join(' · ')}{agent.tools?.length ? ` · ${agent.tools.join(', ')}` : ''}</span></summary>
      <p>{agent.description ?? ''}</p>
      {agent.problems?.length ? <div class="card error"><ul>{agent.problems.map((problem) => <li>{problem.message}</li>)}</ul></div> : null}
      <Loaded from={whole}>{({ agent: found }) => <pre tabIndex={0}>{plain(found.prompt ?? '')}</pre>}</Loaded>
    </details>
  )
}
