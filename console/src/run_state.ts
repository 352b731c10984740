// A run as a page shows it, kept up to date by what changes in it. In: its id. Out: the run; steps that have not changed keep their identity.
import { useRef } from 'preact/hooks'
import { get, part } from './api'
import { noteEvents } from './live'
import { type Resource, useResource } from './resource'
import type { RunAnswer, RunChanges } from './types'

export function useRun(id: string): Resource<RunAnswer> {
  const known = useRef<RunAnswer>()
  const load = async (): Promise<RunAnswer> => {
    const before = known.current
    const path = `/api/runs/${part(id)}`
    const run = before?.run_id === id ? merged(before, await get<RunChanges>(`${path}/changes?after=${before.cursor}`)) : await get<RunAnswer>(path)
    noteEvents([run.started_at, run.ended_at, ...Object.values(run.steps).flatMap((step) => [step.started_at, step.ended_at])])
    return (known.current = run)
  }
  return useResource(load, id, id)
}

// `touched` counts how often a step had news: whoever shows more of it than the report holds loads it again then.
export function merged(before: RunAnswer, changes: RunChanges): RunAnswer {
  const touches = { ...before.touches }
  for (const step of changes.touched) touches[step] = (touches[step] ?? 0) + 1
  if (!changes.since) return { ...(changes as unknown as RunAnswer), touches }
  const standing = { ...before.standing.steps }
  for (const step of Object.keys(changes.steps)) {
    delete standing[step]
    if (changes.standing.steps[step]) standing[step] = changes.standing.steps[step]
  }
  return { ...before, ...changes, steps: { ...before.steps, ...changes.steps }, standing: { ...changes.standing, steps: standing }, touches } as RunAnswer
}
