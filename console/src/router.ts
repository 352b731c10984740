// Which page is shown. In: the address. Out: a signal; links inside the console change it without a load.
import { signal } from '@preact/signals'

export const path = signal(location.pathname)
export const query = signal(new URLSearchParams(location.search))

function read(): void {
  path.value = location.pathname
  query.value = new URLSearchParams(location.search)
}

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  const moved = path.value !== location.pathname
  read()
  if (moved) {
    scrollTo(0, 0)
    // A screen reader hears of the new page by its heading.
    requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus())
  }
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
    if (link.target || link.hasAttribute('download') || !href.startsWith('/') || /^\/(api|mcp|login|healthz|metrics)\b/.test(href)) return
    event.preventDefault()
    go(href)
  })
}
