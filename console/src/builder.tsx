// The graph of a recipe that is being written: every change of it is a change of the text. In: its outline. Out: edits.
// What is dragged can be done with buttons and keys as well (WCAG 2.5.7).
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ApiError } from './api'
import type { ReferencesHere } from './codemirror'
import { type Box, folded, MOST, nameOf as nameOfBox } from './folding'
import { layOut } from './layout'
import { Failure, Field } from './parts'
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
const MANY = 12 // above this, one is found sooner by its name

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
  isOld: boolean // the text cannot be read now, and this is the graph from before
  toText: (line: number) => void
  // What a new step's text could refer to, if it were added.
  references: (edit: StepEdit) => Promise<ReferencesHere>
}

type Shown = Box<OutlineStep & { needs: string[] }>

export function Builder({ outline, chosen, choose, edit, isBusy, isOld, toText, references }: Props): JSX.Element {
  const [asked, setAsked] = useState<Asked>()
  const [isWhole, setWhole] = useState(false)
  const focus = useRef('') // the step that gets the focus once it is drawn
  const isLarge = outline.steps.length > MOST
  const step = outline.steps.find((each) => each.id === chosen && !chosen.startsWith('#'))
  const remove = (): void => void (step && edit({ do: 'remove', step: step.id }))
  const keys = (event: KeyboardEvent): void => {
    const words: Record<string, () => void> = { Delete: remove, F2: () => setAsked({ what: 'rename', step: chosen }), d: () => setAsked({ what: 'duplicate', step: chosen }), a: () => setAsked({ what: 'add', step: step?.id ?? '' }) }
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : words[event.key]
    if (!act || (!step && event.key !== 'a')) return
    event.preventDefault()
    act()
  }
  const leave = (id: string): void => {
    setAsked(undefined)
    focus.current = id
    if (id) choose(id)
  }
  return (
    <section class={`builder ${isOld ? 'old' : ''}`} aria-label="Graph of the steps">
      <div class="bar snug">
        <button type="button" onClick={() => setAsked({ what: 'add', step: step?.id ?? '' })}>Add a step</button>
        <button type="button" disabled={!step} onClick={() => setAsked({ what: 'rename', step: chosen })}>Rename</button>
        <button type="button" disabled={!step} onClick={() => setAsked({ what: 'duplicate', step: chosen })}>Duplicate</button>
        <button type="button" class="bad" disabled={!step || isBusy} onClick={remove}>Remove</button>
        {outline.steps.length > MANY ? <GoTo outline={outline} chosen={chosen} choose={choose} /> : null}
      </div>
      {asked ? <Ask key={`${asked.what} ${asked.step}`} asked={asked} outline={outline} edit={edit} isBusy={isBusy} references={references} done={(id) => leave(id ?? asked.step)} /> : null}
      {isLarge ? (
        <p class="quiet small">
          {isWhole ? `${outline.steps.length} steps. ` : `${outline.steps.length} steps, those that are alike shown as one. `}
          <button type="button" class="small" onClick={() => setWhole(!isWhole)}>{isWhole ? 'Fold them' : 'Show every step'}</button>
        </p>
      ) : null}
      {isOld ? <p class="quiet small">The text cannot be read now. This is the graph from before.</p> : null}
      <Canvas outline={outline} isFolded={isLarge && !isWhole} chosen={chosen} choose={choose} edit={edit} keys={keys} focus={focus} />
      {step ? <Waits key={step.id} step={step} outline={outline} edit={edit} isBusy={isBusy} toText={toText} /> : <p class="quiet small">Choose a step to change it. Drag from the dot below a step to another one to let that one wait for it. Keys on a step: A adds, D duplicates, F2 renames, Delete removes.</p>}
    </section>
  )
}

function GoTo({ outline, chosen, choose }: Pick<Props, 'outline' | 'chosen' | 'choose'>): JSX.Element {
  const go = (id: string): void => {
    const step = outline.steps.find((each) => each.id === id)
    if (step) choose(id, step.line ?? undefined)
  }
  return (
    <select aria-label="Go to a step" value={chosen} onChange={(event) => go(event.currentTarget.value)}>
      <option value="">go to a step …</option>
      {outline.steps.map((each) => <option key={each.id} value={each.id}>{nameOf(each)}</option>)}
    </select>
  )
}

// The chosen step and those with problems keep boxes of their own.
function boxesOf(outline: Outline, isFolded: boolean, chosen: string): Shown[] {
  const steps = outline.steps.map((step) => ({ ...step, needs: step.depends_on.map((each) => each.step), many: 1 }))
  if (!isFolded) return steps
  const faulty = faultyOf(outline)
  return folded(steps, (step) => (step.id === chosen || faulty.has(step.id) ? step.id : `${step.type} ${step.agents.join()} ${step.gated}`))
}

interface CanvasProps extends Pick<Props, 'outline' | 'chosen' | 'choose' | 'edit'> {
  isFolded: boolean
  keys: (event: KeyboardEvent) => void
  focus: { current: string }
}

function Canvas({ outline, isFolded, chosen, choose, edit, keys, focus }: CanvasProps): JSX.Element {
  const svg = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<{ from: string; x: number; y: number; over: string }>()
  const boxes = useMemo(() => boxesOf(outline, isFolded, chosen), [outline, isFolded, isFolded ? chosen : ''])
  const faulty = useMemo(() => faultyOf(outline), [outline])
  const whys = useMemo(() => new Map(outline.steps.flatMap((step) => step.depends_on.map((each) => [`${each.step} ${step.id}`, each.why] as const))), [outline])
  const shape = boxes.map((box) => `${nameOf(box)} ${box.agents.join()}>${box.needs.join()}`).join(';')
  const layout = useMemo(() => layOut(boxes.map(sizeOf), boxes.flatMap((box) => box.needs.map((from) => ({ from, to: box.id })))), [shape])
  useLayoutEffect(() => {
    const drawn = focus.current ? svg.current?.querySelector<SVGGElement>(`[data-step="${CSS.escape(focus.current)}"]`) : undefined
    if (drawn) ((focus.current = ''), drawn.focus())
  })
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
      <svg ref={svg} role="group" aria-label="Steps, from the first to the last" width={layout.width + 56} height={layout.height + 24} viewBox={`-28 -10 ${layout.width + 56} ${layout.height + 24}`} onPointerMove={move} onPointerUp={drop} onPointerCancel={() => setDrag(undefined)}>
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="context-stroke" /></marker></defs>
        {layout.paths.map((path) => <path class={`link ${whys.get(`${path.from} ${path.to}`) === 'written' ? 'written' : ''} ${chosen === path.to || chosen === path.from ? 'near' : ''}`} key={`${path.from} ${path.to}`} d={path.d} marker-end="url(#arrow)" />)}
        {boxes.map((box) => {
          const at = layout.nodes.get(box.id)
          if (!at) return null
          return (
            <g key={box.id} data-step={box.id} role="button" tabindex={0} aria-pressed={chosen === box.id} aria-label={spoken(box, faulty.has(box.id))} class={`node ${chosen === box.id ? 'chosen' : ''} ${drag?.over === box.id && drag.from !== box.id ? 'target' : ''} ${faulty.has(box.id) ? 'bad' : ''}`} transform={`translate(${at.x} ${at.y})`}
              onClick={() => choose(box.id, box.line ?? undefined)} onFocus={() => chosen === box.id || choose(box.id)} onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ' ? (event.preventDefault(), choose(box.id, box.line ?? undefined)) : keys(event))}>
              <rect width={at.width} height={at.height} rx="7" />
              <text x="12" y="20">{shortened(nameOf(box), LONGEST)}</text>
              <text class="sub" x="12" y="37">{shortened(subOf(box), LONGEST + 2)}</text>
              {box.many === 1 ? <circle class="port" cx={at.width / 2} cy={at.height} r="6" onPointerDown={(event) => { event.preventDefault(); setDrag({ from: box.id, ...point(event), over: '' }) }}><title>Drag to a step that is to wait for {box.id}</title></circle> : null}
            </g>
          )
        })}
        {drag ? <path class="link new" d={`M${middle(layout.nodes.get(drag.from)!)} L${drag.x} ${drag.y}`} /> : null}
      </svg>
    </div>
  )
}

// What a screen reader says of a box: its name, who does it, what it waits for, whether anything is wrong with it.
function spoken(box: Shown, isFaulty: boolean): string {
  const waits = box.needs.length ? `, waits for ${box.needs.join(', ')}` : ', waits for nothing'
  return `${nameOf(box)}: ${subOf(box) || 'no agent yet'}${waits}${isFaulty ? ', has a problem' : ''}`
}

function middle(at: { x: number; y: number; width: number; height: number }): string {
  return `${at.x + at.width / 2} ${at.y + at.height}`
}

// A step whose name cannot be read has a number instead, by which it cannot be changed.
function nameOf(step: { id: string; many?: number }): string {
  return step.id.startsWith('#') ? 'no name yet' : nameOfBox(step)
}

function subOf(step: OutlineStep): string {
  return [step.type === 'sequential' ? '' : step.type, step.agents.join(', '), step.gated ? 'asks a person' : ''].filter(Boolean).join(' · ')
}

function faultyOf({ steps, problems }: Outline): Set<string> {
  const indexes = problems.map((problem) => Number(problem.path?.match(/steps\[(\d+)\]/)?.[1] ?? -1))
  return new Set(indexes.flatMap((index) => steps[index]?.id ?? []))
}

function sizeOf(box: Shown): { id: string; width: number; height: number } {
  const text = Math.max(12, Math.min(nameOf(box).length, LONGEST), Math.min(subOf(box).length, LONGEST + 2) * 0.93)
  return { id: box.id, width: 26 + text * COLUMN, height: HEIGHT }
}

const WHY: Record<string, string> = { reference: 'uses its output', 'listed before': 'listed before it', routed: 'chosen by it', context: 'all prior context' }

function Waits({ step, outline, edit, isBusy, toText }: Pick<Props, 'outline' | 'edit' | 'isBusy' | 'toText'> & { step: OutlineStep }): JSX.Element {
  const [next, setNext] = useState('')
  const others = outline.steps.filter((each) => each.id !== step.id && !each.id.startsWith('#') && !step.depends_on.some((before) => before.step === each.id))
  return (
    <div class="card waits">
      <div class="bar between"><h2 class="small-head">{step.id} <span class="quiet small">{subOf(step)}</span></h2>{step.line ? <button type="button" class="small" onClick={() => toText(step.line!)}>Edit its text</button> : null}</div>
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

interface AskProps extends Pick<Props, 'outline' | 'edit' | 'isBusy' | 'references'> {
  asked: Asked
  done: (id?: string) => void
}

function Ask({ asked, outline, edit, isBusy, references, done }: AskProps): JSX.Element {
  const [id, setId] = useState(asked.what === 'rename' ? asked.step : asked.what === 'duplicate' ? freeName(outline, asked.step) : '')
  const [agent, setAgent] = useState(outline.agents[0]?.id ?? '')
  const [instruction, setInstruction] = useState('')
  const [isAfter, setAfter] = useState(Boolean(asked.step))
  const first = useRef<HTMLInputElement>(null)
  useEffect(() => (first.current?.focus(), first.current?.select()), [])
  const change = (told: string): StepEdit => (asked.what === 'add' ? { do: 'add', id, agent, instruction: told, depends_on: isAfter && asked.step ? [asked.step] : [], ...(asked.step ? { after: asked.step } : {}) } : { do: asked.what, step: asked.step, id })
  const send = (event: Event): void => {
    event.preventDefault()
    void edit(change(instruction)).then((isDone) => isDone && done(id))
  }
  return (
    <form class="card" aria-label={HEADS[asked.what]} onSubmit={send} onKeyDown={(event) => event.key === 'Escape' && done()}>
      <h2 class="small-head">{asked.what === 'add' ? 'A new step' : `${HEADS[asked.what]} ${asked.step}`}</h2>
      <div class="fields">
        <Field label="Its name" note="letters, digits, hyphens">{(field) => <input id={field} ref={first} value={id} required pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" onInput={(event) => setId(event.currentTarget.value)} />}</Field>
        {asked.what === 'add' ? <Field label="Agent">{(field) => <select id={field} value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>{outline.agents.map((each) => <option key={each.id} value={each.id}>{each.id}{each.about ? ` · ${shortened(each.about, 40)}` : ''}</option>)}</select>}</Field> : null}
      </div>
      {asked.what === 'add' ? (
        <>
          <Told value={instruction} change={setInstruction} find={() => references({ ...change(crypto.randomUUID()), id: id || 'new-step' } as StepEdit)} />
          {asked.step ? <p><label class="inline"><input type="checkbox" checked={isAfter} onChange={(event) => setAfter(event.currentTarget.checked)} /> It waits for {asked.step}</label></p> : null}
        </>
      ) : null}
      <p class="bar"><button class="main" disabled={isBusy || !id || (asked.what === 'rename' && id === asked.step)}>{asked.what === 'add' ? 'Add it' : HEADS[asked.what]}</button><button type="button" onClick={() => done()}>Cancel</button></p>
    </form>
  )
}

// What a new step is told, with the variables that it could be told.
function Told({ value, change, find }: { value: string; change: (value: string) => void; find: () => Promise<ReferencesHere> }): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null)
  const [found, setFound] = useState<ReferencesHere>()
  const [error, setError] = useState<ApiError>()
  const look = (): void => (setError(undefined), void find().then(setFound, (failure: ApiError) => setError(failure)))
  const insert = (word: string): void => {
    const [from, to] = [box.current!.selectionStart, box.current!.selectionEnd]
    change(`${value.slice(0, from)}{{${word}}}${value.slice(to)}`)
    setFound(undefined)
    requestAnimationFrame(() => (box.current?.focus(), box.current?.setSelectionRange(from + word.length + 4, from + word.length + 4)))
  }
  return (
    <>
      <Field label="What it is told">{(field) => <textarea id={field} ref={box} rows={3} class="short" value={value} onInput={(event) => change(event.currentTarget.value)} />}</Field>
      {error ? <Failure error={error} /> : null}
      {found ? <References found={found} insert={insert} close={() => (setFound(undefined), box.current?.focus())} /> : <p><button type="button" class="small" onClick={look}>Insert a variable here</button></p>}
    </>
  )
}

// A list to choose a variable from: arrows move in it, letters filter it.
export function References({ found, insert, close }: { found: ReferencesHere; insert: (word: string) => void; close: () => void }): JSX.Element {
  const [filter, setFilter] = useState('')
  const list = useRef<HTMLUListElement>(null)
  const rows = found.references.filter((each) => `${each.text} ${each.about}`.toLowerCase().includes(filter.toLowerCase()))
  const move = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') return (event.preventDefault(), event.stopPropagation(), close())
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const buttons = [...list.current!.querySelectorAll('button')]
    buttons[Math.max(0, Math.min(buttons.length - 1, buttons.indexOf(document.activeElement as HTMLButtonElement) + step))]?.focus()
  }
  const first = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    if (rows[0]) insert(rows[0].text)
  }
  return (
    <div onKeyDown={move}>
      <Field label="Filter" note="Enter takes the first one">{(id) => <input id={id} value={filter} ref={(box) => void (box && !box.dataset.seen && ((box.dataset.seen = 'yes'), box.focus()))} onKeyDown={first} onInput={(event) => setFilter(event.currentTarget.value)} />}</Field>
      <ul ref={list} class="choices" aria-label="Variables">{rows.map((each) => <li key={each.text}><button type="button" onClick={() => insert(each.text)}><code>{each.text}</code> <span class="small">{each.about}</span></button></li>)}</ul>
      {rows.length ? null : <p class="quiet">Nothing fits.</p>}
    </div>
  )
}

function freeName(outline: Outline, id: string): string {
  const taken = new Set(outline.steps.map((each) => each.id))
  const stem = id.replace(/-\d+$/, '')
  for (let n = 2; ; n++) if (!taken.has(`${stem}-${n}`)) return `${stem}-${n}`
}
