// Who is logged in, and what the server's machine has and lacks.
import type { JSX } from 'preact'
import { get, remove, session } from '../api'
import { Facts, Loaded, State, Tallies, Title, useAction } from '../parts'
import { useResource } from '../resource'
import { useState } from 'preact/hooks'

interface Check {
  name: string
  status: string
  says: string
  fix: string
  essential: boolean
}

const FIRST = ['missing', 'optional', 'ok']

export function Settings(): JSX.Element {
  const who = useResource(() => session(), 'session')
  const health = useResource(() => get<{ checks: Check[] }>('/api/doctor'), 'doctor')
  const action = useAction()
  return (
    <>
      <Title page="Settings">Settings</Title>
      <Loaded from={who}>
        {({ name, role }) => (
          <div class="bar between">
            <Facts of={[['Logged in as', name], ['Role', role]]} />
            <button disabled={action.isBusy} onClick={() => void action.run(async () => { await remove('/api/session'); location.reload() })}>Log out</button>
          </div>
        )}
      </Loaded>
      <div class="bar between"><h2>This machine</h2><button onClick={() => void health.reload()}>Check again</button></div>
      <Loaded from={health}>{({ checks }) => <Checks checks={checks} />}</Loaded>
      <p class="quiet">Settings are in <code>stretto.yaml</code> of the project and in <code>~/.stretto/stretto.yaml</code>. In the terminal: <code>stretto doctor</code>.</p>
    </>
  )
}

function Checks({ checks }: { checks: Check[] }): JSX.Element {
  const [status, setStatus] = useState('')
  const shown = checks.filter((check) => !status || check.status === status).sort((a, b) => FIRST.indexOf(a.status) - FIRST.indexOf(b.status))
  return (
    <>
      <Tallies of={checks.map((check) => check.status)} chosen={status} choose={setStatus} />
      <div class="scroll"><table>
        <thead><tr><th>What</th><th>State</th><th>Found</th></tr></thead>
        <tbody>{shown.map((check) => <tr key={check.name}><td>{check.name}</td><td class="nowrap"><State status={check.status} /></td><td class="small">{check.says}{check.fix ? <div class="quiet">To fix it: {check.fix}</div> : null}</td></tr>)}</tbody>
      </table></div>
    </>
  )
}
