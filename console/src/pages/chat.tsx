// Talk with the lead agent: it answers, delegates, and asks before it changes anything.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { plain, Value } from '../markdown'
import { announce, Empty, Failure, Field, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'
import { count } from '../words'

interface Turn {
  id: string
  number: number
  status: string
  said: string
  text: string
  error: string | null
  calls: { tool: string; arguments: Record<string, unknown>; run_id: string | null; ok: boolean | null }[]
  awaits: { key: string | null; run_id: string | null; step: string | null; shown: string }[]
}

interface Row {
  id: string
  title: string
  last_at: number
  turns: number
  status: string
}

export function Chat({ id }: { id: string }): JSX.Element {
  return id ? <Talk key={id} id={id} /> : <Chats />
}

function Chats(): JSX.Element {
  const chats = useResource(() => get<{ chats: Row[] }>('/api/chats'), 'chats')
  return (
    <>
      <Title page="Chat">Chat</Title>
      <p class="quiet">The lead agent answers, gives tasks to agents, and runs and saves workflows. It asks before it changes anything unless its permission is auto.</p>
      <Say path="/api/chats" done={(chat) => go(`/chat/${part(chat)}`)} />
      <h2>Earlier chats</h2>
      <Loaded from={chats}>
        {({ chats: all }) => all.length ? <ul>{all.map((chat) => <li key={chat.id}><a href={`/chat/${part(chat.id)}`}>{plain(chat.title)}</a> <span class="quiet small">{count(chat.turns, 'turn')} · <When at={chat.last_at} /></span> <State status={chat.status} /><span></span></li>)}</ul> : <Empty what="Nothing has been said yet." command='stretto chat -p "Which workflows are there?"' />}
      </Loaded>
    </>
  )
}

function Talk({ id }: { id: string }): JSX.Element {
  const path = `/api/chats/${part(id)}`
  const chat = useResource(() => get<{ turns: Turn[] }>(path), id, '*')
  return (
    <>
      <p class="quiet small"><a href="/chat">Chat</a> / <span class="mono">{id}</span></p>
      <Title page="Chat">Chat</Title>
      <Loaded from={chat}>{({ turns }) => <>{turns.map((turn) => <TurnCard key={turn.id} path={path} turn={turn} reload={chat.reload} />)}</>}</Loaded>
      <Say path={path} done={() => void chat.reload()} />
    </>
  )
}

function Say({ path, done }: { path: string; done: (chat: string) => void }): JSX.Element {
  const [text, setText] = useState('')
  const action = useAction()
  const send = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      const { chat } = await post<{ chat: string }>(path, { text })
      setText('')
      announce('The lead agent has answered.')
      done(chat)
    })
  }
  return (
    <form onSubmit={send}>
      <Field label="Your words">{(id) => <textarea id={id} value={text} onInput={(event) => setText(event.currentTarget.value)} />}</Field>
      {action.error ? <Failure error={action.error} /> : null}
      <button class="main" disabled={action.isBusy || !text.trim()}>{action.isBusy ? 'The lead agent works …' : 'Send'}</button>
    </form>
  )
}

function TurnCard({ path, turn, reload }: { path: string; turn: Turn; reload: () => Promise<void> }): JSX.Element {
  const action = useAction()
  const decide = (verb: string, key: string): void => void action.run(async () => { await post(`${path}/${verb}`, { key }); await reload() })
  return (
    <section class="card" aria-label={`Turn ${turn.number}`}>
      <p><strong>You:</strong> {plain(turn.said)}</p>
      {turn.calls.map((call) => (
        <details class="card">
          <summary>{call.tool} <span class={`state ${call.ok === false ? 'bad' : call.ok ? 'good' : 'busy'}`} data-mark={call.ok === false ? '✗' : call.ok ? '✓' : '▶'}>{call.ok === false ? 'failed' : call.ok ? 'succeeded' : 'running'}</span> {call.run_id ? <a href={`/runs/${part(call.run_id)}`}>its run</a> : null}</summary>
          <pre tabIndex={0}>{plain(JSON.stringify(call.arguments, null, 2))}</pre>
        </details>
      ))}
      {turn.awaits.map((each) => (
        <div class="card asking">
          <p>{plain(each.shown)}</p>
          {each.key ? <p class="bar"><button class="main" disabled={action.isBusy} onClick={() => decide('approve', each.key!)}>Allow</button><button class="bad" disabled={action.isBusy} onClick={() => decide('reject', each.key!)}>Refuse</button></p> : each.run_id ? <p><a href={`/runs/${part(each.run_id)}?step=${part(each.step ?? '')}`}>Decide at its run</a></p> : null}
        </div>
      ))}
      {turn.error ? <div class="card error"><p>{plain(turn.error)}</p></div> : null}
      {turn.text ? <Value value={turn.text} /> : <State status={turn.status} />}
      {action.error ? <Failure error={action.error} /> : null}
    </section>
  )
}
