// A form for the inputs of a workflow. In: their declarations. Out: values of the declared types; JSON is checked as it is typed.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Field } from './parts'
import type { WorkflowInput } from './types'

type Values = Record<string, unknown>

// The required ones that have no value yet, by name.
export function missingOf(inputs: WorkflowInput[], values: Values): string[] {
  return inputs.filter((input) => input.required && (values[input.name] === undefined || values[input.name] === '')).map((input) => input.name)
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
  const note = [input.type === 'string' ? '' : input.type.replace('_', ' '), input.required ? 'required' : standsIn, input.description].filter(Boolean).join(' · ')
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
  if (input.type === 'json') return <JsonBox id={id} set={set} />
  if (input.type === 'number') return <input id={id} inputMode="decimal" onInput={(event) => set(event.currentTarget.value.trim() === '' ? undefined : Number.isNaN(Number(event.currentTarget.value)) ? event.currentTarget.value : Number(event.currentTarget.value))} />
  if (input.type === 'file_path') return <input id={id} class="mono" placeholder="path inside the workspace" onInput={(event) => set(event.currentTarget.value || undefined)} />
  return <textarea id={id} rows={2} style="min-height:3rem" value={typeof value === 'string' ? value : ''} onInput={(event) => set(event.currentTarget.value || undefined)} />
}

function JsonBox({ id, set }: { id: string; set: (value: unknown) => void }): JSX.Element {
  const [fault, setFault] = useState('')
  const take = (text: string): void => {
    if (!text.trim()) return (setFault(''), set(undefined))
    try {
      set(JSON.parse(text))
      setFault('')
    } catch (error) {
      setFault((error as Error).message)
      set(undefined)
    }
  }
  return (
    <>
      <textarea id={id} class="code" aria-describedby={`${id}-fault`} aria-invalid={fault ? 'true' : undefined} onInput={(event) => take(event.currentTarget.value)} />
      <p id={`${id}-fault`} class="small">{fault ? <span class="state bad" data-mark="✗">{fault}</span> : ''}</p>
    </>
  )
}
