// Playbooks: methods that steps are given. Search, read, pin, delete with undo.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post, remove } from '../api'
import { Prose } from '../markdown'
import { announce, Empty, Failure, Loaded, Title, useAction, When } from '../parts'
import { useResource } from '../resource'
import { query, setQuery } from '../router'

interface Playbook {
  name: string
  description: string
  source: string
  confidence?: number | null
  pinned?: boolean
  uses?: number
  last_used_at?: number | null
  deleted?: boolean
  score?: number
}

export function Playbooks({ name }: { name: string }): JSX.Element {
  if (name) return <One name={name} />
  const words = query.value.get('q') ?? ''
  const found = useResource(() => get<{ playbooks: Playbook[] }>(`/api/playbooks${words ? `?query=${part(words)}` : ''}`), words)
  return (
    <>
      <Title page="Playbooks">Playbooks</Title>
      <p class="quiet">A playbook is a method in words. It never runs: the ones that fit a step are given to its subagent.</p>
      <input type="search" aria-label="Search the playbooks" placeholder="search by name, description and text" value={words} onChange={(event) => setQuery('q', event.currentTarget.value)} />
      <Loaded from={found}>
        {({ playbooks }) =>
          playbooks.length ? (
            <div class="scroll"><table>
              <thead><tr><th>Name</th><th>When it helps</th><th>Source</th><th class="num">Confidence</th><th>Last used</th></tr></thead>
              <tbody>{playbooks.map((each) => <tr key={each.name}><td><a href={`/playbooks/${part(each.name)}`}>{each.name}</a>{each.pinned ? <span class="quiet small"> pinned</span> : null}</td><td>{each.description}</td><td>{each.source}</td><td class="num">{each.confidence?.toFixed(2) ?? ''}</td><td><When at={each.last_used_at} /></td></tr>)}</tbody>
            </table></div>
          ) : <Empty what={words ? `No playbook fits “${words}”.` : 'There is no playbook yet. A folder with a SKILL.md is one.'} command="stretto playbooks add PATH" />}
      </Loaded>
    </>
  )
}

function One({ name }: { name: string }): JSX.Element {
  const found = useResource(() => get<{ playbook: Playbook & { body: string; files: string[] } }>(`/api/playbooks/${part(name)}`), name)
  const action = useAction()
  const [isDeleted, setDeleted] = useState(false)
  const path = `/api/playbooks/${part(name)}`
  const change = (work: () => Promise<unknown>, says: string): void => void action.run(async () => { await work(); announce(says); await found.reload() })
  return (
    <>
      <p class="quiet small"><a href="/playbooks">Playbooks</a></p>
      <Title page={name}>{name}</Title>
      {action.error ? <Failure error={action.error} /> : null}
      {isDeleted ? <p class="card warning">Deleted. <button onClick={() => change(async () => { await post(`${path}/restore`); setDeleted(false) }, 'restored')}>Undo</button></p> : null}
      <Loaded from={found}>
        {({ playbook }) => (
          <>
            <p>{playbook.description}</p>
            <p class="bar">
              {playbook.pinned ? <button disabled={action.isBusy} onClick={() => change(() => post(`${path}/unpin`), 'unpinned')}>Unpin</button> : <button disabled={action.isBusy} onClick={() => change(() => post(`${path}/pin`), 'pinned')}>Pin</button>}
              {isDeleted ? null : <button class="bad" disabled={action.isBusy} onClick={() => void action.run(async () => { await remove(path); setDeleted(true); announce('deleted') })}>Delete</button>}
            </p>
            <Prose text={playbook.body} />
            {playbook.files.length ? <p class="quiet">Files: {playbook.files.join(', ')}</p> : null}
          </>
        )}
      </Loaded>
    </>
  )
}
