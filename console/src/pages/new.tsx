// A new workflow: from a template, from scratch, or from words that a model makes a recipe of.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get, part, post, put } from '../api'
import { faultsOf, InputForm } from '../inputs'
import { plain, Raw } from '../markdown'
import { Failure, Field, Loaded, Title, useAction } from '../parts'
import { useResource } from '../resource'
import { go, query } from '../router'
import type { Outline, Problem } from '../types'
import { count } from '../words'
import Editor from './editor'

const BLANK: Record<string, string> = {
  flat: `name: NAME
description: What this workflow is for
inputs:
  - name: topic
    required: true
steps:
  - id: first
    subagent: researcher
    prompt: "Find out about {{inputs.topic}}."
`,
  wrapped: `workflow:
  name: NAME
  description: What this workflow is for
  inputs:
    - name: topic
      required: true
  steps:
    - id: first
      agent: researcher
      input: "Find out about {{inputs.topic}}."
`,
  structural: `name: NAME
description: What this workflow is for
steps:
  - id: first
    agent: worker
    task: Say what is to be done here.
    write_set: [notes]
`,
}
const BLANK_ABOUT: Record<string, string> = {
  flat: 'steps run side by side unless they depend on each other',
  wrapped: 'under workflow:, each step follows the one before it',
  structural: 'tasks with the files that each may write',
}

const drafts = new Map<string, string>() // texts that are to be edited next, by name

export default function New({ name, done }: { name: string; done: () => Promise<void> }): JSX.Element {
  if (name) return <Begin name={name} done={done} />
  return <Choose />
}

function Begin({ name, done }: { name: string; done: () => Promise<void> }): JSX.Element {
  const from = query.value.get('from') ?? 'flat'
  const text = useResource(async () => drafts.get(name) ?? BLANK[from]?.replace('NAME', name) ?? (await post<{ recipe: string }>(`/api/recipes/templates/${part(from)}`, { name })).recipe, `${name} ${from}`)
  return <Loaded from={text}>{(start) => <><p class="crumbs"><a href="/workflows">Workflows</a> / new</p><Editor name={name} saved={undefined} start={start} done={done} /></>}</Loaded>
}

function Choose(): JSX.Element {
  const templates = useResource(() => get<{ templates: { template: string; description: string }[] }>('/api/recipes/templates'), 'templates')
  const [name, setName] = useState('')
  const [from, setFrom] = useState('flat')
  const next = (event: Event): void => {
    event.preventDefault()
    go(`/workflows/${part(name)}?tab=edit&from=${part(from)}`)
  }
  const choice = (value: string, about: string): JSX.Element => (
    <li key={value}><label class="choice"><input type="radio" name="from" checked={from === value} onChange={() => setFrom(value)} /><span><strong>{value}</strong><br /><span class="quiet small">{about}</span></span></label></li>
  )
  return (
    <>
      <p class="crumbs"><a href="/workflows">Workflows</a> / new</p>
      <Title page="New workflow">New workflow</Title>
      <div class="overview">
        <form onSubmit={next}>
          <h2 class="first">Write it</h2>
          <Field label="Its name" note="letters, digits, hyphens, underscores">{(id) => <input id={id} class="wide" value={name} required pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" onInput={(event) => setName(event.currentTarget.value)} />}</Field>
          <fieldset><legend>From scratch</legend><ul class="plain">{Object.entries(BLANK_ABOUT).map(([value, about]) => choice(value, about))}</ul></fieldset>
          <fieldset><legend>From a template</legend><Loaded from={templates}>{({ templates: all }) => <ul class="plain">{all.map((each) => choice(each.template, each.description))}</ul>}</Loaded></fieldset>
          <p class="bar"><button class="main" disabled={!name}>Open the editor</button><span class="quiet small">Nothing is saved before you say so.</span></p>
        </form>
        <Words />
      </div>
    </>
  )
}

interface Draft {
  id: string
  recipe: string
  diagram: string
  rounds: number
  to_read: string[]
  problems: Problem[]
}

function Words(): JSX.Element {
  const [words, setWords] = useState('')
  const [draft, setDraft] = useState<Draft>()
  const action = useAction()
  const send = (event: Event): void => {
    event.preventDefault()
    setDraft(undefined)
    void action.run(async () => setDraft((await post<{ draft: Draft }>('/api/drafts', { words })).draft))
  }
  return (
    <section aria-label="Draft">
      <form onSubmit={send}>
        <h2 class="first">Say it in words</h2>
        <Field label="What is to be done" note="a model writes the recipe; you read it before anything runs">{(id) => <textarea id={id} value={words} placeholder="First research Acme, then write a brief about it" onInput={(event) => setWords(event.currentTarget.value)} />}</Field>
        {action.error ? <Failure error={action.error} /> : null}
        <p><button class="main" disabled={action.isBusy || !words.trim()}>{action.isBusy ? 'A model writes …' : 'Draft it'}</button></p>
      </form>
      {draft ? <Drafted key={draft.id} draft={draft} forget={() => setDraft(undefined)} /> : null}
    </section>
  )
}

function Drafted({ draft, forget }: { draft: Draft; forget: () => void }): JSX.Element {
  const [outline, setOutline] = useState<Outline>()
  const [values, setValues] = useState<Record<string, unknown>>({})
  const [name, setName] = useState('')
  const action = useAction()
  useEffect(() => void action.run(async () => {
    const found = await post<Outline>('/api/recipes/outline', { recipe: draft.recipe })
    setOutline(found)
    setName(found.workflow)
  }), [])
  const faults = faultsOf(outline?.inputs ?? [], values)
  const run = (): void =>
    void action.run(async () => {
      if (faults.length) throw new ApiError(0, 'inputs', faults.join(' '))
      const { run_id } = await post<{ run_id: string }>('/api/runs', { recipe: draft.recipe, inputs: values, wait: false }, { 'Idempotency-Key': crypto.randomUUID() })
      go(`/runs/${part(run_id)}`)
    })
  const save = (): void =>
    void action.run(async () => {
      await put(`/api/workflows/${part(name)}`, { recipe: draft.recipe, why: `drafted in ${draft.id}`, emitted: true }, { 'If-None-Match': '*' })
      go(`/workflows/${part(name)}`)
    })
  const open = (): void => {
    drafts.set(name, draft.recipe)
    go(`/workflows/${part(name)}?tab=edit&from=draft`)
  }
  const isSound = !draft.problems.length && draft.recipe !== ''
  return (
    <div class="card asking">
      <h3>A draft, in {count(draft.rounds, 'round')}. Nothing of it has run.</h3>
      {draft.to_read.length ? <div class="card warning"><p><strong>Read this first:</strong></p><ul>{draft.to_read.map((each) => <li>{plain(each)}</li>)}</ul></div> : null}
      {draft.problems.length ? <div class="card error"><p><strong>It cannot run like this:</strong></p><ul>{draft.problems.map((each) => <li>{each.line ? `line ${each.line}: ` : ''}{plain(each.message)}</li>)}</ul></div> : null}
      {draft.diagram ? <Raw is="wide-lines" label="Diagram" text={draft.diagram} /> : null}
      <Raw label="Recipe" text={draft.recipe} />
      {outline && isSound ? <InputForm inputs={outline.inputs} values={values} change={setValues} /> : null}
      {action.error ? <Failure error={action.error} next={action.error.kind === 'changed' ? <p>There is a workflow of this name already: choose another one.</p> : null} /> : null}
      <Field label="Name">{(id) => <input id={id} value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
      <p class="bar">
        <button class="main" disabled={action.isBusy || !isSound} onClick={run}>Approve and run</button>
        <button disabled={action.isBusy || !isSound || !name} onClick={save}>Save it</button>
        <button disabled={!name} onClick={open}>Open in the editor</button>
        <button onClick={forget}>Discard</button>
      </p>
    </div>
  )
}
