// The graph of a recipe that is being written: every change of it is a change of the text. In: its outline. Out: edits.
// What is dragged can be done with buttons and keys as well (WCAG 2.5.7).
import type { JSX } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { layOut } from './layout'
import { Field } from './parts'
import type { Outline, OutlineStep } from './types'
import { shortened } from './words'

export type StepEdit =
  | { do: 'connect' | 'disconnect'; before: string; step: string }
  | { do: 'add'; id: string; agent: string; instruction: string; depends_on: string[]; after?: string }
  | { do: 'duplicate' | 'rename'; step: string; id: string }
  | { do: 'remove'; step: string; force?: boolean }

const LONGEST = 24
const COLUMN = 7.4 // of the monospaced font at 12 pixels
const HEIGHT = 48

interface Asked {
  what: 'add' | 'rename' | 'duplicate'
  step: string
}

interface Props {
  outline: Outline
  chosen: string
  choose: (step: string, line?: number) => void
  edit: (edit: StepEdit) => Promise<boolean>
  isBusy: boolean
}

export function Builder({ outline, chosen, choose, edit, isBusy }: Props): JSX.Element {
  const [asked, setAsked] = useState<Asked>()
  const step = outline.steps.find((each) => each.id === chosen && !chosen.startsWith('#'))
  const remove = (): void => void (step && edit({ do: 'remove', step: step.id }))
  const keys = (event: KeyboardEvent): void => {
    const words: Record<string, () => void> = { Delete: remove, F2: () => setAsked({ what: 'rename', step: chosen }), d: () => setAsked({ what: 'duplicate', step: chosen }), a: () => setAsked({ what: 'add', step: step?.id ?? '' }) }
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : words[event.key]
    if (!act || (!step && event.key !== 'a')) return
    event.preventDefault()
    act()
  }
  return (
    <section class="builder" aria-label="Graph of the steps">
      <div class="bar snug">
        <button type="button" onClick={() => setAsked({ what: 'add', step: step?.id ?? '' })}>Add a step</button>
        <button type="button" disabled={!step} onClick={() => setAsked({ what: 'rename', step: chosen })}>Rename</button>
        <button type="button" disabled={!step} onClick={() => setAsked({ what: 'duplicate', step: chosen })}>Duplicate</button>
        <button type="button" class="bad" disabled={!step || isBusy} onClick={remove}>Remove</button>
      </div>
      {asked ? <Ask asked={asked} outline={outline} edit={edit} isBusy={isBusy} done={(id) => { setAsked(undefined); if (id) choose(id) }} /> : null}
      <Canvas outline={outline} chosen={chosen} choose={choose} edit={edit} keys={keys} />
      {step ? <Waits key={step.id} step={step} outline={outline} edit={edit} isBusy={isBusy} /> : <p class="quiet small">Choose a step to change it. Drag from the dot below a step to another one to let that one wait for it. Keys on a step: A adds, D duplicates, F2 renames, Delete removes.</p>}
    </section>
  )
}

function Canvas({ outline, chosen, choose, edit, keys }: Omit<Props, 'isBusy'> & { keys: (event: KeyboardEvent) => void }): JSX.Element {
  const svg = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<{ from: string; x: number; y: number; over: string }>()
  const shape = outline.steps.map((step) => `${step.id} ${step.agents.join()}>${step.depends_on.map((each) => each.step).join()}`).join(';')
  const layout = useMemo(() => layOut(outline.steps.map(sizeOf), outline.steps.flatMap((step) => step.depends_on.map(({ step: from }) => ({ from, to: step.id })))), [shape])
  const point = (event: PointerEvent): { x: number; y: number } => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.current!.getScreenCTM()!.inverse())
    return { x: at.x, y: at.y }
  }
  const under = (event: PointerEvent): string => document.elementsFromPoint(event.clientX, event.clientY).map((each) => each.closest('[data-step]')?.getAttribute('data-step')).find(Boolean) ?? ''
  const move = (event: PointerEvent): void => void (drag && setDrag({ ...drag, ...point(event), over: under(event) }))
  const drop = (event: PointerEvent): void => {
    const to = drag && under(event)
    if (drag && to && to !== drag.from) void edit({ do: 'connect', before: drag.from, step: to }).then(() => choose(to))
    setDrag(undefined)
  }
  return (
    <div class="graph drawing">
      <svg ref={svg} width={layout.width + 56} height={layout.height + 24} viewBox={`-28 -10 ${layout.width + 56} ${layout.height + 24}`} onPointerMove={move} onPointerUp={drop} onPointerCancel={() => setDrag(undefined)}>
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="context-stroke" /></marker></defs>
        {layout.paths.map((path) => {
          const why = outline.steps.find((step) => step.id === path.to)?.depends_on.find((each) => each.step === path.from)?.why
          return <path class={`link ${why === 'written' ? 'written' : ''} ${chosen === path.to || chosen === path.from ? 'near' : ''}`} key={`${path.from} ${path.to}`} d={path.d} marker-end="url(#arrow)" />
        })}
        {outline.steps.map((step) => {
          const at = layout.nodes.get(step.id)
          if (!at) return null
          const waits = step.depends_on.map((each) => each.step).join(', ')
          return (
            <g key={step.id} data-step={step.id} role="button" tabIndex={0} aria-pressed={chosen === step.id} aria-label={`${nameOf(step)}: ${subOf(step)}${waits ? `, waits for ${waits}` : ''}`} class={`node ${chosen === step.id ? 'chosen' : ''} ${drag?.over === step.id && drag.from !== step.id ? 'target' : ''} ${hasProblem(outline, step) ? 'bad' : ''}`} transform={`translate(${at.x} ${at.y})`}
              onClick={() => choose(step.id, step.line ?? undefined)} onFocus={() => choose(step.id)} onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ' ? (event.preventDefault(), choose(step.id, step.line ?? undefined)) : keys(event))}>
              <rect width={at.width} height={at.height} rx="7" />
              <text x="12" y="20">{shortened(nameOf(step), LONGEST)}</text>
              <text class="sub" x="12" y="37">{shortened(subOf(step), LONGEST + 2)}</text>
              <circle class="port" cx={at.width / 2} cy={at.height} r="6" onPointerDown={(event) => { event.preventDefault(); setDrag({ from: step.id, ...point(event), over: '' }) }}><title>Drag to a step that is to wait for {step.id}</title></circle>
            </g>
          )
        })}
        {drag ? <path class="link new" d={`M${middle(layout.nodes.get(drag.from)!)} L${drag.x} ${drag.y}`} /> : null}
      </svg>
    </div>
  )
}

function middle(at: { x: number; y: number; width: number; height: number }): string {
  return `${at.x + at.width / 2} ${at.y + at.height}`
}

// A step whose name cannot be read has a number instead, by which it cannot be changed.
function nameOf(step: OutlineStep): string {
  return step.id.startsWith('#') ? 'no name yet' : step.id
}

function subOf(step: OutlineStep): string {
  return [step.type === 'sequential' ? '' : step.type, step.agents.join(', '), step.gated ? 'asks a person' : ''].filter(Boolean).join(' · ')
}

function hasProblem(outline: Outline, step: OutlineStep): boolean {
  const index = outline.steps.indexOf(step)
  return outline.problems.some((problem) => problem.path?.match(/steps\[(\d+)\]/)?.[1] === String(index))
}

function sizeOf(step: OutlineStep): { id: string; width: number; height: number } {
  const text = Math.max(12, Math.min(step.id.length, LONGEST), Math.min(subOf(step).length, LONGEST + 2) * 0.93)
  return { id: step.id, width: 26 + text * COLUMN, height: HEIGHT }
}

const WHY: Record<string, string> = { reference: 'uses its output', 'listed before': 'listed before it', routed: 'chosen by it', context: 'all prior context' }

function Waits({ step, outline, edit, isBusy }: { step: OutlineStep; outline: Outline; edit: Props['edit']; isBusy: boolean }): JSX.Element {
  const [next, setNext] = useState('')
  const others = outline.steps.filter((each) => each.id !== step.id && !each.id.startsWith('#') && !step.depends_on.some((before) => before.step === each.id))
  return (
    <div class="card waits">
      <h2 class="small-head">{step.id}</h2>
      <div class="bar snug">
        <span class="quiet small">waits for</span>
        {step.depends_on.length ? null : <span class="small">nothing</span>}
        {step.depends_on.map((before) => (
          <span class="chip" key={before.step}>
            {before.step}{WHY[before.why] ? <span class="quiet"> · {WHY[before.why]}</span> : null}
            <button type="button" class="plain" disabled={isBusy} aria-label={`Do not wait for ${before.step}`} title={`Do not wait for ${before.step}`} onClick={() => void edit({ do: 'disconnect', before: before.step, step: step.id })}>×</button>
          </span>
        ))}
      </div>
      {others.length ? (
        <form class="bar snug" onSubmit={(event) => { event.preventDefault(); if (next) void edit({ do: 'connect', before: next, step: step.id }).then(() => setNext('')) }}>
          <label class="visually-hidden" for="wait-for">Let it wait for another step</label>
          <select id="wait-for" value={next} onChange={(event) => setNext(event.currentTarget.value)}><option value="">another step …</option>{others.map((each) => <option key={each.id}>{each.id}</option>)}</select>
          <button disabled={!next || isBusy}>Wait for it</button>
        </form>
      ) : null}
    </div>
  )
}

const HEADS = { add: 'Add a step', rename: 'Rename', duplicate: 'Duplicate' }

function Ask({ asked, outline, edit, isBusy, done }: { asked: Asked; outline: Outline; edit: Props['edit']; isBusy: boolean; done: (id?: string) => void }): JSX.Element {
  const [id, setId] = useState(asked.what === 'rename' ? asked.step : asked.what === 'duplicate' ? `${asked.step}-2` : '')
  const [agent, setAgent] = useState(outline.agents[0]?.id ?? '')
  const [instruction, setInstruction] = useState('')
  const [isAfter, setAfter] = useState(Boolean(asked.step))
  const send = (event: Event): void => {
    event.preventDefault()
    const change: StepEdit = asked.what === 'add' ? { do: 'add', id, agent, instruction, depends_on: isAfter && asked.step ? [asked.step] : [], ...(asked.step ? { after: asked.step } : {}) } : { do: asked.what, step: asked.step, id }
    void edit(change).then((isDone) => isDone && done(id))
  }
  return (
    <form class="card" aria-label={HEADS[asked.what]} onSubmit={send} onKeyDown={(event) => event.key === 'Escape' && done()}>
      <h2 class="small-head">{asked.what === 'add' ? 'A new step' : `${HEADS[asked.what]} ${asked.step}`}</h2>
      <div class="fields">
        <Field label="Its name" note="letters, digits, - _">{(field) => <input id={field} value={id} required pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" autoFocus ref={(box) => void (box && document.activeElement?.closest('form') !== box.form && box.focus())} onInput={(event) => setId(event.currentTarget.value)} />}</Field>
        {asked.what === 'add' ? <Field label="Agent">{(field) => <select id={field} value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>{outline.agents.map((each) => <option key={each.id} value={each.id}>{each.id}{each.about ? ` · ${shortened(each.about, 40)}` : ''}</option>)}</select>}</Field> : null}
      </div>
      {asked.what === 'add' ? (
        <>
          <Field label="What it is told">{(field) => <textarea id={field} rows={2} class="short" value={instruction} onInput={(event) => setInstruction(event.currentTarget.value)} />}</Field>
          {asked.step ? <p><label class="inline"><input type="checkbox" checked={isAfter} onChange={(event) => setAfter(event.currentTarget.checked)} /> It waits for {asked.step}</label></p> : null}
        </>
      ) : null}
      <p class="bar"><button class="main" disabled={isBusy || !id || (asked.what === 'rename' && id === asked.step)}>{asked.what === 'add' ? 'Add it' : HEADS[asked.what]}</button><button type="button" onClick={() => done()}>Cancel</button></p>
    </form>
  )
}
