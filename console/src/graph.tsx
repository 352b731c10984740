// Draw a plan or a run. In: steps with their edges and states. Out: one SVG in a box of its own that scrolls.
import type { JSX, RefObject } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { folded, MOST, nameOf } from './folding'
import { type Edge, layOut, type Node } from './layout'
import { markOf, shortened, toneOf } from './words'

export interface GraphStep {
  id: string
  kind: string
  agent: string
  needs: string[]
  status?: string
  many?: number // how many steps the box stands for; one, if left out
}

const LONGEST = 26
const PADDING = 12 // of the box, as style.css has it
const SIDES = 52 // where edges run down past other layers
const WIDEST_STATE = '? awaiting approval'.length
const COLUMN = 7.4 // of the monospaced font at 12 pixels

export function Graph({ steps, chosen, href }: { steps: GraphStep[]; chosen?: string | null; href: (id: string) => string }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  const shown = useMemo(() => (steps.length > MOST && !isWhole ? folded(steps, alike) : steps), [steps, isWhole])
  const shape = shown.map((step) => `${step.id}>${step.needs.join(',')}`).join(';')
  const [box, most] = useWidth()
  const layout = useMemo(() => layOut(shown.map(sizeOf), edgesOf(shown), most - SIDES), [shape, most])
  return (
    <>
      {steps.length > MOST ? (
        <p class="quiet small">
          {isWhole ? `${steps.length} steps. ` : `${steps.length} steps, those that are alike shown as one. `}
          <button onClick={() => setWhole(!isWhole)}>{isWhole ? 'Fold them' : 'Show every step'}</button>
        </p>
      ) : null}
      <div ref={box} class="graph" tabIndex={0} role="group" aria-label="Graph of the steps; the list below says the same">
        <svg width={layout.width + SIDES} height={layout.height + 4} viewBox={`${-SIDES / 2} -2 ${layout.width + SIDES} ${layout.height + 4}`} role="presentation">
          {layout.paths.map((path) => <path class="link" key={`${path.from} ${path.to}`} d={path.d} />)}
          {shown.map((step) => {
            const at = layout.nodes.get(step.id)!
            return (
              <a key={step.id} href={href(step.id)} aria-label={`${nameOf(step)}: ${step.status ?? step.kind}`}>
                <g class={`node ${step.status ? toneOf(step.status) : ''} ${chosen === step.id ? 'chosen' : ''}`} transform={`translate(${at.x} ${at.y})`}>
                  <rect width={at.width} height={at.height} rx="6" />
                  <text x="10" y="19">{shortened(nameOf(step), LONGEST)}</text>
                  <text class="sub" x="10" y="36">{shortened(subOf(step), LONGEST + 2)}</text>
                </g>
              </a>
            )
          })}
        </svg>
      </div>
    </>
  )
}

// The width of the box inside its padding, now and whenever it changes.
function useWidth(): [RefObject<HTMLDivElement>, number] {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const look = (): void => setWidth(Math.max(240, (box.current?.clientWidth ?? 0) - 2 * PADDING))
    look()
    const observer = new ResizeObserver(look)
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])
  return [box, width]
}

function alike({ kind, status }: GraphStep): string {
  return `${kind} ${status}`
}

function subOf(step: GraphStep): string {
  return step.status ? `${markOf(step.status)} ${step.status}` : [step.kind, step.agent].filter(Boolean).join(' · ')
}

function sizeOf(step: GraphStep): Node {
  // Wide enough for every state, so that a box does not move when its step does.
  const text = Math.max(Math.min(nameOf(step).length, LONGEST), Math.min(subOf(step).length, LONGEST), WIDEST_STATE)
  return { id: step.id, width: 20 + text * COLUMN, height: 46 }
}

function edgesOf(steps: GraphStep[]): Edge[] {
  return steps.flatMap((step) => step.needs.map((from) => ({ from, to: step.id })))
}
