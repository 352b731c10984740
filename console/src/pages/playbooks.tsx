// Playbooks: methods that steps are given. Search, read, pin, delete with undo, and who changed what.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part, post, remove } from '../api'
import { plain, Prose } from '../markdown'
import { announce, Cell, Empty, Facts, Failure, List, Loaded, Title, useAction, useSettled, When } from '../parts'
import { ON_RETURN, useResource } from '../resource'
import { query, setQuery } from '../router'
import { count } from '../words'

interface Playbook {
  name: string
  description: string
  source: string
  layer: string
  confidence: number
  pinned: boolean
  uses: number
  last_used_at: number | null
  fault: string | null
  score?: number
}

interface Change {
  at: number
  action: string
  name: string
  why: string
  by: string
}

interface Whole {
  playbook: Playbook & { body: string; files: string[]; origin: Record<string, string> }
  audit: Change[]
  used_by: { run_id: string; workflow: string; step: string; at: number }[]
}

export function Playbooks({ name }: { name: string }): JSX.Element {
  return name ? <One key={name} name={name} /> : <All />
}

function All(): JSX.Element {
  const words = query.value.get('q') ?? ''
  const asked = useSettled(words.trim())
  const found = useResource(() => get<{ playbooks: Playbook[] }>(`/api/playbooks${asked ? `?query=${part(asked)}&limit=50` : ''}`), asked)
  const changes = useResource(() => get<{ audit: Change[] }>('/api/playbook-changes'), 'changes')
  return (
    <>
      <Title page="Playbooks">Playbooks</Title>
      <p class="quiet">A playbook is a method in words. It never runs: the ones that fit a step are given to its subagent.</p>
      <input class="wide" type="search" aria-label="Search the playbooks" placeholder="search by name, description and text" value={words} onInput={(event) => setQuery('q', event.currentTarget.value)} />
      <Loaded from={found}>
        {({ playbooks }) =>
          playbooks.length ? (
            <List label="Playbooks" columns={[{ name: 'Name' }, { name: 'When it helps' }, { name: 'Source' }, { name: asked ? 'Fits' : 'Confidence', is: 'num' }, { name: 'Used', is: 'num' }, { name: 'Last used' }]}>
              {playbooks.map((each) => <Row key={each.name} of={each} />)}
            </List>
          ) : asked ? <p>No playbook fits “{asked}”. <button onClick={() => setQuery('q', null)}>Show all</button></p> : <Empty what="There is no playbook yet. A folder with a SKILL.md is one; a step that went well can be kept as one, too." action={<a class="button" href="/runs?status=complete">Choose a step of a run</a>} command="stretto playbooks add PATH" />}
      </Loaded>
      <h2>What changed</h2>
      <Loaded from={changes}>{({ audit }) => (audit.length ? <Audit changes={audit} isOfAll /> : <p class="quiet">Nobody has added, pinned or deleted one yet.</p>)}</Loaded>
    </>
  )
}

function Row({ of }: { of: Playbook }): JSX.Element {
  return (
    <tr role="row">
      <Cell is="title"><a href={`/playbooks/${part(of.name)}`}>{plain(of.name)}</a>{of.pinned ? <> <span class="chip">pinned</span></> : null}</Cell>
      <Cell is="text">{of.fault ? <span class="state bad" data-mark="✗">{plain(of.fault)}</span> : plain(of.description)}</Cell>
      <Cell name="Source">{SOURCES[of.source] ?? of.source}</Cell>
      <Cell name={of.score === undefined ? 'Confidence' : 'Fits'} is="num">{of.score === undefined ? percent(of.confidence) : of.score.toFixed(1)}</Cell>
      <Cell name="Used" is="num nowrap">{of.uses ? count(of.uses, 'time') : 'never'}</Cell>
      <Cell name="Last used" is="nowrap">{of.last_used_at ? <When at={of.last_used_at} /> : ''}</Cell>
    </tr>
  )
}

const SOURCES: Record<string, string> = { skill: 'a folder', emitted: 'kept from a run' }

function percent(share: number): string {
  return `${Math.round(100 * share)} %`
}

function Audit({ changes, isOfAll }: { changes: Change[]; isOfAll?: boolean }): JSX.Element {
  return (
    <List label="What changed" columns={[{ name: 'What' }, { name: 'When' }, { name: 'By' }, { name: 'Why' }]}>
      {changes.map((each, number) => (
        <tr key={number} role="row">
          <Cell is="title">{ACTIONS[each.action] ?? each.action}{isOfAll && each.name ? <> <a href={`/playbooks/${part(each.name)}`}>{plain(each.name)}</a></> : null}</Cell>
          <Cell name="When" is="nowrap"><When at={each.at} /></Cell>
          <Cell name="By">{each.by || 'Stretto'}</Cell>
          <Cell name="Why">{each.why === 'pruned 0, merged 0' ? 'nothing to prune or to merge' : plain(each.why)}</Cell>
        </tr>
      ))}
    </List>
  )
}

const ACTIONS: Record<string, string> = { add: 'added', capture: 'kept from a run', pin: 'pinned', unpin: 'unpinned', delete: 'deleted', restore: 'restored', prune: 'pruned, since nobody used it', merge: 'merged into another one', curate: 'looked through all of them' }

function One({ name }: { name: string }): JSX.Element {
  const found = useResource(() => get<Whole>(`/api/playbooks/${part(name)}`), name, ON_RETURN)
  const action = useAction()
  const [isDeleted, setDeleted] = useState(false)
  const path = `/api/playbooks/${part(name)}`
  const change = (work: () => Promise<unknown>, says: string): void => void action.run(async () => { await work(); announce(says); await found.reload() })
  const undo = (): void => change(async () => { await post(`${path}/restore`); setDeleted(false) }, `${name} is restored.`)
  return (
    <>
      <p class="crumbs"><a href="/playbooks">Playbooks</a> / {plain(name)}</p>
      <Loaded from={found} title={name}>
        {({ playbook, audit, used_by }) => (
          <>
            <div class="bar between top">
              <Title page={name}>{plain(name)}</Title>
              <div class="bar">
                {isDeleted ? null : playbook.pinned ? <button disabled={action.isBusy} onClick={() => change(() => post(`${path}/unpin`), `${name} is not pinned any more.`)}>Unpin</button> : <button disabled={action.isBusy} onClick={() => change(() => post(`${path}/pin`), `${name} is pinned.`)}>Pin</button>}
                {isDeleted ? null : <button class="bad" disabled={action.isBusy} onClick={() => void action.run(async () => { await remove(path); setDeleted(true); announce(`${name} is deleted.`) })}>Delete</button>}
              </div>
            </div>
            {action.error ? <Failure error={action.error} /> : null}
            {isDeleted ? <p class="card warning">Deleted: no step is given it any more. Its folder stays. <button disabled={action.isBusy} onClick={undo}>Undo</button></p> : null}
            <p>{plain(playbook.description)}</p>
            {playbook.fault ? <p class="card error">{plain(playbook.fault)}</p> : null}
            <Facts
              of={[
                ['Source', SOURCES[playbook.source] ?? playbook.source], ['Layer', playbook.layer], ['Confidence', percent(playbook.confidence)], ['Pinned', playbook.pinned ? 'yes: curation leaves it alone' : ''],
                ['Used', playbook.uses ? count(playbook.uses, 'time') : 'never'], ['Last used', playbook.last_used_at ? <When at={playbook.last_used_at} /> : ''],
                ['Made from', playbook.origin.run ? <a href={`/runs/${part(playbook.origin.run)}?step=${part(playbook.origin.step ?? '')}`}>a step of a run</a> : ''],
              ]}
            />
            <div class="card"><Prose text={playbook.body} /></div>
            {playbook.files.length ? <p class="quiet">Files: {playbook.files.map(plain).join(', ')}</p> : null}
            <h2>Used by</h2>
            {used_by.length ? <ul>{used_by.map((each) => <li key={`${each.run_id} ${each.step}`}><a href={`/runs/${part(each.run_id)}?step=${part(each.step)}`}>{each.workflow} / {each.step}</a> <span class="quiet small"><When at={each.at} /></span></li>)}</ul> : <p class="quiet">No step has been given it yet.</p>}
            <h2>What changed</h2>
            {audit.length ? <Audit changes={audit} /> : <p class="quiet">Nothing is recorded.</p>}
          </>
        )}
      </Loaded>
    </>
  )
}
