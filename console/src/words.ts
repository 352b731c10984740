// Words and numbers for people. In: values of the API. Out: short text. States keep the server's own words.

type Tone = 'good' | 'bad' | 'busy' | 'warn' | 'ask' | 'idle'

const TONES: Record<string, [Tone, string]> = {
  complete: ['good', '✓'], succeeded: ['good', '✓'], achieved: ['good', '✓'],
  failed: ['bad', '✗'], unreadable: ['bad', '✗'], unachievable: ['bad', '✗'], exhausted: ['bad', '✗'],
  partial: ['warn', '◐'], overdue: ['warn', '!'], interrupted: ['warn', '‖'], held: ['warn', '‖'], stalled: ['warn', '‖'],
  running: ['busy', '▶'], retrying: ['busy', '↻'], merging: ['busy', '⇄'], active: ['busy', '▶'],
  'awaiting approval': ['ask', '?'],
  ok: ['good', '✓'], optional: ['idle', '–'], missing: ['bad', '✗'],
  error: ['bad', '✗'], refused: ['warn', '⊘'], reused: ['good', '↺'], queued: ['idle', '…'], asking: ['ask', '?'], 'in doubt': ['warn', '!'], planned: ['idle', '…'],
  waiting: ['idle', '…'], skipped: ['idle', '–'], cancelled: ['idle', '⊘'], cleared: ['idle', '⊘'],
}

export function toneOf(status: string): Tone {
  return TONES[status]?.[0] ?? 'idle'
}

export function markOf(status: string): string {
  return TONES[status]?.[1] ?? '·'
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return ''
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 60) return `${Number.isInteger(seconds) ? seconds : seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60]
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${rest} s`
}

let aheadMs = 0 // of the clock here, how far that of the server is

const SMALL_MS = 2500 // what a second that is cut off and a slow answer make

// Times come from the server, and how long ago they were is counted by its clock: that of a laptop may be hours off.
export function noteServerTime(at: string | null): void {
  const off = at ? Date.parse(at) - Date.now() : 0
  if (Number.isFinite(off)) aheadMs = Math.abs(off) < SMALL_MS ? 0 : off
}

export function now(): number {
  return Date.now() + aheadMs
}

// Times come as ISO text from reports and as seconds from lists.
export function moment(at: string | number | null | undefined): Date | undefined {
  if (at === null || at === undefined || at === '') return undefined
  return new Date(typeof at === 'number' ? at * 1000 : at)
}

export function ago(at: string | number | null | undefined, seenAt: number = now()): string {
  const then = moment(at)
  if (!then) return ''
  const seconds = (seenAt - then.getTime()) / 1000
  if (seconds < 5) return 'now'
  if (seconds < 60) return `${Math.round(seconds)} s ago`
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`
  return then.toLocaleDateString(undefined, { dateStyle: 'medium' })
}

// A moment in full, for a title or a list: Nov 19, 2026, 2:30 AM.
export function clock(at: string | number | null | undefined, timeZone?: string): string {
  return moment(at)?.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short', ...(timeZone ? { timeZone } : {}) }) ?? ''
}

// What tells runs and goals apart: the end of an id. The terminal takes it, too.
export function shortId(id: string): string {
  return id.split('-').at(-1) ?? id
}

// What a goal is, out of the words by which its turns are asked for.
export function withoutAsking(text: string): string {
  const [, goal] = /^Work towards this goal:\s*([\s\S]*?)(?:\s+It is re[\s\S]*)?$/.exec(text) ?? []
  return goal ?? text
}

// The first words of a Markdown text, in one line and without its marks.
export function glance(text: string, most: number): string {
  return shortened(text.slice(0, 20 * most).replace(/^\s*(?:[#>]+|[-*+]|\d+[.)])\s+/gm, '').replace(/[*`]+|^\s*[-=|]{3,}\s*$/gm, '').replace(/\s+/g, ' ').trim(), most)
}

// What stands below each other, as an error with its points, in one line.
export function oneLine(text: string): string {
  return text.trim().replace(/:\s+[-*]\s+/g, ': ').replace(/[.;]?\s*\n\s*[-*]\s+/g, '; ').replace(/\s+/g, ' ')
}

export function count(many: number, noun: string): string {
  return `${many.toLocaleString('en')} ${noun}${many === 1 ? '' : 's'}`
}

export interface Usage {
  input_tokens: number
  output_tokens: number
  usd: number | null
  model_calls: number
}

export function tokens(usage: Usage | null | undefined): string {
  if (!usage) return ''
  return count(usage.input_tokens + usage.output_tokens, 'token')
}

// How long until a moment: 'in 14 s', 'in 3 min'; empty once it has passed.
export function until(at: string | number | null | undefined, seenAt: number = now()): string {
  const then = moment(at)
  const seconds = then ? Math.ceil((then.getTime() - seenAt) / 1000) : 0
  if (seconds <= 0) return ''
  if (seconds < 120) return `in ${seconds} s`
  if (seconds < 7200) return `in ${Math.round(seconds / 60)} min`
  return `at ${clock(at)}`
}

export function dollars(usd: number | null | undefined): string {
  if (!usd) return ''
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`
}

export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}
