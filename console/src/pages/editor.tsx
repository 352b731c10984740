// Edit a workflow's text beside its graph. Bytes that nobody touched stay as they are: what is saved is the text itself.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, part, post, put } from '../api'
import { Dialog, Diff, Failure, Title, useAction } from '../parts'
import type { Problem } from '../types'
import { lineDiff } from '../difference'
import { Faults, Problems, type Saved } from './workflows'

const START = `name: NAME
description: What this workflow is for
inputs:
  - name: topic
    required: true
steps:
  - id: first
    subagent: researcher
    prompt: "Find out about {{inputs.topic}}."
`

export function Editor({ name, saved, done }: { name: string; saved: Saved | undefined; done: () => void }): JSX.Element {
  const before = saved?.text ?? ''
  const [text, setText] = useState(saved ? before : START.replace('NAME', name))
  const [problems, setProblems] = useState<Problem[]>([])
  const [isAsking, setAsking] = useState(false)
  const action = useAction()
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    let view: { destroy: () => void } | undefined
    let isGone = false
    void import('../codemirror').then(({ open }) => {
      if (!isGone && box.current) view = open(box.current, text, setText)
    })
    return () => {
      isGone = true
      view?.destroy()
    }
  }, [])
  useEffect(() => {
    const timer = setTimeout(() => void check(text).then(setProblems), 400)
    return () => clearTimeout(timer)
  }, [text])
  const save = (): void =>
    void action.run(async () => {
      await put(`/api/workflows/${part(name)}`, { recipe: text, why: 'edited in the console' }, saved ? { 'If-Match': `"${saved.etag}"` } : { 'If-None-Match': '*' })
      setAsking(false)
      done()
    })
  const isSame = saved !== undefined && text === before
  return (
    <>
      {saved ? null : <Title page={`New: ${name}`}>New workflow: {name}</Title>}
      <div ref={box} class="editor" />
      <Problems problems={problems} />
      <p class="bar"><button class="main" disabled={isSame} onClick={() => setAsking(true)}>Save …</button>{isSame ? <span class="quiet">Nothing has changed.</span> : <span class="quiet">Not saved yet.</span>}</p>
      {isAsking ? (
        <Dialog title="Save these changes?" close={() => setAsking(false)}>
          <Diff text={lineDiff(before, text)} />
          {action.error ? <Failure error={action.error} next={action.error.kind === 'changed' ? <p>The file was changed meanwhile. Copy your text, load the page again, and compare.</p> : <Faults error={action.error.details} />} /> : null}
          <p class="bar"><button class="main" disabled={action.isBusy} onClick={save}>Save</button><button onClick={() => setAsking(false)}>Back to the text</button></p>
        </Dialog>
      ) : null}
    </>
  )
}

async function check(recipe: string): Promise<Problem[]> {
  try {
    const { warnings } = await post<{ warnings: Problem[] }>('/api/validate', { recipe })
    return warnings
  } catch (failure) {
    return failure instanceof ApiError ? ((failure.details.problems as Problem[] | undefined) ?? []) : []
  }
}
