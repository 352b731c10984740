// A form for the inputs of a workflow. In: their declarations. Out: values of the declared types; JSON is checked as it is typed.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { plain } from './markdown'
import { Field } from './parts'
import type { WorkflowInput } from './types'

type Values = Record<string, unknown>

// What was typed and is no value of its type. It stays as it is, is told where it stands, and is never sent.
export class Unreadable {
  constructor(
    readonly text: string,
    readonly why: string,
  ) {}
}

// What is to be mended before the values can be sent, in sentences.
export function faultsOf(inputs: WorkflowInput[], values: Values): string[] {
  const missing = inputs.filter((input) => input.required && (values[input.name] === undefined || values[input.name] === ''))
  const unread = inputs.filter((input) => values[input.name] instanceof Unreadable)
  return [...(missing.length ? [`Still missing: ${missing.map((input) => input.name).join(', ')}.`] : []), ...unread.map((input) => `${input.name}: ${(values[input.name] as Unreadable).why}.`)]
}

export function Mend({ faults }: { faults: string[] }): JSX.Element | null {
  return faults.length ? <div class="card error" role="alert">{faults.map((fault) => <p key={fault}><strong>{fault}</strong></p>)}</div> : null
}

export function InputForm({ inputs, values, change }: { inputs: WorkflowInput[]; values: Values; change: (values: Values) => void }): JSX.Element {
  const set = (name: string, value: unknown): void => {
    const { [name]: _, ...others } = values
    change(value === undefined ? others : { ...others, [name]: value })
  }
  return <>{inputs.map((input) => <Input key={input.name} input={input} value={values[input.name]} set={(value) => set(input.name, value)} />)}</>
}

function Input({ input, value, set }: { input: WorkflowInput; value: unknown; set: (value: unknown) => void }): JSX.Element {
  const standsIn = input.default === undefined || input.default === null ? 'optional' : `${typeof input.default === 'string' ? `“${input.default}”` : JSON.stringify(input.default)} if left empty`
  const note = [input.type === 'string' ? '' : input.type.replace('_', ' '), input.required ? 'required' : standsIn, plain(input.description ?? '')].filter(Boolean).join(' · ')
  return <Field label={input.name} note={note}>{(id) => <Control id={id} input={input} value={value} set={set} />}</Field>
}

function Control({ id, input, value, set }: { id: string; input: WorkflowInput; value: unknown; set: (value: unknown) => void }): JSX.Element {
  if (input.enum?.length)
    return (
      <select id={id} value={value === undefined ? '' : JSON.stringify(value)} onChange={(event) => set(event.currentTarget.value ? (JSON.parse(event.currentTarget.value) as unknown) : undefined)}>
        <option value="">{input.default === undefined || input.default === null ? 'choose …' : `${String(input.default)} (as the recipe says)`}</option>
        {input.enum.map((each) => <option value={JSON.stringify(each)}>{String(each)}</option>)}
      </select>
    )
  if (input.type === 'boolean')
    return (
      <select id={id} value={value === undefined ? '' : String(value)} onChange={(event) => set(event.currentTarget.value ? event.currentTarget.value === 'true' : undefined)}>
        <option value="">{input.required ? 'choose …' : 'as the recipe says'}</option><option value="true">yes</option><option value="false">no</option>
      </select>
    )
  if (input.type === 'json') return <Typed id={id} value={value} set={set} read={readJson} isLong />
  if (input.type === 'number') return <Typed id={id} value={value} set={set} read={readNumber} />
  const text = value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  if (input.type === 'file_path') return <input id={id} class="mono" placeholder="path inside the workspace" value={text} onInput={(event) => set(event.currentTarget.value || undefined)} />
  return <textarea id={id} rows={2} style="min-height:3rem" value={text} onInput={(event) => set(event.currentTarget.value || undefined)} />
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    return new Unreadable(text, `this is no JSON (${(error as Error).message})`)
  }
}

function readNumber(text: string): unknown {
  return Number.isFinite(Number(text)) ? Number(text) : new Unreadable(text, 'this is no number')
}

// A value that is typed as text and read at once.
function Typed({ id, value, set, read, isLong }: { id: string; value: unknown; set: (value: unknown) => void; read: (text: string) => unknown; isLong?: boolean }): JSX.Element {
  const [text, setText] = useState(() => (value === undefined ? '' : value instanceof Unreadable ? value.text : JSON.stringify(value, null, 2)))
  const take = (typed: string): void => (setText(typed), set(typed.trim() ? read(typed) : undefined))
  const fault = value instanceof Unreadable ? value.why : ''
  const about = { id, value: text, 'aria-describedby': `${id}-fault`, 'aria-invalid': fault ? ('true' as const) : undefined }
  return (
    <>
      {isLong ? <textarea {...about} class="code" onInput={(event) => take(event.currentTarget.value)} /> : <input {...about} inputMode="decimal" onInput={(event) => take(event.currentTarget.value)} />}
      <p id={`${id}-fault`} class="small fault">{fault ? <span class="state bad" data-mark="✗">{fault}</span> : ''}</p>
    </>
  )
}
