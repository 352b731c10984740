// Who is logged in, and what the server's machine has and lacks.
import type { JSX } from 'preact'
import { get, remove, session } from '../api'
import { Loaded, State, Title, useAction } from '../parts'
import { useResource } from '../resource'

interface Check {
  name: string
  status: string
  says: string
  fix: string
}

export function Settings(): JSX.Element {
  const who = useResource(() => session(), 'session')
  const health = useResource(() => get<{ checks: Check[] }>('/api/doctor'), 'doctor')
  const action = useAction()
  return (
    <>
      <Title page="Settings">Settings</Title>
      <Loaded from={who}>{({ name, role }) => <p>Logged in as <strong>{name}</strong>, role <strong>{role}</strong>. <button disabled={action.isBusy} onClick={() => void action.run(async () => { await remove('/api/session'); location.reload() })}>Log out</button></p>}</Loaded>
      <h2>This machine</h2>
      <Loaded from={health}>
        {({ checks }) => (
          <div class="scroll"><table>
            <thead><tr><th>What</th><th>State</th><th>Says</th></tr></thead>
            <tbody>{checks.map((check) => <tr><td>{check.name}</td><td><State status={check.status} /></td><td class="small">{check.says} {check.fix ? <span class="quiet">{check.fix}</span> : null}</td></tr>)}</tbody>
          </table></div>
        )}
      </Loaded>
      <p class="quiet">Settings are in <code>stretto.yaml</code> of the project and in <code>~/.stretto/stretto.yaml</code>. In the terminal: <code>stretto doctor</code>.</p>
    </>
  )
}
