// A page that is loaded only where it is shown, so that the first load stays small.
import type { ComponentType, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure } from './parts'
import { ApiError } from './api'

export function Later<P extends object>({ load, with: props }: { load: () => Promise<{ default: ComponentType<P> }>; with: P }): JSX.Element {
  const [Page, setPage] = useState<ComponentType<P>>()
  const [error, setError] = useState<ApiError>()
  useEffect(() => void load().then((found) => setPage(() => found.default), () => setError(new ApiError(0, 'unreachable', 'A part of the console could not be loaded. Load the page again.'))), [])
  if (error) return <Failure error={error} />
  return Page ? <Page {...props} /> : <p class="quiet">Loading …</p>
}
