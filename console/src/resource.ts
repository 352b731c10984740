// Keep what a page shows up to date. In: how to load it. Out: the value, its error, its age; old data stays until new is there.
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, asApiError, isPassing, logins } from './api'
import { changes } from './live'

export interface Resource<T> {
  value: T | undefined
  error: ApiError | undefined
  isStale: boolean
  reload: () => Promise<void>
  changed: () => void // something is new: loads again, but not at once for each of many changes
}

const CALM_MS = 250 // between two loads that changes ask for
const FIRST_RETRY_MS = 1500
const LAST_RETRY_MS = 30_000
const REST = 3 // and so many times as long as the last load took, so that a slow one is not asked for without end

export const ON_RETURN = 'return' // no stream tells of it: loaded again whenever somebody comes back to the window

// `watch`: which changes make a load necessary: a run's id, '*' for every run, '' for none.
export function useResource<T>(load: () => Promise<T>, key: string, watch = ''): Resource<T> {
  const [value, setValue] = useState<T>()
  const [error, setError] = useState<ApiError>()
  const loader = useRef(load)
  loader.current = load
  const turn = useRef(0)
  const isLoading = useRef(false)
  const isAsked = useRef(false)
  const timer = useRef<ReturnType<typeof setTimeout>>()
  const restUntil = useRef(0)
  const failures = useRef(0)

  async function reload(): Promise<void> {
    if (isLoading.current) {
      isAsked.current = true // one more load when this one is done: it may have missed the change
      return
    }
    isLoading.current = true
    const begun = performance.now()
    const mine = ++turn.current
    try {
      const loaded = await loader.current()
      if (mine === turn.current) ((failures.current = 0), setValue(() => loaded), setError(undefined))
    } catch (failure) {
      if (mine === turn.current) setError(asApiError(failure))
    }
    if (mine !== turn.current) return // another one has been asked for meanwhile
    isLoading.current = false
    restUntil.current = performance.now() + Math.max(CALM_MS, REST * (performance.now() - begun))
    if (isAsked.current) (isAsked.current = false, reloadSoon())
  }

  // Many changes in one moment are one load.
  function reloadSoon(): void {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void reload()
    }, Math.max(0, restUntil.current - performance.now()))
  }

  useEffect(() => {
    turn.current++
    isLoading.current = false
    restUntil.current = 0
    setValue(undefined)
    setError(undefined)
    void reload()
    return () => {
      turn.current++
      clearTimeout(timer.current)
      timer.current = undefined
    }
  }, [key])

  useEffect(() => {
    if (!watch) return undefined
    if (watch === ON_RETURN) {
      addEventListener('focus', reloadSoon)
      return () => removeEventListener('focus', reloadSoon)
    }
    return changes.subscribe(watch, reloadSoon)
  }, [key, watch])

  useEffect(() => {
    if (!error || !isPassing(error)) return undefined
    const timer = setTimeout(() => void reload(), Math.min(FIRST_RETRY_MS * 2 ** failures.current++, LAST_RETRY_MS))
    return () => clearTimeout(timer)
  }, [error])

  useEffect(() => {
    const before = logins.value
    return error?.status === 401 ? logins.subscribe((now) => void (now > before && reload())) : undefined
  }, [error])

  return { value, error, isStale: error !== undefined && value !== undefined, reload, changed: reloadSoon }
}
