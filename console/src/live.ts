// One stream of changes for the whole browser. In: the server's stream. Out: calls to whoever watches a run.
// One tab holds the stream (Web Locks) and tells the others (BroadcastChannel); when it closes, the next tab takes over.
import { signal } from '@preact/signals'

export interface Change {
  run_id: string
  status?: string
  approvals?: number
}

type Watcher = (change: Change) => void

export type Connection = 'connecting' | 'live' | 'lost'

export const connection = signal<Connection>('connecting')
export const lastHeard = signal(0) // when the stream last said anything, in milliseconds
export const lastChange = signal(0) // when it last named a run that has changed

const RETRY_MS = [500, 1000, 2000, 5000]

class Changes {
  private watchers = new Map<string, Set<Watcher>>()
  private channel: BroadcastChannel | undefined
  private isLeading = false

  subscribe(key: string, watcher: Watcher): () => void {
    const group = this.watchers.get(key) ?? new Set()
    this.watchers.set(key, group.add(watcher))
    return () => group.delete(watcher)
  }

  start(): void {
    this.channel = new BroadcastChannel('stretto')
    this.channel.onmessage = ({ data }) => this.hear(data as Heard | 'who leads?')
    this.channel.postMessage('who leads?') // a tab that comes later learns at once how the stream stands
    void navigator.locks.request('stretto-stream', () => this.lead())
  }

  private hear(said: Heard | 'who leads?'): void {
    if (said !== 'who leads?') this.take(said)
    else if (this.isLeading) this.channel?.postMessage({ connection: connection.value, at: lastHeard.value, changedAt: lastChange.value })
  }

  private take(heard: Heard): void {
    lastHeard.value = heard.at ?? Date.now()
    if (heard.connection !== connection.value) {
      connection.value = heard.connection
    }
    if (heard.changedAt) lastChange.value = Math.max(lastChange.value, heard.changedAt)
    if (heard.change && heard.change.run_id !== '*') lastChange.value = Date.now()
    if (heard.change) this.tell(heard.change)
  }

  private tell(change: Change): void {
    for (const key of change.run_id === '*' ? this.watchers.keys() : [change.run_id, '*'])
      for (const watcher of this.watchers.get(key) ?? []) watcher(change)
  }

  private publish(heard: Heard): void {
    this.channel?.postMessage(heard)
    this.take(heard)
  }

  // Never settles: the lock is held until the tab closes.
  private lead(): Promise<never> {
    let failures = 0
    this.isLeading = true
    const open = (): void => {
      // `after`: whoever opens a stream may have missed changes before it, as while the tab that had
      // it was closing, so the server's first word is that everything is to be loaded again.
      const source = new EventSource('/api/events?after=0')
      source.onopen = () => {
        failures = 0
        this.publish({ connection: 'live' })
      }
      const hear = (event: MessageEvent<string>): void => {
        const change = event.data ? (JSON.parse(event.data) as Change) : undefined
        this.publish({ connection: 'live', change })
      }
      source.addEventListener('change', hear)
      source.addEventListener('alive', () => this.publish({ connection: 'live' }))
      source.onerror = () => {
        source.close()
        this.publish({ connection: 'lost' })
        setTimeout(open, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)])
      }
    }
    open()
    return new Promise(() => undefined)
  }
}

interface Heard {
  connection: Connection
  change?: Change | undefined
  at?: number // when the stream said it; now, if left out
  changedAt?: number // when a run last changed, for a tab that comes later
}

export const changes = new Changes()
