// Texts that were typed and not saved, kept by the browser: a reload, a crash and a closed tab take none of them.
// In: a workflow's name. Out: what this tab left, and what others did. Each tab keeps its own; a lock says which still live.

export interface Typed {
  tab: string
  text: string
  base: string // the file's text that it was made from
  etag: string | undefined
  at: number
}

const PREFIX = 'stretto-typed'
const RELOAD_MS = 800 // for which the page before a reload may still hold its lock
const OLDEST_MS = 30 * 86_400_000

let tab: Promise<string> | undefined

// A copy of a tab has the other one's storage, and gets a name of its own.
function ownTab(): Promise<string> {
  tab ??= (async () => {
    const known = sessionStorage.getItem('stretto-tab')
    const id = known && (await held(known)) ? known : crypto.randomUUID()
    if (id !== known) await held(id)
    sessionStorage.setItem('stretto-tab', id)
    return id
  })()
  return tab
}

function held(id: string): Promise<boolean> {
  return new Promise((settle) => {
    const forever = (): Promise<never> => (settle(true), new Promise(() => undefined))
    navigator.locks.request(`stretto-tab ${id}`, { signal: AbortSignal.timeout(RELOAD_MS) }, forever).catch(() => settle(false))
  })
}

function keyOf(name: string, of: string): string {
  return `${PREFIX} ${name} ${of}`
}

function read(key: string): Typed | undefined {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null') as Typed | undefined
  } catch {
    return undefined
  }
}

export async function typedHere(name: string): Promise<Typed | undefined> {
  return read(keyOf(name, await ownTab())) ?? undefined
}

export interface TypedElsewhere extends Typed {
  isOpen: boolean // its tab is
}

export async function typedElsewhere(name: string): Promise<TypedElsewhere[]> {
  const [own, locks] = await Promise.all([ownTab(), navigator.locks.query()])
  const open = new Set((locks.held ?? []).map((lock) => lock.name))
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(`${PREFIX} ${name} `) && key !== keyOf(name, own))
    .flatMap((key) => read(key) ?? [])
    .map((typed) => ({ ...typed, isOpen: open.has(`stretto-tab ${typed.tab}`) }))
    .filter((typed) => typed.isOpen || typed.at > Date.now() - OLDEST_MS)
}

// Whether the browser could keep it.
export async function keepTyped(name: string, typed: Omit<Typed, 'tab' | 'at'>): Promise<boolean> {
  const own = await ownTab()
  try {
    localStorage.setItem(keyOf(name, own), JSON.stringify({ ...typed, tab: own, at: Date.now() }))
    return true
  } catch {
    return false
  }
}

export async function dropTyped(name: string, of?: string): Promise<void> {
  localStorage.removeItem(keyOf(name, of ?? (await ownTab())))
}

// Whenever another tab keeps or drops a text of this workflow.
export function watchTyped(name: string, told: () => void): () => void {
  const hear = (event: StorageEvent): void => void (event.key?.startsWith(`${PREFIX} ${name} `) && told())
  addEventListener('storage', hear)
  return () => removeEventListener('storage', hear)
}
