// Parts that every page uses: states, errors, empty pages, dialogs, the one live region.
import { signal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { type ApiError, asApiError, isPassing, part } from './api'
import { connection } from './live'
import { plain } from './markdown'
import type { Resource } from './resource'
import { arrive, path, title } from './router'
import { ago, clock, markOf, now, toneOf, until } from './words'

// What a screen reader is told, politely: one region for the whole page.
export const announcement = signal('')

// What is said twice is heard twice: a region whose text stays the same is silent.
export function announce(text: string): void {
  announcement.value = announcement.value === text ? `${text}\u00a0` : text
}

// What stands on the page and has come by itself, told to whoever does not see it.
export function Told({ says }: { says: string }): null {
  useEffect(() => announce(says), [says])
  return null
}

// `of`: a run waits for a person, and a step for other steps: the word is the same, the look is not.
export function State({ status, of }: { status: string; of?: 'run' }): JSX.Element {
  const look = of === 'run' && status === 'waiting' ? 'awaiting approval' : status
  return <span class={`state ${toneOf(look)}`} data-mark={markOf(look)}>{status}</span>
}

// A table that becomes a list of cards where there is no room for columns: the first cell is the title of a card.
export function List({ columns, children, label }: { columns: { name: string; is?: string; hidden?: boolean }[]; children: ComponentChildren; label?: string }): JSX.Element {
  return (
    <div class="scroll">
      <table class="list stack" aria-label={label} role="table">
        <thead role="rowgroup"><tr role="row">{columns.map((each) => <th key={each.name} role="columnheader" scope="col" class={each.is}>{each.hidden ? <span class="visually-hidden">{each.name}</span> : each.name}</th>)}</tr></thead>
        <tbody role="rowgroup">{children}</tbody>
      </table>
    </div>
  )
}

// `name`: what the column is called, said beside the value where the head of the table is not shown.
export function Cell({ name, is, children }: { name?: string; is?: string; children?: ComponentChildren }): JSX.Element {
  const isEmpty = children === '' || children === null || children === undefined || children === false
  return <td role="cell" class={`${is ?? ''}${isEmpty ? ' none' : ''}`} data-name={name}>{children}</td>
}

export function Title({ children, page }: { children: ComponentChildren; page: string }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => void (title.value = plain(page)), [page])
  useEffect(() => arrive(heading.current!), [])
  return <h1 ref={heading} tabIndex={-1}>{children}</h1>
}

export function When({ at }: { at: string | number | null | undefined }): JSX.Element | null {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 10_000)
    return () => clearInterval(timer)
  }, [])
  return at ? <time title={clock(at)}>{ago(at)}</time> : null
}

export function Failure({ error, next }: { error: ApiError; next?: ComponentChildren }): JSX.Element {
  const hint = typeof error.details.hint === 'string' && !/^GET \//.test(error.details.hint) ? error.details.hint : '' // a route is no way for a person
  return (
    <div class="card error" role="alert">
      <p><strong>{plain(error.message)}</strong></p>
      {hint ? <p>{plain(hint)}</p> : null}
      {next}
      <p class="quiet small">{error.kind}{error.status ? ` · HTTP ${error.status}` : ''}</p>
    </div>
  )
}

// Old data stays, dimmed, while the server does not answer. `title`: of a page that could not be loaded at all.
export function Loaded<T>({ from, title: name, children }: { from: Resource<T>; title?: string; children: (value: T) => ComponentChildren }): JSX.Element {
  const again = (error: ApiError): JSX.Element => error.status === 404 ? <p><a class="button" href={`/${path.value.split('/')[1] ?? ''}`}>See all that are there</a></p> : <p>{isPassing(error) ? 'This page tries again by itself. ' : ''}<button onClick={() => void from.reload()}>Try again</button></p>
  return (
    <>
      {name && from.error && from.value === undefined ? <Title page={name}>{name}</Title> : null}
      {from.error ? <Failure error={from.error} next={again(from.error)} /> : null}
      {from.value !== undefined ? <div class={from.isStale || connection.value === 'lost' ? 'stale' : ''}>{children(from.value)}</div> : null}
      {from.value === undefined && !from.error ? <p class="quiet">Loading …</p> : null}
    </>
  )
}

export function Empty({ what, action, command }: { what: string; action?: ComponentChildren; command: string }): JSX.Element {
  return (
    <div class="empty">
      <p>{what}</p>
      {action ? <p>{action}</p> : null}
      <p class="quiet">In the terminal: <code>{command}</code></p>
    </div>
  )
}

// `error`: of what was asked for in the dialog, which stands before everything else on the page.
export function Dialog({ title: name, close, error, children }: { title: string; close: () => void; error?: ApiError | undefined; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = focused()
    dialog.current?.showModal()
    // A dialog that is taken away, unlike one that is closed, leaves the focus nowhere.
    return () => before?.focus()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={close}>
      <h2 id={id} style="margin-top:0">{name}</h2>
      {children}
      {error ? <Failure error={error} /> : null}
    </dialog>
  )
}

// Whatever has the focus, inside of a shadow root too.
function focused(): HTMLElement | null {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  return at as HTMLElement | null
}

export interface Action {
  isBusy: boolean
  error: ApiError | undefined
  run: (work: () => Promise<unknown>) => Promise<boolean>
}

// Something that a person asked for: busy while it lasts, its error shown where it was asked for.
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  async function run(work: () => Promise<unknown>): Promise<boolean> {
    setBusy(true)
    setError(undefined)
    try {
      await work()
      return true
    } catch (failure) {
      setError(asApiError(failure))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { isBusy, error, run }
}

export function Field({ label, note, children }: { label: string; note?: string; children: (id: string) => ComponentChildren }): JSX.Element {
  const id = useId()
  return (
    <div>
      <label for={id}>{label}{note ? <span class="quiet"> {note}</span> : null}</label>
      {children(id)}
    </div>
  )
}

export function Diff({ text }: { text: string }): JSX.Element {
  // What git calls the content of a file says nothing to a person.
  const rows = text.replace(/\n$/, '').split('\n').filter((line) => !/^index [0-9a-f]{7,}\.\.[0-9a-f]{7,}/.test(line)).map((line) => {
    const kind = /^(diff --git |\+\+\+ |--- )/.test(line) ? 'file' : line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : ''
    return <div class={kind}>{line || ' '}</div>
  })
  return <pre tabIndex={0} aria-label="Changes">{rows}</pre>
}

// Facts side by side, each below its name; what is empty is left out.
export function Facts({ of, label }: { of: [string, ComponentChildren][]; label?: string }): JSX.Element {
  return (
    <dl class="facts" aria-label={label}>
      {of.filter(([, value]) => value !== '' && value !== null && value !== undefined && value !== false).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  )
}

// The time now, kept going while something counts up or down.
export function useNow(everyMs = 1000, isOn = true): number {
  const [at, setAt] = useState(now())
  useEffect(() => {
    if (!isOn) return undefined
    const timer = setInterval(() => setAt(now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs, isOn])
  return at
}

// What is typed is searched for once the typing stops.
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 250)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

// 'in 14 s', counted down.
export function Until({ at }: { at: string | null }): JSX.Element | null {
  const said = until(at, useNow(1000, at !== null))
  return said ? <span class="nowrap"> {said}</span> : null
}

// A button that unfolds further ones. Escape, a choice and leaving it fold it again.
export function Menu({ label, children }: { label: string; children: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDetailsElement>(null)
  const close = (): void => void box.current?.removeAttribute('open')
  return (
    <details
      ref={box}
      class="menu"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        close()
        box.current?.querySelector('summary')?.focus()
      }}
      onFocusOut={(event) => box.current?.contains(event.relatedTarget as Node | null) || close()}
    >
      <summary class="button">{label} <span aria-hidden="true">▾</span></summary>
      <div class="items" onClick={close}>{children}</div>
    </details>
  )
}

// How many of each state, as a bar and as buttons that choose one of them.
export function Tallies({ of, chosen, choose }: { of: string[]; chosen: string; choose: (status: string) => void }): JSX.Element {
  const many = new Map<string, number>()
  for (const status of of) many.set(status, (many.get(status) ?? 0) + 1)
  return (
    <>
      <div class="counts" aria-hidden="true">{[...many].map(([status, n]) => <span key={status} class={toneOf(status)} style={{ width: `${(100 * n) / of.length}%` }} />)}</div>
      <div class="tallies" role="group" aria-label="Show only">
        {[...many].map(([status, n]) => <button key={status} aria-pressed={chosen === status} onClick={() => choose(chosen === status ? '' : status)}>{n.toLocaleString('en')} <State status={status} /></button>)}
      </div>
    </>
  )
}

// A turn of a chat or of a goal leads there.
export function StartedBy({ trigger, owner }: { trigger: string; owner: string }): JSX.Element {
  const [, id, turn] = /^chat (\S+), turn (\d+)$/.exec(trigger) ?? []
  if (id) return <a href={`${id.startsWith('g-') ? '/goals' : '/chat'}/${part(id)}`}>{id.startsWith('g-') ? 'goal' : 'chat'}, turn {turn}</a>
  const how = trigger === 'http' ? 'HTTP' : trigger || 'a terminal'
  return <>{[owner, how].filter(Boolean).join(', ')}</>
}
