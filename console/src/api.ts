// Speak to the server. In: a path and a body. Out: its JSON, or an ApiError that says what, why and what next.
import { signal } from '@preact/signals'
import { noteServerTime } from './words'

// Whether the server says that nobody is logged in here. What is typed stays, and is sent once somebody has logged in again.
export const isLoggedOut = signal(false)
export const logins = signal(0) // how often that has happened: what was refused meanwhile is loaded again then

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message)
  }
}

// Whatever was thrown: a page that shows an error must not break on one of another kind.
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  return new ApiError(0, 'console', thrown instanceof Error ? thrown.message : String(thrown))
}

// What may be over in a moment without anybody's doing: asked again by itself. Any other refusal would come again.
export function isPassing(error: ApiError): boolean {
  return error.kind === 'unreachable' || error.status === 429 || error.status >= 500
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

async function send(method: Method, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const before = refusals
  let answer = await once(method, path, body, headers)
  // Another tab has logged in since: the proof of the session before counts no more.
  if (answer.status === 403 && method !== 'GET' && (await isOtherSession())) answer = await once(method, path, body, headers)
  if (answer.ok) {
    if (before === refusals) noteLogin() // else it was asked while the session still counted
    return answer
  }
  const error = await errorOf(answer)
  if (error.status === 401) ((asked = undefined), (isLoggedOut.value = true), (wasRefused = true), refusals++)
  throw error
}

let wasRefused = false
let refusals = 0

function noteLogin(): void {
  if (!wasRefused) return
  wasRefused = false
  isLoggedOut.value = false
  logins.value++
}

async function isOtherSession(): Promise<boolean> {
  const before = (await session()).csrf
  asked = undefined
  return (await session()).csrf !== before
}

// Log in without leaving the page, and what is typed on it.
export async function logIn(token: string): Promise<void> {
  const answer = await fetch('/login', { method: 'POST', credentials: 'same-origin', body: new URLSearchParams({ token }) }).catch(() => undefined)
  if (answer?.status === 401) throw new ApiError(401, 'unauthenticated', 'This token does not count here.', { hint: 'It is in the file ~/.stretto/token of whoever runs the server, or was given to you by them.' })
  if (answer && !answer.ok) throw await errorOf(answer)
  await session() // which says that it worked
}

async function once(method: Method, path: string, body: unknown, headers: Record<string, string>): Promise<Response> {
  const shown = method === 'GET' ? {} : await proof() // that it was refused is no reason to say that nobody answers
  try {
    const answer = await fetch(path, {
      method,
      credentials: 'same-origin',
      headers: { ...shown, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    noteServerTime(answer.headers.get('Date'))
    return answer
  } catch {
    throw new ApiError(0, 'unreachable', 'The server does not answer. Is `stretto serve` still running?')
  }
}

export interface Session {
  name: string
  role: 'viewer' | 'operator' | 'author' | 'admin'
  csrf: string | null
}

let asked: Promise<Session> | undefined

export function session(): Promise<Session> {
  asked ??= get<Session>('/api/session').catch((failure: unknown) => {
    asked = undefined
    throw failure
  })
  return asked
}

// What a page of another site cannot know: the cookie alone changes nothing.
async function proof(): Promise<Record<string, string>> {
  return { 'X-CSRF-Token': (await session()).csrf ?? '' }
}

async function errorOf(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as { error: { kind: string; message: string; details?: Record<string, unknown> } }
    return new ApiError(answer.status, error.kind, error.message, error.details ?? {})
  } catch {
    return new ApiError(answer.status, 'http', `The server answered ${answer.status} without saying why.`)
  }
}

export async function get<T>(path: string): Promise<T> {
  return (await (await send('GET', path)).json()) as T
}

export async function getText(path: string): Promise<string> {
  return (await send('GET', path)).text()
}

export async function post<T>(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<T> {
  return (await (await send('POST', path, body, headers)).json()) as T
}

export async function put<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  return (await (await send('PUT', path, body, headers)).json()) as T
}

export async function remove<T>(path: string, headers: Record<string, string> = {}): Promise<T> {
  return (await (await send('DELETE', path, undefined, headers)).json()) as T
}

export function part(value: string): string {
  return encodeURIComponent(value)
}
