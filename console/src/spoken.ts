// What a model says while it says it. In: what a step has said so far, and the stream. Out: its transcript with the newest words.
import { useEffect, useState } from 'preact/hooks'
import { changes, type Spoken, type Words } from './live'
import type { Entry, StepDetail } from './types'

type Part = NonNullable<Spoken['attempt']['part']>

// The name of a part, as the server has it.
export function partName(part: Part | undefined): string {
  switch (part?.kind) {
    case 'branch':
      return part.key ?? ''
    case 'try':
    case 'check':
      return `${part.kind}.${part.iteration}`
    case 'item':
      return `item.${part.index}.stage.${part.stage}`
    case 'reduce':
      return 'reduce'
    default:
      return ''
  }
}

// The pieces that are newer than what was loaded of the step.
export function useSpoken(run: string, step: string, detail: StepDetail | undefined): Spoken[] {
  const [heard, setHeard] = useState<Spoken[]>([])
  const cursor = detail?.cursor
  useEffect(() => {
    setHeard([])
    return changes.listen(run, (words: Words) => {
      const own = words.spoken.filter((each) => each.attempt.step === step)
      if (own.length) setHeard((before) => [...before, ...own])
    })
  }, [run, step])
  useEffect(() => {
    if (cursor !== undefined) setHeard((before) => (before.some((each) => each.seq <= cursor) ? before.filter((each) => each.seq > cursor) : before))
  }, [cursor])
  return heard
}

// A reply is one entry, however many pieces it came in. `part`: that alone; undefined: every part.
export function withSpoken(detail: StepDetail, spoken: Spoken[], part?: string): StepDetail {
  const news = spoken.filter((each) => each.seq > detail.cursor && (part === undefined || partName(each.attempt.part) === part))
  if (!news.length) return detail
  const transcript: Entry[] = [...detail.transcript]
  for (const { attempt, text } of news) {
    const name = partName(attempt.part)
    const last = transcript.at(-1)
    if (last?.kind === 'words' && last.part === name && last.attempt === attempt.number) transcript[transcript.length - 1] = { ...last, text: last.text + text }
    else transcript.push({ at: 0, part: name, attempt: attempt.number, agent: '', kind: 'words', text, verdict: '' })
  }
  return { ...detail, transcript }
}
