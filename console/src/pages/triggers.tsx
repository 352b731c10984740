// What starts workflows by itself: schedules, webhooks, watched folders. When each fires next, here and in its own zone.
import type { JSX } from 'preact'
import { get, part, post } from '../api'
import { plain } from '../markdown'
import { Empty, Failure, Loaded, Title, useAction } from '../parts'
import { useResource } from '../resource'
import { go } from '../router'
import { clock } from '../words'

interface Trigger {
  name: string
  kind: 'schedule' | 'webhook' | 'folder'
  workflow: string
  cron?: string
  zone?: string
  folder?: string
  pattern?: string
  hook?: string
  overlap: string
  paused: boolean
  next_at: string | null
}

export function Triggers(): JSX.Element {
  const schedules = useResource(() => get<{ schedules: Trigger[] }>('/api/schedules'), 'schedules', '*')
  const hooks = useResource(() => get<{ hooks: Trigger[] }>('/api/hooks'), 'hooks', '*')
  const reload = async (): Promise<void> => void (await Promise.all([schedules.reload(), hooks.reload()]))
  return (
    <>
      <Title page="Triggers">Triggers</Title>
      <p class="quiet">A trigger is a when, not a kind of work: it starts a saved workflow.</p>
      <Loaded from={schedules}>
        {({ schedules: all }) => (
          <Loaded from={hooks}>
            {({ hooks: more }) => {
              const both = [...all, ...more.filter((hook) => !all.some((each) => each.name === hook.name))]
              return both.length ? <>{both.map((each) => <One key={each.name} trigger={each} reload={reload} />)}</> : <Empty what="Nothing starts by itself here." command='stretto schedule add nightly research-and-brief --cron "0 6 * * *" -i topic=tea' />
            }}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}

function One({ trigger, reload }: { trigger: Trigger; reload: () => Promise<void> }): JSX.Element {
  const path = `/api/schedules/${part(trigger.name)}`
  const action = useAction()
  const next = useResource(() => (trigger.kind === 'schedule' ? get<{ next: string[] }>(`${path}/next?count=3`) : Promise.resolve({ next: [] })), `${trigger.name} ${trigger.next_at}`)
  const act = (verb: string): void => void action.run(async () => { await post(`${path}/${verb}`); await reload() })
  const runNow = (): void => void action.run(async () => go(`/runs/${part((await post<{ run_id: string }>(`${path}/run-now`)).run_id)}`))
  return (
    <section class="card" aria-label={trigger.name}>
      <p><strong>{plain(trigger.name)}</strong> starts <a href={`/workflows/${part(trigger.workflow)}`}>{trigger.workflow}</a> {sentence(trigger)}{trigger.paused ? <span class="state warn" data-mark="‖"> paused</span> : null}</p>
      {next.value?.next.length ? <ul class="small">{next.value.next.map((at) => <li>{clock(at)}{trigger.zone ? <span class="quiet"> · {inZone(at, trigger.zone)} in {trigger.zone}</span> : null}</li>)}</ul> : null}
      {action.error ? <Failure error={action.error} /> : null}
      <p class="bar">
        {trigger.paused ? <button disabled={action.isBusy} onClick={() => act('resume')}>Go on</button> : <button disabled={action.isBusy} onClick={() => act('pause')}>Pause</button>}
        {trigger.kind === 'schedule' ? <button disabled={action.isBusy} onClick={runNow}>Run now</button> : null}
      </p>
    </section>
  )
}

function sentence(trigger: Trigger): string {
  if (trigger.kind === 'schedule') return `at ${trigger.cron} (${trigger.zone})`
  if (trigger.kind === 'folder') return `when a file ${trigger.pattern ?? ''} comes to ${trigger.folder}`
  return 'when its webhook is called'
}

function inZone(at: string, zone: string): string {
  try {
    return new Date(at).toLocaleString(undefined, { timeZone: zone })
  } catch {
    return at // a zone that this browser does not know
  }
}
