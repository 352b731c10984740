// Talk with the lead agent: it answers, delegates, and asks before it changes anything.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, part, post } from '../api'
import { changes } from '../live'
import { plain, Prose, Raw, Value } from '../markdown'
import { announce, Cell, Empty, Failure, Field, List, Loaded, State, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'
import { useRun } from '../run_state'
import { useSpoken, withSpoken } from '../spoken'
import { type StepDetail, stepsOf } from '../types'
import { type Usage, count, glance, shortened, shortId, toneOf, tokens, withoutAsking } from '../words'

interface Call {
  tool: string
  arguments: Record<string, unknown>
  run_id: string | null
  ok: boolean | null
}

interface Turn {
  id: string
  number: number
  status: string
  said: string
  text: string
  error: string | null
  calls: Call[]
  awaits: { key: string | null; run_id: string | null; step: string | null; shown: string }[]
  warnings: string[]
  usage: Usage
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
  const chats = useResource(() => get<{ chats: Row[] }>('/api/chats'), 'chats', '*')
  const [sent, setSent] = useState<{ text: string; before: Set<string> } | null>(null)
  // The answer to a first message comes with the end of its turn. The chat is there before, and shows the turn.
  const begun = sent && chats.value?.chats.find((chat) => !sent.before.has(chat.id) && sent.text.startsWith(chat.title.slice(0, 20)))
  useEffect(() => {
    if (!sent || begun) return undefined
    const timer = setInterval(() => void chats.reload(), 500) // its first change may come before it is in the list
    return () => clearInterval(timer)
  }, [sent, begun])
  useEffect(() => {
    if (begun) go(`/chat/${part(begun.id)}`)
  }, [begun])
  return (
    <div class="talk">
      <Title page="Chat">Chat</Title>
      <p class="quiet">The lead agent answers, gives tasks to agents, and runs and saves workflows. It asks before it changes anything unless its permission is auto.</p>
      <Say isFirst path="/api/chats" sending={(text) => setSent(text === null ? null : { text, before: new Set(chats.value?.chats.map((chat) => chat.id)) })} done={(chat) => go(`/chat/${part(chat)}`)} />
      <h2>Earlier chats</h2>
      <Loaded from={chats}>
        {({ chats: all }) =>
          all.length ? (
            <List label="Earlier chats" columns={[{ name: 'Chat' }, { name: 'State' }, { name: 'Turns', is: 'num' }, { name: 'Last' }]}>
              {all.map((chat) => (
                <tr key={chat.id} role="row">
                  <Cell is="title">{isOfGoal(chat.id) ? <><span class="chip">goal</span> <a href={`/goals/${part(chat.id)}`}>{plain(shortened(withoutAsking(chat.title), 90))}</a></> : <a href={`/chat/${part(chat.id)}`}>{plain(chat.title)}</a>}</Cell>
                  <Cell is="nowrap"><State status={chat.status} of="run" /></Cell>
                  <Cell name="Turns" is="num">{chat.turns}</Cell>
                  <Cell name="Last" is="nowrap"><When at={chat.last_at} /></Cell>
                </tr>
              ))}
            </List>
          ) : <Empty what="Nothing has been said yet. Ask the lead agent for something above: it knows your workflows and agents." command='stretto chat -p "Which workflows are there?"' />}
      </Loaded>
    </div>
  )
}

function Talk({ id }: { id: string }): JSX.Element {
  const path = `/api/chats/${part(id)}`
  const chat = useResource(() => get<{ turns: Turn[] }>(path), id, '*')
  const many = chat.value?.turns.length ?? 0
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (many > 1) end.current?.scrollIntoView({ block: 'end' })
  }, [many])
  const title = chat.value?.turns[0] ? shortened(plain(chat.value.turns[0].said), 60) : 'Chat'
  return (
    <div class="talk">
      <p class="crumbs"><a href="/chat">Chat</a> / <span class="mono" title={id}>{shortId(id)}</span></p>
      <Title page={title}>{title}</Title>
      <Loaded from={chat}>{({ turns }) => <>{turns.map((turn) => <TurnCard key={turn.id} path={path} turn={turn} isDriven={isOfGoal(id)} reload={chat.reload} />)}</>}</Loaded>
      <Say path={path} sending={() => undefined} done={() => void chat.reload()} />
      <div ref={end} />
    </div>
  )
}

// Chats of goals have their ids.
function isOfGoal(id: string): boolean {
  return id.startsWith('g-')
}

const FIRST_WORDS = ['Which workflows are there, and what does each need?', 'Look through this folder and say what it holds.', 'Draft a workflow that reviews a change from two sides.']

function Say({ path, isFirst, sending, done }: { path: string; isFirst?: boolean; sending: (text: string | null) => void; done: (chat: string) => void }): JSX.Element {
  const [text, setText] = useState('')
  const action = useAction()
  const isHere = useRef(true)
  useEffect(() => () => void (isHere.current = false), [])
  const send = (): void => {
    const said = text
    sending(said)
    void action
      .run(async () => {
        const { chat } = await post<{ chat: string }>(path, { text: said })
        if (!isHere.current) return // whoever went elsewhere meanwhile is left there
        setText((now) => (now === said ? '' : now)) // what was typed meanwhile is the next message
        announce('The lead agent has answered.')
        done(chat)
      })
      .then((isSent) => isSent || sending(null))
  }
  return (
    <form class="say" onSubmit={(event) => { event.preventDefault(); send() }}>
      <Field label={isFirst ? 'Ask the lead agent' : 'Your message'} note="Ctrl+Enter sends">
        {(id) => <textarea id={id} value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && text.trim() && !action.isBusy) send() }} />}
      </Field>
      {action.error ? <Failure error={action.error} /> : null}
      <div class="bar">
        <button class="main" disabled={action.isBusy || !text.trim()}>{action.isBusy ? 'The lead agent works …' : 'Send'}</button>
        {isFirst && !text ? FIRST_WORDS.map((words) => <button key={words} type="button" class="tight suggestion" onClick={() => setText(words)}>{words}</button>) : null}
      </div>
    </form>
  )
}

// A turn of a goal is gone on with, and ended, with its goal: `isDriven`.
function TurnCard({ path, turn, isDriven, reload }: { path: string; turn: Turn; isDriven: boolean; reload: () => Promise<void> }): JSX.Element {
  const action = useAction()
  const ask = (verb: string, body: object): void => void action.run(async () => { await post(`${path}/${verb}`, body); await reload() })
  const decide = (verb: string, key: string): void => ask(verb, { key })
  return (
    <section class="turn" aria-label={`Turn ${turn.number}`}>
      <div class="you"><p class="small quiet">You</p><p class="pre">{plain(turn.said)}</p></div>
      {turn.calls.length ? <ul class="tasks">{turn.calls.map((call, number) => <Delegation key={number} call={call} />)}</ul> : null}
      {turn.awaits.map((each) => (
        <div class="card asking" key={each.key ?? each.run_id ?? each.shown}>
          <p class="pre">{plain(each.shown)}</p>
          {each.key ? <p class="bar"><button class="main" disabled={action.isBusy} onClick={() => decide('approve', each.key!)}>Allow</button><button class="bad" disabled={action.isBusy} onClick={() => decide('reject', each.key!)}>Refuse</button></p> : each.run_id ? <p><a href={`/runs/${part(each.run_id)}?step=${part(each.step ?? '')}`}>Decide at its run</a></p> : null}
        </div>
      ))}
      {turn.error ? <div class="card error"><p>{plain(turn.error)}</p></div> : null}
      {turn.status === 'waiting' && !isDriven ? (
        <p class="bar">
          {turn.awaits.length ? null : <button class="main" disabled={action.isBusy} onClick={() => ask('resume', {})}>{action.isBusy ? 'The lead agent works …' : 'Go on'}</button>}
          <button disabled={action.isBusy} onClick={() => ask('cancel', {})}>End this turn</button>
        </p>
      ) : null}
      {turn.warnings.length ? <div class="card warning small"><ul>{turn.warnings.map((warning) => <li key={warning}>{plain(warning)}</li>)}</ul></div> : null}
      {turn.text ? <Value value={turn.text} /> : turn.status === 'open' ? <Speaking run={turn.id} step={`turn-${turn.number}`} /> : <p><State status={turn.status} of="run" /></p>}
      <p class="small quiet">{tokens(turn.usage)}{turn.text && turn.status !== 'complete' ? <> · <State status={turn.status} /></> : null}</p>
      {action.error ? <Failure error={action.error} /> : null}
    </section>
  )
}

// What the lead agent says, as it comes: a turn is a run of one step. It is on record a moment before that run is.
function Speaking({ run, step }: { run: string; step: string }): JSX.Element {
  const { value } = useResource(() => get<StepDetail>(`/api/runs/${part(run)}/steps/${part(step)}`), `${run} ${step}`, run)
  const spoken = useSpoken(run, step, value)
  const isLoaded = value !== undefined
  useEffect(() => (value ? changes.follow(run, step, value.cursor) : undefined), [run, step, isLoaded])
  const words = value ? withSpoken(value, spoken).transcript.filter((entry) => entry.kind === 'words').at(-1) : undefined
  return words ? <div aria-live="off"><Prose text={words.text} /></div> : <p><State status={value?.report.status ?? 'running'} /></p>
}

// What a call asks for, in words; its arguments as they are stand below.
function aboutOf({ tool, arguments: given }: Call): [string, string] {
  const text = (name: string): string => (typeof given[name] === 'string' ? (given[name] as string) : '')
  if (tool === 'task') return [`Task for ${text('agent') || 'an agent'}`, text('prompt')]
  if (tool === 'task_batch') return [`${count(Array.isArray(given.tasks) ? given.tasks.length : 0, 'task')} side by side`, '']
  if (tool === 'run_workflow') return [`Run of ${text('name')}`, given.inputs ? JSON.stringify(given.inputs) : '']
  if (tool === 'save_workflow') return ['Saves a workflow', '']
  return [tool.replaceAll('_', ' '), '']
}

function Delegation({ call }: { call: Call }): JSX.Element {
  const [known, setKnown] = useState('') // of its run, which may wait for a person, or have done a part of its work
  const status = call.ok ? 'succeeded' : known || (call.ok === null ? 'running' : call.run_id ? '' : 'failed')
  const [isOpen, setOpen] = useState(call.ok !== true)
  const [title, says] = aboutOf(call)
  return (
    <li class={`task ${toneOf(status)}`}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary><span class="bar between"><span>{plain(title)}</span>{status ? <State status={status} of="run" /> : null}</span></summary>
        {call.run_id && (isOpen || !call.ok) ? <Glance id={call.run_id} tell={setKnown} /> : null}
        <details class="small"><summary>What it was given</summary><Raw text={JSON.stringify(call.arguments, null, 2)} /></details>
      </details>
      {says ? <p class="small says">{plain(glance(says, 200))}</p> : null}
      {call.run_id ? <p class="small"><a href={`/runs/${part(call.run_id)}`}>See its run</a></p> : null}
    </li>
  )
}

// A delegation's run, as it goes on.
function Glance({ id, tell }: { id: string; tell: (status: string) => void }): JSX.Element {
  const run = useRun(id)
  useEffect(() => run.value && tell(run.value.status), [run.value?.status])
  return (
    <Loaded from={run}>
      {(view) => (
        <>
          <p class="small">{plain(view.standing.says || view.summary)}</p>
          <ul class="plain small">{stepsOf(view).slice(0, 20).map((step) => <li key={step.id}><a href={`/runs/${part(id)}?step=${part(step.id)}`}>{step.id}</a> <State status={step.status} /> <span class="quiet">{plain(shortened(step.why || (typeof step.output === 'string' ? step.output : ''), 120))}</span></li>)}</ul>
        </>
      )}
    </Loaded>
  )
}
