// Who is logged in, and what the server's machine has and lacks.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, remove, session } from '../api'
import { Cell, Dialog, Facts, Failure, List, Loaded, State, Tallies, Title, useAction } from '../parts'
import { useResource } from '../resource'

interface Check {
  name: string
  status: string
  says: string
  fix: string
  essential: boolean
}

const FIRST = ['missing', 'ok', 'optional']

export function Settings(): JSX.Element {
  const who = useResource(() => session(), 'session')
  const health = useResource(() => get<{ checks: Check[] }>('/api/doctor'), 'doctor')
  return (
    <>
      <Title page="Settings">Settings</Title>
      <h2 class="first">You</h2>
      <Loaded from={who}>{(found) => <You name={found.name} role={found.role} />}</Loaded>
      <div class="bar between section"><h2>This machine</h2><button onClick={() => void health.reload()}>Check again</button></div>
      <Loaded from={health}>{({ checks }) => <Checks checks={checks} />}</Loaded>
      <p class="quiet">Settings are in <code>stretto.yaml</code> of the project and in <code>~/.stretto/stretto.yaml</code>. In the terminal: <code>stretto doctor</code>.</p>
    </>
  )
}

function You({ name, role }: { name: string; role: string }): JSX.Element {
  const action = useAction()
  const [isAsking, setAsking] = useState(false)
  const leave = (path: string): void => void action.run(async () => { await remove(path); location.reload() })
  return (
    <>
      <div class="bar between card">
        <Facts of={[['Logged in as', name], ['Role', `${role}: ${ROLES[role] ?? ''}`]]} />
        <div class="bar">
          <button disabled={action.isBusy} onClick={() => leave('/api/session')}>Log out</button>
          <button class="bad" disabled={action.isBusy} onClick={() => setAsking(true)}>Log out everywhere …</button>
        </div>
      </div>
      {action.error && !isAsking ? <Failure error={action.error} /> : null}
      {isAsking ? (
        <Dialog title="Log out everywhere?" close={() => setAsking(false)} error={action.error}>
          <p>Every browser in which {name} is logged in is logged out, this one too. Tokens stay as they are, and runs go on.</p>
          <p class="bar"><button class="bad" disabled={action.isBusy} onClick={() => leave('/api/session?everywhere=true')}>Log out everywhere</button><button onClick={() => setAsking(false)}>Stay logged in</button></p>
        </Dialog>
      ) : null}
    </>
  )
}

const ROLES: Record<string, string> = { viewer: 'sees everything', operator: 'also runs and decides', author: 'also changes workflows', admin: 'may do everything' }

function Checks({ checks }: { checks: Check[] }): JSX.Element {
  const [status, setStatus] = useState('')
  const shown = checks.filter((check) => !status || check.status === status).sort((a, b) => FIRST.indexOf(a.status) - FIRST.indexOf(b.status))
  return (
    <>
      <Tallies of={checks.map((check) => check.status)} chosen={status} choose={setStatus} />
      <List label="What the server's machine has and lacks" columns={[{ name: 'What' }, { name: 'State' }, { name: 'Found' }]}>
        {shown.map((check) => (
          <tr key={check.name} role="row">
            <Cell is="title">{check.name}</Cell>
            <Cell is="nowrap"><State status={check.status} /></Cell>
            <Cell is="text small">{check.says}{check.fix ? <div class="quiet">{check.essential || check.status === 'missing' ? 'To fix it' : 'To add it'}: <code>{check.fix}</code></div> : null}</Cell>
          </tr>
        ))}
      </List>
    </>
  )
}
