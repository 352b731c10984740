// Which page is shown. In: the address. Out: a signal; links inside the console change it without a load.
import { signal } from '@preact/signals'

export const path = signal(location.pathname)
export const query = signal(new URLSearchParams(location.search))

export const title = signal('') // of the page that is shown; '' until it has told its own

let leftFrom: Element | null | undefined // what had the focus when a page was left, until the next one has its heading

function read(): void {
  if (path.value !== location.pathname) {
    title.value = ''
    leftFrom = document.activeElement
  }
  path.value = location.pathname
  query.value = new URLSearchParams(location.search)
}

// A screen reader hears of a new page by its heading, however late that comes; whoever went on meanwhile is left there.
export function arrive(heading: HTMLElement): void {
  const now = document.activeElement
  if (leftFrom !== undefined && (!now || now === document.body || now === leftFrom)) heading.focus({ preventScroll: true })
  leftFrom = undefined
}

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  if (path.value !== location.pathname) scrollTo(0, 0)
  read()
}

export function setQuery(name: string, value: string | null): void {
  const changed = new URLSearchParams(location.search)
  if (value === null || value === '') changed.delete(name)
  else changed.set(name, value)
  const text = changed.toString()
  go(location.pathname + (text ? `?${text}` : ''), true)
}

export function listen(): void {
  addEventListener('popstate', read)
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a')
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    const href = link.getAttribute('href') ?? ''
    // Not `link.target`: a link in the drawing has an object there.
    if (link.getAttribute('target') || link.hasAttribute('download') || !href.startsWith('/') || /^\/(api|mcp|login|healthz|metrics)\b/.test(href)) return
    event.preventDefault()
    go(href)
  })
}
