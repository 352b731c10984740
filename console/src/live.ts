// One stream of changes for the whole browser. In: the server's stream. Out: calls to whoever watches a run, and the words of steps.
// One tab holds the stream (Web Locks) and tells the others (BroadcastChannel); when it closes, the next tab takes over where it stood.
import { signal } from '@preact/signals'
import { moment, now } from './words'

export interface Change {
  run_id: string
  seq?: number // the last event that is told of, where the run is followed
}

// A piece of what a model says. `seq`: the place of its event in the journal of the run.
export interface Spoken {
  seq: number
  attempt: { step: string; number: number; part?: { kind: string; key?: string; index?: number; stage?: number; iteration?: number } }
  text: string
}

export interface Words {
  run_id: string
  seq: number
  spoken: Spoken[]
}

// A step that a page shows. `after`: the last event of its run that the page knows.
interface Followed {
  run: string
  step: string
  after: number
}

type Watcher = (change: Change) => void
type Hearer = (words: Words) => void

export type Connection = 'connecting' | 'live' | 'lost'

export const connection = signal<Connection>('connecting')
export const lastHeard = signal(0) // when the stream last said anything, in milliseconds
export const lastChange = signal(0) // when it last named a run that has changed

// What was loaded tells of the events before it. `times`: by the clock of the server.
export function noteEvents(times: (string | number | null)[]): void {
  const ahead = now() - Date.now()
  const latest = Math.max(0, ...times.map((at) => (moment(at)?.getTime() ?? 0) - ahead))
  if (latest > lastChange.value) lastChange.value = Math.min(latest, Date.now())
}

const RETRY_MS = [500, 1000, 2000, 5000]
const SETTLE_MS = 60 // pages that open together are one change of the stream
const MOST_FOLLOWED = 12 // by one stream; a page that is not among them is told a quarter of a second later

interface Heard {
  connection: Connection
  change?: Change | undefined
  words?: Words | undefined
  cursor?: number // up to where the stream has told; whoever takes over begins there
  at?: number // when the stream said it; now, if left out
  changedAt?: number // when a run last changed, for a tab that comes later
}

type Said = Heard | 'who leads?' | { tab: string; follows: Followed[] }

class Changes {
  private watchers = new Map<string, Set<Watcher>>()
  private hearers = new Map<string, Set<Hearer>>()
  private channel: BroadcastChannel | undefined
  private tab = ''
  private readonly own = new Map<string, Followed>() // what this tab follows
  private readonly others = new Map<string, Followed[]>() // what each other tab follows
  private cursor = 0
  private stream: Stream | undefined // of the tab that leads

  subscribe(key: string, watcher: Watcher): () => void {
    const group = this.watchers.get(key) ?? new Set()
    this.watchers.set(key, group.add(watcher))
    return () => group.delete(watcher)
  }

  // Be told of a run at once, and of the words of one of its steps as they come.
  follow(run: string, step: string, after: number): () => void {
    const key = `${run} ${step}`
    this.own.set(key, { run, step, after })
    this.tellFollowed()
    return () => {
      this.own.delete(key)
      this.tellFollowed()
    }
  }

  // Hear the words of the steps of a run that are followed.
  listen(run: string, hearer: Hearer): () => void {
    const group = this.hearers.get(run) ?? new Set()
    this.hearers.set(run, group.add(hearer))
    return () => group.delete(hearer)
  }

  start(): void {
    this.tab = crypto.randomUUID()
    this.channel = new BroadcastChannel('stretto')
    this.channel.onmessage = ({ data }) => this.hear(data as Said)
    this.channel.postMessage('who leads?') // a tab that comes later learns at once how the stream stands
    addEventListener('pagehide', () => this.channel?.postMessage({ tab: this.tab, follows: [] }))
    void navigator.locks.request('stretto-stream', () => this.lead())
  }

  private hear(said: Said): void {
    if (said === 'who leads?') {
      if (this.stream) this.channel?.postMessage({ connection: connection.value, at: lastHeard.value, changedAt: lastChange.value, cursor: this.cursor })
      else this.tellFollowed() // it may lead by the time that it hears this
    } else if ('tab' in said) {
      if (said.follows.length) this.others.set(said.tab, said.follows)
      else this.others.delete(said.tab)
      this.stream?.open(this.address)
    } else this.take(said)
  }

  private tellFollowed(): void {
    this.channel?.postMessage({ tab: this.tab, follows: [...this.own.values()] })
    this.stream?.open(this.address)
  }

  private take(heard: Heard): void {
    lastHeard.value = heard.at ?? Date.now()
    connection.value = heard.connection
    if (heard.cursor) this.cursor = heard.cursor
    if (heard.changedAt) lastChange.value = Math.max(lastChange.value, heard.changedAt)
    if (heard.words || (heard.change && heard.change.run_id !== '*')) lastChange.value = Date.now()
    if (heard.words) {
      this.reach(heard.words.run_id, heard.words.seq)
      for (const hearer of this.hearers.get(heard.words.run_id) ?? []) hearer(heard.words)
    }
    if (heard.change) this.tell(heard.change)
  }

  private tell(change: Change): void {
    if (change.seq) this.reach(change.run_id, change.seq)
    for (const key of change.run_id === '*' ? this.watchers.keys() : [change.run_id, '*'])
      for (const watcher of this.watchers.get(key) ?? []) watcher(change)
  }

  // What was told is known from here on: a stream that is opened anew goes on after it.
  private reach(run: string, seq: number): void {
    for (const each of [...this.own.values(), ...[...this.others.values()].flat()]) if (each.run === run) each.after = Math.max(each.after, seq)
  }

  private publish(heard: Heard): void {
    this.channel?.postMessage(heard)
    this.take(heard)
  }

  // Where the stream begins: after what this browser was told last; 0, where that is nothing.
  private address = (): { follows: string; url: string } => {
    const wanted = new Map<string, number>()
    for (const { run, step, after } of [...this.own.values(), ...[...this.others.values()].flat()]) {
      const key = `${run}:${step}`
      wanted.set(key, Math.min(after, wanted.get(key) ?? after))
    }
    const followed = [...wanted].slice(-MOST_FOLLOWED)
    const query = followed.map(([key, after]) => `&follow=${encodeURIComponent(`${after}:${key}`)}`).join('')
    return { follows: followed.map(([key]) => key).sort().join(' '), url: `/api/events?after=${this.cursor}${query}` }
  }

  // Never settles: the lock is held until the tab closes.
  private lead(): Promise<never> {
    this.stream = new Stream((heard) => this.publish(heard))
    this.stream.open(this.address)
    this.channel?.postMessage('who leads?') // so that every tab says what it follows
    return new Promise(() => undefined)
  }
}

// The one connection. It is opened anew when it breaks, and when other steps are to be followed.
class Stream {
  private source: EventSource | undefined
  private failures = 0
  private follows: string | undefined
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly publish: (heard: Heard) => void) {}

  open(address: () => { follows: string; url: string }): void {
    if (this.follows !== undefined && !isMore(address().follows, this.follows)) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.connect(address), SETTLE_MS)
  }

  private connect(address: () => { follows: string; url: string }): void {
    const { follows, url } = address()
    this.source?.close()
    const source = (this.source = new EventSource(url))
    this.follows = follows
    source.onopen = () => {
      this.failures = 0
      this.publish({ connection: 'live' })
    }
    const hear = (kind: 'change' | 'words' | 'alive') => (event: MessageEvent<string>): void => {
      const told = kind === 'alive' ? {} : { [kind]: JSON.parse(event.data) as unknown }
      this.publish({ connection: 'live', cursor: Number(event.lastEventId) || 0, ...told })
    }
    for (const kind of ['change', 'words', 'alive'] as const) source.addEventListener(kind, hear(kind))
    source.onerror = () => {
      source.close()
      this.publish({ connection: 'lost' })
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.connect(address), RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)])
    }
  }
}

// A step that nobody looks at any more is left out when the stream is next opened, and is no reason to open it.
function isMore(now: string, before: string): boolean {
  const known = new Set(before.split(' '))
  return now.split(' ').some((each) => each !== '' && !known.has(each))
}

export const changes = new Changes()
