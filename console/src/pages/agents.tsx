// Agents and models: the definitions that a recipe may name, and what this machine can run.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { plain, Raw } from '../markdown'
import { announce, Cell, Empty, Facts, Failure, Field, List, Loaded, Title, useAction } from '../parts'
import { useResource } from '../resource'
import { duration, shortened } from '../words'

interface Agent {
  name: string
  description?: string
  layer: string
  file: string
  posture?: string
  model?: string | null
  fallback_models?: string[]
  tools?: string[]
  max_turns?: number | null
  max_output_tokens?: number | null
  timeout_seconds?: number | null
  ok?: boolean
  problems?: { message: string }[]
}

interface Model {
  name: string
  title: string
  state: string
  about: string
  size_bytes: number
  licence: string
}

interface Trial {
  what: string
  ok: boolean
  says: string
  output_tokens: number
  first_seconds: number
  seconds: number
  tokens_per_second: number
}

export function Agents(): JSX.Element {
  const agents = useResource(() => get<{ agents: Agent[] }>('/api/agents'), 'agents')
  const models = useResource(() => get<{ models: Model[]; in_use: string | null }>('/api/models'), 'models')
  const [text, setText] = useState('')
  const fits = (agent: Agent): boolean => `${agent.name} ${agent.description ?? ''} ${agent.tools?.join(' ') ?? ''}`.toLowerCase().includes(text.toLowerCase())
  return (
    <>
      <Title page="Agents and models">Agents and models</Title>
      <p class="quiet">An agent is a role in words, with the tools that it may use and its limits. A recipe names one for each step.</p>
      <Loaded from={agents}>
        {({ agents: all }) =>
          all.length ? (
            <>
              {all.length > 8 ? <input class="wide" type="search" aria-label="Filter the agents" placeholder="filter by name, role or tool" value={text} onInput={(event) => setText(event.currentTarget.value)} /> : null}
              <div class="rows">{all.filter(fits).map((agent) => <Definition key={agent.name} agent={agent} />)}</div>
            </>
          ) : <Empty what="There is no agent. A Markdown file in agents/ with a name, a description and a prompt is one." command="stretto agents" />}
      </Loaded>
      <h2>Models</h2>
      <Loaded from={models}>
        {({ in_use, models: all }) => (
          <>
            <Test inUse={in_use} />
            <h3>Models that this machine can run itself</h3>
            <List label="Models that this machine can run itself" columns={[{ name: 'Name' }, { name: 'Model' }, { name: 'State' }, { name: 'Size', is: 'num' }, { name: 'Licence' }]}>
              {all.map((model) => (
                <tr key={model.name} role="row">
                  <Cell is="title mono">{model.name}</Cell>
                  <Cell is="text">{model.title}<div class="quiet small">{model.about}</div></Cell>
                  <Cell name="State">{model.state}</Cell>
                  <Cell name="Size" is="num nowrap">{(model.size_bytes / 1e6).toFixed(0)} MB</Cell>
                  <Cell name="Licence" is="nowrap">{model.licence}</Cell>
                </tr>
              ))}
            </List>
            <p class="quiet">In the terminal: <code>stretto models pull NAME</code> fetches one, <code>stretto models use NAME</code> chooses it for this project.</p>
          </>
        )}
      </Loaded>
    </>
  )
}

function Definition({ agent }: { agent: Agent }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {agent.name} <span class={`small ${agent.posture === 'writer' ? 'state warn' : 'quiet'}`} data-mark={agent.posture === 'writer' ? '✎' : undefined}>{agent.posture === 'writer' ? 'writes' : 'reads'}</span>
        {agent.ok === false ? <span class="state bad" data-mark="✗"> cannot be used</span> : null}
        <span class="quiet small about">{plain(shortened(agent.description ?? '', 150))}</span>
      </summary>
      {isOpen ? <Opened agent={agent} /> : null}
    </details>
  )
}

function Opened({ agent }: { agent: Agent }): JSX.Element {
  const whole = useResource(() => get<{ agent: { prompt: string | null } }>(`/api/agents/${part(agent.name)}`), agent.name)
  return (
    <>
      {agent.problems?.length ? <div class="card error"><ul>{agent.problems.map((problem) => <li key={problem.message}>{plain(problem.message)}</li>)}</ul></div> : null}
      <p>{plain(agent.description ?? '')}</p>
      <Facts
        of={[
          ['Tools', agent.tools?.join(', ') || 'none'], ['Model', [agent.model, ...(agent.fallback_models ?? [])].filter(Boolean).join(', then ')], ['Turns', agent.max_turns ? `${agent.max_turns} at the most` : ''],
          ['Output', agent.max_output_tokens ? `${agent.max_output_tokens} tokens at the most` : ''], ['Time', duration(agent.timeout_seconds)], ['From', agent.layer],
        ]}
      />
      <Loaded from={whole}>{({ agent: found }) => <Raw text={found.prompt ?? ''} />}</Loaded>
    </>
  )
}

// Two small questions: one in words, one that wants JSON.
function Test({ inUse }: { inUse: string | null }): JSX.Element {
  const [name, setName] = useState('')
  const [tried, setTried] = useState<{ model: string; tried: Trial[] }>()
  const action = useAction()
  const submit = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      setTried(undefined)
      setTried(await post('/api/models/test', name.trim() ? { model: name.trim() } : {}))
      announce('The model has been tested.')
    })
  }
  return (
    <>
      <p>In use: <code>{inUse ?? 'the embedded model'}</code></p>
      <form class="bar" onSubmit={submit}>
        <Field label="Test a model" note="asks it two small questions">{(id) => <input id={id} class="mono" placeholder={inUse ?? 'embedded'} value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
        <button class="bottom" disabled={action.isBusy}>{action.isBusy ? 'Asking …' : 'Test'}</button>
      </form>
      {action.error ? <Failure error={action.error} /> : null}
      {tried ? (
        <div class="scroll"><table>
          <caption class="visually-hidden">What {tried.model} answered</caption>
          <thead><tr><th>Asked for</th><th>State</th><th class="num">First word</th><th class="num">Took</th><th class="num">Tokens/s</th><th>Answer</th></tr></thead>
          <tbody>{tried.tried.map((each) => <tr key={each.what}><td>{each.what}</td><td><span class={`state ${each.ok ? 'good' : 'bad'}`} data-mark={each.ok ? '✓' : '✗'}>{each.ok ? 'ok' : 'failed'}</span></td><td class="num nowrap">{duration(each.first_seconds)}</td><td class="num nowrap">{duration(each.seconds)}</td><td class="num">{each.tokens_per_second || ''}</td><td>{plain(shortened(each.says, 300))}</td></tr>)}</tbody>
        </table></div>
      ) : null}
    </>
  )
}
