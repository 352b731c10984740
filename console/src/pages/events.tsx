// The journal of a run: a slider replays it, event by event.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, part } from '../api'
import { plain } from '../markdown'
import { Loaded } from '../parts'
import { useResource } from '../resource'
import { clock } from '../words'

interface Stored {
  seq: number
  type: string
  at: number
  [key: string]: unknown
}

export function Events({ id }: { id: string }): JSX.Element {
  const events = useResource(() => get<{ events: Stored[] }>(`/api/runs/${part(id)}/journal`), id, id)
  return <Loaded from={events}>{({ events: all }) => <Replay events={all} />}</Loaded>
}

function Replay({ events }: { events: Stored[] }): JSX.Element {
  const [until, setUntil] = useState<number | null>(null)
  const most = until ?? events.length
  const shown = events.slice(0, most)
  const states = new Map<string, string>()
  for (const event of shown) {
    const step = (event.attempt as { step?: string } | undefined)?.step ?? (event.step as string | undefined)
    if (step) states.set(step, event.type.replaceAll('_', ' '))
  }
  return (
    <>
      <label for="replay">Events {most} of {events.length}</label>
      <input id="replay" type="range" min={1} max={events.length} value={most} style="width:100%" onInput={(event) => setUntil(Number(event.currentTarget.value))} />
      <p class="small">{[...states].map(([step, state]) => `${step}: ${state}`).join(' · ')}</p>
      <div class="scroll">
        <table>
          <thead><tr><th class="num">No.</th><th>When</th><th>Event</th><th>Step</th></tr></thead>
          <tbody>
            {shown.slice(-200).reverse().map((event) => (
              <tr key={event.seq}>
                <td class="num">{event.seq}</td>
                <td class="small">{clock(event.at)}</td>
                <td><details><summary>{event.type.replaceAll('_', ' ')}</summary><pre tabIndex={0}>{plain(JSON.stringify(event, null, 2))}</pre></details></td>
                <td>{(event.attempt as { step?: string } | undefined)?.step ?? (event.step as string | undefined) ?? ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
