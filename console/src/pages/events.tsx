// The journal of a run: a slider replays it, event by event.
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { get, part } from '../api'
import { Raw } from '../markdown'
import { Cell, List, Loaded, State } from '../parts'
import type { Spoken } from '../live'
import { useResource } from '../resource'
import { partName } from '../spoken'
import type { RunAnswer } from '../types'
import { clock, count, duration, shortened } from '../words'

interface Stored {
  seq: number
  type: string
  at: number
  attempt?: Spoken['attempt']
  step?: string
  [key: string]: unknown
}

const PAGE = 1000 // events that the server is asked for at once
const SHOWN = 200

// A journal only grows: a load asks for what came after the last event that is known.
async function rest(path: string, known: Stored[]): Promise<Stored[]> {
  const all = [...known]
  for (;;) {
    const { events } = await get<{ events: Stored[] }>(`${path}?limit=${PAGE}&after=${all.at(-1)?.seq ?? 0}`)
    all.push(...events)
    if (events.length < PAGE) return all
  }
}

export function Events({ view }: { view: RunAnswer }): JSX.Element {
  const known = useRef<Stored[]>([])
  const load = async (): Promise<Stored[]> => (known.current = await rest(`/api/runs/${part(view.run_id)}/journal`, known.current))
  const events = useResource(load, view.run_id, view.run_id)
  return <Loaded from={events}>{(all) => (all.length ? <Replay events={all} /> : <p class="quiet">Nothing is in the journal yet.</p>)}</Loaded>
}

function Replay({ events }: { events: Stored[] }): JSX.Element {
  const [until, setUntil] = useState<number | null>(null)
  const [isPlaying, setPlaying] = useState(false)
  const most = Math.min(until ?? events.length, events.length)
  const shown = useMemo(() => events.slice(0, most), [events, most])
  const states = useMemo(() => statesAfter(shown), [shown])
  const last = shown.at(-1)!
  useEffect(() => {
    if (!isPlaying) return undefined
    const step = Math.max(1, Math.round(events.length / 200))
    const timer = setInterval(() => setUntil((at) => Math.min((at ?? 0) + step, events.length)), 100)
    return () => clearInterval(timer)
  }, [isPlaying, events.length])
  useEffect(() => {
    if (isPlaying && until !== null && until >= events.length) setPlaying(false)
  }, [isPlaying, until, events.length])
  const play = (): void => {
    if (!isPlaying && most >= events.length) setUntil(1)
    setPlaying(!isPlaying)
  }
  return (
    <>
      <div class="bar replay">
        <button onClick={play}>{isPlaying ? 'Pause' : 'Play'}</button>
        <button aria-label="One event back" disabled={most <= 1} onClick={() => setUntil(most - 1)}>‹</button>
        <input type="range" aria-label="Event" aria-valuetext={`${most} of ${events.length}: ${nameOf(last)}`} min={1} max={events.length} value={most} onInput={(event) => setUntil(Number(event.currentTarget.value))} />
        <button aria-label="One event on" disabled={most >= events.length} onClick={() => setUntil(most + 1)}>›</button>
        <span class="small quiet">event {most.toLocaleString('en')} of {events.length.toLocaleString('en')} · {duration(last.at - events[0]!.at) || '0 ms'} after the start</span>
      </div>
      <ul class="chips" aria-label="The steps at this event">
        {[...states].slice(-60).map(([step, state]) => <li key={step}><span class="mono">{shortened(step, 30)}</span> <State status={state} /></li>)}
      </ul>
      {states.size > 60 ? <p class="small quiet">The 60 steps that changed last, of {count(states.size, 'step')}.</p> : null}
      <List label="Events" columns={[{ name: 'Event' }, { name: 'Step' }, { name: 'After', is: 'num' }, { name: 'No.', is: 'num' }]}>
        {shown.slice(-SHOWN).reverse().map((event) => (
          <tr key={event.seq} role="row">
            <Cell is="title"><details><summary>{nameOf(event)}</summary><Whole event={event} /></details></Cell>
            <Cell name="Step" is="mono">{[stepOf(event), partName(event.attempt?.part)].filter(Boolean).join(' · ')}</Cell>
            <Cell name="After" is="num nowrap"><time title={clock(event.at)}>{duration(event.at - events[0]!.at) || '0 ms'}</time></Cell>
            <Cell name="No." is="num">{event.seq}</Cell>
          </tr>
        ))}
      </List>
      {most > SHOWN ? <p class="small quiet">The {SHOWN} events up to this one; move the slider for those before.</p> : null}
    </>
  )
}

// The JSON of an event is made once it is looked at: the first event holds the whole plan.
function Whole({ event }: { event: Stored }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const details = box.current?.closest('details')
    const look = (): void => setOpen(Boolean(details?.open))
    details?.addEventListener('toggle', look)
    return () => details?.removeEventListener('toggle', look)
  }, [])
  return <div ref={box}>{isOpen ? <Raw text={JSON.stringify(event, null, 2)} /> : null}</div>
}

function nameOf(event: Stored): string {
  return event.type.replaceAll('_', ' ')
}

function stepOf(event: Stored): string | undefined {
  return event.attempt?.step ?? event.step
}

const WORDS: Record<string, string> = {
  attempt_started: 'running', attempt_succeeded: 'succeeded', attempt_failed: 'failed', attempt_cancelled: 'cancelled',
  approval_requested: 'awaiting approval', approved: 'waiting', rejected: 'failed', merge_held: 'awaiting approval', merge_failed: 'failed',
}

// As far as the events themselves say it: what follows from them is in the run's own page.
function statesAfter(events: Stored[]): Map<string, string> {
  const states = new Map<string, string>()
  for (const event of events) {
    const [step, word] = [stepOf(event), WORDS[event.type]]
    if (!step || !word) continue
    const name = [step, partName(event.attempt?.part)].filter(Boolean).join(' · ') // of several branches each goes its own way
    states.delete(name) // what changed last comes last
    states.set(name, word)
  }
  return states
}
