// The console: which page is shown, the way to the others, and how fresh all of it is.
import { Component, render, type ComponentChildren, type JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { asApiError, get, isLoggedOut, logIn, session } from './api'
import { changes, connection, lastChange, lastHeard, noteEvents } from './live'
import { announce, announcement, Dialog, Failure, Field, Title, useAction, useNow } from './parts'
import { useResource } from './resource'
import { listen, path, title } from './router'
import { Agents } from './pages/agents'
import { Approvals } from './pages/approvals'
import { Chat } from './pages/chat'
import { Compare } from './pages/compare'
import { Goals } from './pages/goals'
import { Playbooks } from './pages/playbooks'
import { Run } from './pages/run'
import { Runs } from './pages/runs'
import { Settings } from './pages/settings'
import { Single } from './pages/single'
import { Triggers } from './pages/triggers'
import { Workflow, Workflows } from './pages/workflows'
import type { Gate, RunRow } from './types'
import { ago, count } from './words'
import './style.css'

// Chat, workflows and single tasks are the kinds of work; goals, playbooks and triggers stand beside them.
const QUIET_MS = 25_000 // the server says every ten seconds that it is there
const MENU: [string, [string, string][]][] = [
  ['Work', [['/chat', 'Chat'], ['/workflows', 'Workflows'], ['/single', 'Single and batch']]],
  ['Activity', [['/runs', 'Runs'], ['/approvals', 'Approvals']]],
  ['Until, how, when', [['/goals', 'Goals'], ['/playbooks', 'Playbooks'], ['/triggers', 'Triggers']]],
  ['System', [['/agents', 'Agents and models'], ['/settings', 'Settings']]],
]

// An address that somebody has typed may hold a per cent sign that means nothing.
function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    return piece
  }
}

// A page that breaks must not take the way to the others with it.
class Bounded extends Component<{ children: ComponentChildren }, { thrown?: unknown }> {
  static getDerivedStateFromError(thrown: unknown): { thrown: unknown } {
    return { thrown }
  }

  render(): ComponentChildren {
    if (this.state.thrown === undefined) return this.props.children
    return (
      <>
        <Title page="This page broke">This page broke</Title>
        <Failure error={asApiError(this.state.thrown)} next={<p>That is a fault of the console, and not of the run. The same is at hand in the terminal: <code>stretto report</code>. <button onClick={() => location.reload()}>Load it again</button></p>} />
      </>
    )
  }
}

function Page(): JSX.Element {
  const [, first = '', second, ...rest] = path.value.split('/').map(decoded)
  const name = [second, ...rest].filter(Boolean).join('/')
  switch (first) {
    case '':
    case 'workflows':
      return name ? <Workflow key={name} name={name} /> : <Workflows />
    case 'runs':
      return name ? <Run key={name} id={name} /> : <Runs />
    case 'compare':
      return <Compare />
    case 'approvals':
      return <Approvals />
    case 'chat':
      return <Chat id={name} />
    case 'goals':
      return <Goals key={name} id={name} />
    case 'triggers':
      return <Triggers />
    case 'single':
      return <Single />
    case 'playbooks':
      return <Playbooks name={name} />
    case 'agents':
      return <Agents />
    case 'settings':
      return <Settings />
    default:
      return <><Title page="Not found">There is no such page</Title><p><a href="/workflows">Workflows</a> · <a href="/runs">Runs</a></p></>
  }
}

async function gates(): Promise<{ approvals: Gate[] }> {
  const found = await get<{ approvals: Gate[] }>('/api/approvals?brief=true') // each page asks at each change
  noteEvents(found.approvals.map((gate) => gate.asked_at))
  return found
}

// When anything happened last, on a page that shows no runs. What goes on tells it anew by itself.
async function noteRuns(): Promise<void> {
  const found = await get<{ runs: RunRow[] }>('/api/runs?limit=20').catch(() => ({ runs: [] }))
  noteEvents(found.runs.flatMap((run) => [run.started_at, run.ended_at]))
}

function Shell(): JSX.Element {
  const waiting = useResource(gates, 'approvals', '*')
  useEffect(() => void noteRuns(), [])
  const many = waiting.value?.approvals.length ?? 0
  const name = title.value
  useEffect(() => {
    document.title = [many ? `(${many})` : '', name ? `${name} · Stretto` : 'Stretto'].filter(Boolean).join(' ')
  }, [many, name])
  const here = `/${path.value.split('/')[1] || 'workflows'}`
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [path.value])
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      <div class="shell">
        <nav class="side" aria-label="Console">
          <div class="top">
            <a class="name" href="/workflows"><Mark />Stretto</a>
            <button class="fold" aria-expanded={isOpen} aria-controls="menu" onClick={() => setOpen(!isOpen)}>Menu{many ? <span class="badge" aria-label={`${count(many, 'approval')} waiting`}>{many}</span> : null}</button>
          </div>
          <div id="menu" class={`links ${isOpen ? 'open' : ''}`}>
            {MENU.map(([heading, links]) => (
              <div key={heading}>
                <h2>{heading}</h2>
                <ul>
                  {links.map(([to, name]) => (
                    <li key={to}>
                      <a href={to} aria-current={here === to ? 'page' : undefined}>
                        {name}{to === '/approvals' && many ? <span class="badge" aria-label={`${count(many, 'approval')} waiting`}>{many}</span> : null}
                      </a>
                    </li>
                  ))}
                </ul>
              </div>
            ))}
          </div>
          <Freshness />
        </nav>
        <main id="main" tabIndex={-1}><Bounded key={path.value}><Page /></Bounded></main>
      </div>
      {isLoggedOut.value ? <LoggedOut /> : null}
      <div class="visually-hidden" role="status" aria-live="polite">{announcement.value}</div>
    </>
  )
}

// Three voices, each of which enters before the last has ended.
function Mark(): JSX.Element {
  return <svg class="mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><rect x="2" y="4" width="11" height="4" rx="2" /><rect x="6.5" y="10" width="11" height="4" rx="2" /><rect x="11" y="16" width="11" height="4" rx="2" /></svg>
}

// A session ends while somebody types: the page stays as it is below, and goes on once it is known again who asks.
function LoggedOut(): JSX.Element {
  const action = useAction()
  const [token, setToken] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => (await logIn(token.trim()), announce('You are logged in again.')))
  }
  useEffect(() => {
    const look = (): void => void session().catch(() => undefined) // another tab may have logged in
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [])
  return (
    <Dialog title="You are logged out" close={() => (isLoggedOut.value = false)} error={action.error}>
      <p>The session has ended. What you typed on this page is kept. Give the token here, or open the link that <code>stretto serve</code> prints in another tab and come back.</p>
      <form onSubmit={submit}>
        <Field label="Token">{(id) => <input id={id} class="wide mono" type="password" autocomplete="off" required value={token} onInput={(event) => setToken(event.currentTarget.value)} />}</Field>
        <p class="bar"><button class="main" disabled={action.isBusy}>Log in</button><button type="button" onClick={() => (isLoggedOut.value = false)}>Later</button></p>
      </form>
    </Dialog>
  )
}

// How old what is shown may be: the state of the stream, and when it last said that anything changed.
function Freshness(): JSX.Element {
  useNow(1000)
  const now = Date.now() // by the clock that has noted both
  // A stream that is refused looks like one that is lost, and one that is there again tells of a login in another tab.
  useEffect(() => {
    if (connection.value === 'lost' || isLoggedOut.value) void get('/api/session').catch(() => undefined)
  }, [connection.value])
  const isStale = connection.value === 'lost' || (connection.value === 'live' && now - lastHeard.value > QUIET_MS)
  const word = isLoggedOut.value ? 'logged out' : isStale ? 'connection lost, trying again' : { connecting: 'connecting …', live: 'live', lost: '' }[connection.value]
  return (
    <p class="freshness small">
      <span class={`state ${isStale ? 'bad' : connection.value === 'live' ? 'good' : 'idle'}`} data-mark="●">{word}</span>
      <span class="quiet">{lastChange.value ? `last event ${ago(lastChange.value / 1000, now)}` : 'no event yet'}</span>
    </p>
  )
}

const FOCUSABLE = 'a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex="0"]'

// A button may be switched off while its work is done, and go away with what it decided: whoever works by keys goes on
// there or nearby, and not at the top of the page.
function keepFocus(app: HTMLElement): void {
  let last: HTMLElement[] = [] // what had the focus, and what that stands in
  addEventListener('pointerdown', () => (last = []), true)
  addEventListener('focusin', ({ target }) => {
    last = []
    for (let at = target as HTMLElement | null; at && at !== app; at = at.parentElement) last.push(at)
  })
  const look = (): void => {
    const [own] = last
    if (!own || (document.activeElement && document.activeElement !== document.body)) return
    if (own.isConnected && !own.hasAttribute('disabled')) return own.focus({ preventScroll: true })
    if (own.isConnected) return
    const home = last.find((each) => each.isConnected && each.matches('section, form, li, .detail'))
    last = []
    ;(home?.querySelector<HTMLElement>(FOCUSABLE) ?? document.querySelector<HTMLElement>('main h1'))?.focus({ preventScroll: true })
  }
  new MutationObserver(look).observe(app, { subtree: true, childList: true, attributeFilter: ['disabled'] })
}

// A browser gives the locks by which tabs share a stream, and the clipboard, to addresses that it trusts alone.
function Untrusted(): JSX.Element {
  return (
    <main>
      <h1>The console needs a safe address</h1>
      <p>This page was loaded over plain HTTP from another machine or by another name, and the browser withholds from such pages what the console is made with. What is shown and typed could be read on the way, too.</p>
      <p>Open it at <code>https://</code> through a proxy, or at <code>http://localhost:{location.port}</code>: from another machine <code>ssh -L {location.port}:127.0.0.1:{location.port} {location.hostname}</code> brings it there.</p>
    </main>
  )
}

const app = document.getElementById('app')!
if (isSecureContext) {
  listen()
  changes.start()
  keepFocus(app)
}
render(isSecureContext ? <Shell /> : <Untrusted />, app)
