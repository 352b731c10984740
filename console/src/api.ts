// Speak to the server. In: a path and a body. Out: its JSON, or an ApiError that says what, why and what next.

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

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

async function send(method: Method, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  let answer: Response
  try {
    answer = await fetch(path, {
      method,
      credentials: 'same-origin',
      headers: { ...(method === 'GET' ? {} : await proof()), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  } catch {
    throw new ApiError(0, 'unreachable', 'The server does not answer. Is `stretto serve` still running? This page tries again by itself.')
  }
  if (!answer.ok) throw await errorOf(answer)
  return answer
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
