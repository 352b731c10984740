// Keep what a page shows up to date. In: how to load it. Out: the value, its error, its age; old data stays until new is there.
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, asApiError } from './api'
import { changes } from './live'

export interface Resource<T> {
  value: T | undefined
  error: ApiError | undefined
  isStale: boolean
  reload: () => Promise<void>
}

const CALM_MS = 250 // many events in one moment are one load

// `watch`: which changes make a load necessary: a run's id, '*' for every run, '' for none.
export function useResource<T>(load: () => Promise<T>, key: string, watch = ''): Resource<T> {
  const [value, setValue] = useState<T>()
  const [error, setError] = useState<ApiError>()
  const loader = useRef(load)
  loader.current = load
  const turn = useRef(0)
  const isLoading = useRef(false)
  const isAsked = useRef(false)

  async function reload(): Promise<void> {
    if (isLoading.current) {
      isAsked.current = true // one more load when this one is done: it may have missed the change
      return
    }
    isLoading.current = true
    const mine = ++turn.current
    try {
      const loaded = await loader.current()
      if (mine === turn.current) (setValue(() => loaded), setError(undefined))
    } catch (failure) {
      if (mine === turn.current) setError(asApiError(failure))
    } finally {
      isLoading.current = false
      if (isAsked.current) {
        isAsked.current = false
        setTimeout(() => void reload(), CALM_MS)
      }
    }
  }

  useEffect(() => {
    turn.current++
    isLoading.current = false
    setValue(undefined)
    setError(undefined)
    void reload()
  }, [key])

  useEffect(() => {
    if (!watch) return undefined
    return changes.subscribe(watch, () => void reload())
  }, [key, watch])

  useEffect(() => {
    if (error?.kind !== 'unreachable') return undefined
    const timer = setTimeout(() => void reload(), 2000)
    return () => clearTimeout(timer)
  }, [error])

  return { value, error, isStale: error !== undefined && value !== undefined, reload }
}
