// What starts workflows by itself: schedules, webhooks, watched folders. When each fires next, here and in its own zone.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get, part, post, put, remove } from '../api'
import { faultsOf, InputForm } from '../inputs'
import { plain } from '../markdown'
import { announce, Dialog, Empty, Failure, Field, Loaded, State, Title, Told, useAction, When } from '../parts'
import { ON_RETURN, useResource } from '../resource'
import { go, query } from '../router'
import type { WorkflowInput, WorkflowRow } from '../types'
import { clock, shortened, shortId } from '../words'

type Kind = 'schedule' | 'webhook' | 'folder'

interface Trigger {
  name: string
  kind: Kind
  workflow: string
  inputs: Record<string, unknown>
  cron?: string
  says?: string
  zone?: string
  missed?: string
  folder?: string
  pattern?: string
  input?: string
  hook?: string
  mapping?: Record<string, string>
  overlap: string
  permission: string | null
  paused: boolean
  next_at: string | null
}

interface Fire {
  run_id: string
  due_at: string
  status: string
  why: string | null
}

const KINDS: Record<Kind, [string, string]> = {
  schedule: ['At certain times', 'by a cron expression'],
  webhook: ['When it is called', 'a signed POST from another program'],
  folder: ['For each file', 'that comes into a folder of the project'],
}
const OVERLAP: Record<string, string> = { skip: 'skip it', queue: 'wait for it', 'cancel-previous': 'cancel the last run', allow: 'run side by side' }
const MISSED: Record<string, string> = { once: 'run the last of them', all: 'run them all, up to 24', skip: 'run none' }
const LOOK_MS = 200 // at what became of a fire
const MOST_LOOKS = 50
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone

export function Triggers(): JSX.Element {
  const all = useResource(() => get<{ schedules: Trigger[] }>('/api/schedules'), 'schedules', '*')
  const workflows = useResource(() => get<{ workflows: WorkflowRow[] }>('/api/workflows'), 'workflows', ON_RETURN)
  const isGone = (name: string): boolean => workflows.value !== undefined && !workflows.value.workflows.some((each) => each.name === name)
  const [asked, setAsked] = useState<Trigger | 'new' | undefined>(query.value.has('for') ? 'new' : undefined)
  const [secret, setSecret] = useState<{ name: string; hook: string; secret: string }>()
  const done = (made?: { name: string; hook: string; secret: string }): void => {
    setAsked(undefined)
    setSecret(made)
    if (query.value.has('for')) go('/triggers', true)
    void all.reload()
  }
  return (
    <>
      <div class="bar between"><Title page="Triggers">Triggers</Title>{asked ? null : <button class="main" onClick={() => setAsked('new')}>New trigger</button>}</div>
      <p class="quiet">A trigger says when a saved workflow starts by itself. Triggers fire while this server runs.</p>
      {asked ? <Edit key={asked === 'new' ? '' : asked.name} before={asked === 'new' ? undefined : asked} done={done} /> : null}
      {secret ? <Secret made={secret} close={() => setSecret(undefined)} /> : null}
      <Loaded from={all}>
        {({ schedules }) => schedules.length ? <>{schedules.map((each) => <One key={each.name} trigger={each} isGone={isGone(each.workflow)} reload={all.reload} edit={() => setAsked(each)} told={setSecret} />)}</> : asked ? null : <Empty what="Nothing starts by itself here." action={<button onClick={() => setAsked('new')}>Make the first one</button>} command='stretto schedule add nightly research-and-brief --cron "0 6 * * *" -i topic=tea' />}
      </Loaded>
    </>
  )
}

function One({ trigger, isGone, reload, edit, told }: { trigger: Trigger; isGone: boolean; reload: () => Promise<void>; edit: () => void; told: (made: { name: string; hook: string; secret: string }) => void }): JSX.Element {
  const path = `/api/schedules/${part(trigger.name)}`
  const action = useAction()
  const [asked, setAsked] = useState<'delete' | 'secret' | null>(null)
  const next = useResource(() => (trigger.kind === 'schedule' ? get<{ next: string[] }>(`${path}/next?count=3`) : Promise.resolve({ next: [] })), `${trigger.name} ${trigger.next_at}`)
  const fires = useResource(() => get<{ fires: Fire[] }>(`${path}?limit=5`), trigger.name, '*')
  const act = (verb: string): void => void action.run(async () => { await post(`${path}/${verb}`); announce(`${trigger.name}: ${verb}`); await reload() })
  const runNow = (): void => void action.run(async () => go(`/runs/${part(await started(path).finally(fires.reload))}`))
  const rotate = (): void => void action.run(async () => { const { secret } = await post<{ secret: string }>(`/api/hooks/${part(trigger.name)}/rotate`); setAsked(null); told({ name: trigger.name, hook: trigger.hook ?? '', secret }) })
  const given = Object.entries(trigger.inputs)
  return (
    <section class="card" aria-label={trigger.name}>
      <div class="bar between">
        <h2 class="first">{plain(trigger.name)} {trigger.paused ? <span class="state warn small" data-mark="‖">paused</span> : null}</h2>
        <span class="bar snug">
          {trigger.kind === 'folder' ? null : <button disabled={action.isBusy} onClick={runNow}>Run now</button>}
          {trigger.paused ? <button disabled={action.isBusy} onClick={() => act('resume')}>Go on</button> : <button disabled={action.isBusy} onClick={() => act('pause')}>Pause</button>}
          {trigger.kind === 'webhook' ? <button disabled={action.isBusy} onClick={() => setAsked('secret')}>New secret …</button> : null}
          <button onClick={edit}>Edit</button>
          <button class="bad" disabled={action.isBusy} onClick={() => setAsked('delete')}>Delete …</button>
        </span>
      </div>
      <p>Starts <a href={`/workflows/${part(trigger.workflow)}`}>{trigger.workflow}</a> {plain(sentence(trigger))}.{given.length ? <span class="quiet small"> With {plain(shortened(given.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`).join(', '), 400))}.</span> : null}</p>
      {isGone ? <p><span class="state bad" data-mark="✗">There is no workflow {plain(trigger.workflow)} any more: it starts nothing before you choose another one or make it anew.</span></p> : null}
      {trigger.kind === 'webhook' ? <p class="small">Address <code>{`${location.origin}/hooks/${trigger.hook ?? ''}`}</code></p> : null}
      {next.value?.next.length ? <Times at={next.value.next} zone={trigger.zone ?? 'UTC'} /> : null}
      {fires.value?.fires.length ? <details><summary class="small">Fired last</summary><ul class="plain small">{fires.value.fires.map((fire) => <li key={fire.run_id}><State status={fire.status} /> <a class="mono" href={`/runs/${part(fire.run_id)}`} title={fire.run_id}>{shortId(fire.run_id)}</a> <When at={fire.due_at} />{fire.why ? <span class="quiet"> · {plain(fire.why)}</span> : null}</li>)}</ul></details> : null}
      {action.error && !asked ? <Failure error={action.error} /> : null}
      {asked === 'secret' ? (
        <Dialog title={`A new secret for ${trigger.name}?`} close={() => setAsked(null)} error={action.error}>
          <p>The old one counts no more from that moment on: deliveries that are signed with it are refused. The address stays.</p>
          <p class="bar"><button class="bad" disabled={action.isBusy} onClick={rotate}>Make a new secret</button><button onClick={() => setAsked(null)}>Keep the old one</button></p>
        </Dialog>
      ) : null}
      {asked === 'delete' ? (
        <Dialog title={`Delete ${trigger.name}?`} close={() => setAsked(null)} error={action.error}>
          <p>It fires no more{trigger.kind === 'webhook' ? ', and its address and secret are gone' : ''}. The runs that it has started stay.</p>
          <p class="bar"><button class="bad" disabled={action.isBusy} onClick={() => void action.run(async () => { await remove(path); announce('Deleted.'); await reload() })}>Delete it</button><button onClick={() => setAsked(null)}>Keep it</button></p>
        </Dialog>
      ) : null}
    </section>
  )
}

// Its run begins within a second, or the fire says why it could not: what is not there yet is not shown as missing.
async function started(path: string): Promise<string> {
  const { run_id } = await post<{ run_id: string }>(`${path}/run-now`)
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const fire = (await get<{ fires: Fire[] }>(`${path}?limit=20`)).fires.find((each) => each.run_id === run_id)
    if (fire?.status === 'started') return run_id
    if (fire && fire.status !== 'queued') throw new ApiError(0, fire.status, fire.why ?? 'It could not start.')
    await new Promise((done) => setTimeout(done, LOOK_MS))
  }
  throw new ApiError(0, 'queued', 'It is on record, and has not begun yet.', { hint: 'It begins as soon as the server comes to it, and is listed here then.' })
}

function Times({ at, zone }: { at: string[]; zone: string }): JSX.Element {
  return (
    <table class="times small">
      <thead><tr><th>Next</th><th>here, {HERE}</th>{zone === HERE ? null : <th>there, {zone}</th>}</tr></thead>
      <tbody>{at.map((each, index) => <tr key={each}><td class="quiet">{index + 1}</td><td><time>{clock(each)}</time></td>{zone === HERE ? null : <td>{inZone(each, zone)}</td>}</tr>)}</tbody>
    </table>
  )
}

function sentence(trigger: Trigger): string {
  if (trigger.kind === 'schedule') return `${trigger.says ?? `at ${trigger.cron}`}, by the clock of ${trigger.zone}`
  if (trigger.kind === 'folder') return `for each file ${trigger.pattern === '*' ? '' : `${trigger.pattern} `}that comes into ${trigger.folder}, as its input ${trigger.input}`
  return 'when another program posts to its address'
}

function inZone(at: string, zone: string): string {
  try {
    return clock(at, zone)
  } catch {
    return at // a zone that this browser does not know
  }
}

function Secret({ made, close }: { made: { name: string; hook: string; secret: string }; close: () => void }): JSX.Element {
  const address = `${location.origin}/hooks/${made.hook}`
  const copy = (text: string): void => void navigator.clipboard?.writeText(text).then(() => announce('Copied.'))
  return (
    <Dialog title={`The secret of ${made.name}`} close={close}>
      <p>It is shown now and never again. The sender signs each delivery with it.</p>
      <Field label="Address">{(id) => <input id={id} class="wide mono" readOnly value={address} />}</Field>
      <Field label="Secret">{(id) => <input id={id} class="wide mono" readOnly value={made.secret} />}</Field>
      <p class="bar"><button onClick={() => copy(address)}>Copy the address</button><button onClick={() => copy(made.secret)}>Copy the secret</button><button class="main" onClick={close}>I have it</button></p>
    </Dialog>
  )
}

interface Form {
  kind: Kind
  name: string
  workflow: string
  inputs: Record<string, unknown>
  cron: string
  zone: string
  missed: string
  overlap: string
  permission: string
  folder: string
  pattern: string
  input: string
  existing: boolean
  mapping: Record<string, string>
}

function formOf(before: Trigger | undefined): Form {
  return {
    kind: before?.kind ?? 'schedule', name: before?.name ?? '', workflow: before?.workflow ?? query.value.get('for') ?? '', inputs: before?.inputs ?? {}, cron: before?.cron ?? '0 6 * * *', zone: before?.zone ?? HERE, missed: before?.missed ?? 'once',
    overlap: before?.overlap ?? 'skip', permission: before?.permission ?? '', folder: before?.folder ?? 'inbox', pattern: before?.pattern ?? '*', input: before?.input ?? '', existing: false, mapping: before?.mapping ?? {},
  }
}

// What is sent: the fields of its kind, and those that every one has.
function bodyOf(form: Form, isNew: boolean): Record<string, unknown> {
  const own = { schedule: { cron: form.cron, zone: form.zone, missed: form.missed }, webhook: { mapping: form.mapping }, folder: { folder: form.folder, pattern: form.pattern, input: form.input, ...(form.existing ? { existing: true } : {}) } }[form.kind]
  return { ...(isNew ? { name: form.name } : {}), workflow: form.workflow, inputs: form.inputs, overlap: form.overlap, permission: form.permission || null, ...own }
}

function Edit({ before, done }: { before: Trigger | undefined; done: (made?: { name: string; hook: string; secret: string }) => void }): JSX.Element {
  const [form, setForm] = useState(() => formOf(before))
  const workflows = useResource(() => get<{ workflows: WorkflowRow[] }>('/api/workflows'), 'of triggers')
  const action = useAction()
  const set = (part: Partial<Form>): void => setForm((now) => ({ ...now, ...part }))
  const declared = workflows.value?.workflows.find((each) => each.name === form.workflow)?.inputs ?? []
  const taken = form.kind === 'folder' ? declared.filter((each) => each.name !== form.input) : form.kind === 'webhook' ? declared.filter((each) => !form.mapping[each.name]) : declared
  const send = (event: Event): void => {
    event.preventDefault()
    void action.run(async () => {
      const faults = faultsOf(form.kind === 'schedule' ? declared : taken.map((each) => ({ ...each, required: false })), form.inputs)
      if (faults.length) throw new ApiError(0, 'inputs', faults.join(' '))
      if (before) return void (await put(`/api/schedules/${part(before.name)}`, bodyOf(form, false)), done())
      const made = await post<{ hook?: Trigger; secret?: string }>({ schedule: '/api/schedules', webhook: '/api/hooks', folder: '/api/folders' }[form.kind], bodyOf(form, true))
      done(made.secret ? { name: form.name, hook: made.hook?.hook ?? '', secret: made.secret } : undefined)
    })
  }
  return (
    <form class="card" onSubmit={send} aria-label={before ? `Edit ${before.name}` : 'New trigger'}>
      <h2 class="first">{before ? `Edit ${before.name}` : 'New trigger'}</h2>
      {before ? null : <fieldset class="kinds"><legend class="visually-hidden">What starts it</legend>{(Object.keys(KINDS) as Kind[]).map((kind) => <label class="choice" key={kind}><input type="radio" name="kind" checked={form.kind === kind} onChange={() => set({ kind, overlap: { schedule: 'skip', webhook: 'allow', folder: 'queue' }[kind] })} /><span><strong>{KINDS[kind][0]}</strong><br /><span class="quiet small">{KINDS[kind][1]}</span></span></label>)}</fieldset>}
      <div class="fields">
        {before ? null : <Field label="Its name" note="letters, digits, hyphens, underscores">{(id) => <input id={id} required pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" value={form.name} onInput={(event) => set({ name: event.currentTarget.value })} />}</Field>}
        <Field label="Starts the workflow">{(id) => <select id={id} required value={form.workflow} onChange={(event) => set({ workflow: event.currentTarget.value, inputs: {} })}><option value="">choose …</option>{(workflows.value?.workflows ?? []).filter((each) => each.ok).map((each) => <option key={each.name}>{each.name}</option>)}</select>}</Field>
      </div>
      {form.kind === 'schedule' ? <Schedule form={form} set={set} /> : null}
      {form.kind === 'webhook' ? <Mapping declared={declared} mapping={form.mapping} set={(mapping) => set({ mapping })} /> : null}
      {form.kind === 'folder' ? <Folder form={form} set={set} declared={declared} /> : null}
      {taken.length ? <fieldset><legend>{form.kind === 'webhook' ? 'Inputs that are the same for every delivery' : 'Its inputs'}</legend><InputForm inputs={form.kind === 'webhook' ? taken.map((each) => ({ ...each, required: false })) : taken} values={form.inputs} change={(inputs) => set({ inputs })} /></fieldset> : null}
      <div class="fields">
        <Choice label="While its last run goes on" options={OVERLAP} value={form.overlap} set={(overlap) => set({ overlap })} />
        {form.kind === 'schedule' ? <Choice label="Fires that nobody served" options={MISSED} value={form.missed} set={(missed) => set({ missed })} /> : null}
        <Choice label="Its runs may" options={{ '': 'do what the settings say', read_only: 'change no file', ask: 'change files, after a question', auto: 'change files' }} value={form.permission} set={(permission) => set({ permission })} />
      </div>
      {action.error ? <Failure error={action.error} /> : null}
      <p class="bar"><button class="main" disabled={action.isBusy}>{before ? 'Save it' : 'Make it'}</button><button type="button" onClick={() => done()}>Cancel</button></p>
    </form>
  )
}

function Choice({ label, options, value, set }: { label: string; options: Record<string, string>; value: string; set: (value: string) => void }): JSX.Element {
  return <Field label={label}>{(id) => <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>{Object.entries(options).map(([key, word]) => <option value={key}>{word}</option>)}</select>}</Field>
}

const SHORT: Record<string, string> = { '0 6 * * *': 'every morning', '0 9 * * 1-5': 'on workdays', '@weekly': 'every week', '0 0 1 * *': 'every month', '@hourly': 'every hour', '*/15 * * * *': 'every 15 minutes' }

function Schedule({ form, set }: { form: Form; set: (part: Partial<Form>) => void }): JSX.Element {
  const [preview, setPreview] = useState<{ says: string; next: string[] } | string>()
  useEffect(() => {
    let isOld = false
    const timer = setTimeout(() => {
      void post<{ says: string; next: string[] }>('/api/schedules/preview', { cron: form.cron, zone: form.zone }).then((found) => !isOld && setPreview(found), (error: ApiError) => !isOld && setPreview([error.message, error.details.hint].filter(Boolean).join('; ')))
    }, 250)
    return () => ((isOld = true), clearTimeout(timer))
  }, [form.cron, form.zone])
  const zones = typeof Intl.supportedValuesOf === 'function' ? ['UTC', ...Intl.supportedValuesOf('timeZone')] : ['UTC', HERE]
  return (
    <>
      <div class="fields">
        <Field label="When" note="minute, hour, day, month, weekday">{(id) => <input id={id} class="mono" required value={form.cron} onInput={(event) => set({ cron: event.currentTarget.value })} />}</Field>
        <Field label="By the clock of">{(id) => <><input id={id} required list="zones" value={form.zone} onInput={(event) => set({ zone: event.currentTarget.value })} /><datalist id="zones">{zones.map((each) => <option value={each} />)}</datalist></>}</Field>
      </div>
      <p class="bar snug">{Object.entries(SHORT).map(([cron, word]) => <button type="button" class="small" aria-pressed={form.cron === cron} onClick={() => set({ cron })}>{word}</button>)}</p>
      <div class="preview">{typeof preview === 'object' ? <Told key={preview.says} says={`It runs ${preview.says}.`} /> : null}{typeof preview === 'string' ? <span class="state bad" data-mark="✗">{preview}</span> : preview ? <><p><strong>It runs {preview.says}.</strong></p><Times at={preview.next} zone={form.zone} /></> : <p class="quiet">…</p>}</div>
    </>
  )
}

function Mapping({ declared, mapping, set }: { declared: WorkflowInput[]; mapping: Record<string, string>; set: (mapping: Record<string, string>) => void }): JSX.Element {
  if (!declared.length) return <p class="quiet small">The workflow takes no inputs.</p>
  const change = (name: string, text: string): void => {
    const { [name]: _, ...others } = mapping
    set(text ? { ...others, [name]: text } : others)
  }
  return (
    <fieldset>
      <legend>What each input takes from the JSON that is sent</legend>
      <p class="quiet small">Left empty everywhere, the fields of the body that have the names of inputs are taken.</p>
      {declared.map((each) => <Field key={each.name} label={each.name} note={each.type}>{(id) => <input id={id} class="mono wide" placeholder={`{{body.${each.name}}}`} value={mapping[each.name] ?? ''} onInput={(event) => change(each.name, event.currentTarget.value)} />}</Field>)}
    </fieldset>
  )
}

function Folder({ form, set, declared }: { form: Form; set: (part: Partial<Form>) => void; declared: WorkflowInput[] }): JSX.Element {
  return (
    <div class="fields">
      <Field label="Folder" note="in the project">{(id) => <input id={id} class="mono" required value={form.folder} onInput={(event) => set({ folder: event.currentTarget.value })} />}</Field>
      <Field label="Files" note="a pattern">{(id) => <input id={id} class="mono" required value={form.pattern} onInput={(event) => set({ pattern: event.currentTarget.value })} />}</Field>
      <Field label="The file is the input">{(id) => <select id={id} required value={form.input} onChange={(event) => set({ input: event.currentTarget.value })}><option value="">choose …</option>{declared.map((each) => <option key={each.name}>{each.name}</option>)}</select>}</Field>
      <label class="choice"><input type="checkbox" checked={form.existing} onChange={(event) => set({ existing: event.currentTarget.checked })} /><span>Files that are there now count, too</span></label>
    </div>
  )
}
