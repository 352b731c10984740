// The console: which page is shown, the way to the others, and how fresh all of it is.
import { render, type JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { get } from './api'
import { changes, connection, lastChange, lastHeard } from './live'
import { announcement, Title, useNow } from './parts'
import { useResource } from './resource'
import { listen, path } from './router'
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

function Page(): JSX.Element {
  const [, first = '', second, ...rest] = path.value.split('/').map(decodeURIComponent)
  const name = [second, ...rest].filter((each) => each !== undefined).join('/')
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

function Shell(): JSX.Element {
  const waiting = useResource(() => get<{ approvals: unknown[] }>('/api/approvals'), 'approvals', '*')
  const many = waiting.value?.approvals.length ?? 0
  useEffect(() => {
    const bare = document.title.replace(/^\(\d+\) /, '')
    document.title = many ? `(${many}) ${bare}` : bare
  })
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
        <main id="main" tabIndex={-1}><Page /></main>
      </div>
      <div class="visually-hidden" role="status" aria-live="polite">{announcement.value}</div>
    </>
  )
}

// Three voices, each of which enters before the last has ended.
function Mark(): JSX.Element {
  return <svg class="mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><rect x="2" y="4" width="11" height="4" rx="2" /><rect x="6.5" y="10" width="11" height="4" rx="2" /><rect x="11" y="16" width="11" height="4" rx="2" /></svg>
}

// How old what is shown may be: the state of the stream, and when it last said that anything changed.
function Freshness(): JSX.Element {
  const now = useNow(1000)
  const isStale = connection.value === 'lost' || (connection.value === 'live' && now - lastHeard.value > QUIET_MS)
  const word = isStale ? 'connection lost, trying again' : { connecting: 'connecting …', live: 'live', lost: '' }[connection.value]
  return (
    <p class="freshness small">
      <span class={`state ${isStale ? 'bad' : connection.value === 'live' ? 'good' : 'idle'}`} data-mark="●">{word}</span>
      <span class="quiet">{lastChange.value ? `last event ${ago(lastChange.value / 1000, now)}` : 'no change yet'}</span>
    </p>
  )
}

listen()
changes.start()
render(<Shell />, document.getElementById('app')!)
