// What was said and done in a step, attempt by attempt. In: entries in order. Out: words, and tool calls with their verdicts.
import type { JSX } from 'preact'
import { plain, Prose, Raw } from '../markdown'
import { State } from '../parts'
import type { Entry } from '../types'
import { count, shortened } from '../words'

export function Transcript({ entries }: { entries: Entry[] }): JSX.Element | null {
  const shown = entries.filter((entry) => entry.kind !== 'prompt' && entry.kind !== 'answer')
  if (!shown.some((entry) => entry.kind !== 'instructions')) return null
  const attempts = new Map<string, Entry[]>()
  for (const entry of shown) {
    const key = `${entry.part} ${entry.attempt}`
    attempts.set(key, [...(attempts.get(key) ?? []), entry])
  }
  const calls = shown.filter((entry) => entry.kind === 'tool').length
  return (
    <details open={calls > 0}>
      <summary>What it said and did{calls ? <span class="quiet"> · {count(calls, 'tool call')}</span> : null}</summary>
      {[...attempts].map(([key, all]) => (
        <div key={key}>
          {attempts.size > 1 ? <h4>Attempt {all[0]!.attempt}{all[0]!.part ? ` of ${all[0]!.part}` : ''} <span class="quiet">by {all[0]!.agent}</span></h4> : null}
          {all.map((entry, number) => <Said key={number} entry={entry} />)}
        </div>
      ))}
    </details>
  )
}

const FAULTS = { rejected: 'Not accepted', failed: 'Failed', cancelled: 'Cancelled' } as const

function Said({ entry }: { entry: Entry }): JSX.Element {
  switch (entry.kind) {
    case 'tool':
      return <Call entry={entry} />
    case 'words':
      return <div class="said"><Prose text={entry.text} /></div>
    case 'model':
      return <p class="small"><span class="state warn" data-mark="↻">{plain(entry.text)}</span></p>
    case 'rejected':
    case 'failed':
    case 'cancelled':
      return <p class="small"><span class="state bad" data-mark="✗">{FAULTS[entry.kind]}:</span> {plain(entry.text)}</p>
    default:
      return <details class="small"><summary>{entry.kind === 'instructions' ? 'Instructions of the agent' : entry.kind}</summary><Raw text={entry.text} /></details>
  }
}

// The first line of a call is the tool with its arguments, the rest is what came of it.
function Call({ entry }: { entry: Entry }): JSX.Element {
  const [head = '', ...rest] = entry.text.split('\n')
  const [tool = '', ...words] = head.split(' ')
  const given = words.join(' ')
  return (
    <details class="call">
      <summary><span class="bar between"><span><strong>{plain(tool)}</strong> <span class="mono small">{plain(shortened(brief(given), 70))}</span></span>{entry.verdict ? <State status={entry.verdict} /> : null}</span></summary>
      {given ? <Raw text={indented(given)} /> : null}
      <Raw text={rest.join('\n')} />
    </details>
  )
}

// {"file_path": "a.md"} reads better as a.md, and two arguments as a.md, 3.
function brief(given: string): string {
  try {
    const values = Object.values(JSON.parse(given) as Record<string, unknown>)
    return values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(', ')
  } catch {
    return given
  }
}

function indented(given: string): string {
  try {
    return JSON.stringify(JSON.parse(given), null, 2)
  } catch {
    return given
  }
}
