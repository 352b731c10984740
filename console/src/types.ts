// What the API says, as far as the console reads it. docs/http.md describes all of it.
import type { Usage } from './words'

export interface Problem {
  code: string
  message: string
  hint?: string
  line?: number
  column?: number
  width?: number
  path?: string
}

export interface WorkflowInput {
  name: string
  type: 'string' | 'number' | 'boolean' | 'json' | 'file_path'
  required: boolean
  default?: unknown
  description?: string
  enum?: unknown[]
}

export interface WorkflowRow {
  name: string
  title: string
  description: string
  layer: string
  file: string
  ok: boolean
  steps: number
  inputs: WorkflowInput[]
  problems: Problem[]
  origin: string
  version: unknown
}

export interface RunRow {
  run_id: string
  workflow: string
  status: string
  started_at: string | null
  ended_at: string | null
  cost: string
  owner: string
  trigger: string
  about: string // the first words of its inputs
}

export interface StepReport {
  status: string
  output: unknown
  outputs?: Record<string, unknown> | null
  attempts: number
  started_at: string | null
  ended_at: string | null
  duration_seconds: number | null
  error: string | null
  usage: Usage
  warnings: string[]
  tool_calls: { made: number; refused: number; failed: number }
  playbooks: string[]
  changes?: { files: number; insertions: number; deletions: number; standing: string; conflicts: string[]; applied_by: string | null }
}

export interface PlannedNode {
  id: string
  type: string
  depends_on: string[]
  agents: string[]
  posture: string
  gated: boolean
}

// Why something is where it is, and the moment that leads on: a retry, a deadline.
export interface Why {
  says: string
  at: string | null
}

export interface RunAnswer {
  run_id: string
  workflow: string
  status: string
  summary: string
  next: string[]
  output: unknown
  warnings: string[]
  usage: Usage
  started_at: string
  ended_at: string | null
  duration_seconds: number
  critical_path: { step: string; duration_seconds: number; waited_seconds: number; waited_for: string }[]
  parent: string | null
  trigger: string
  owner: string
  cursor: number
  inputs: Record<string, unknown>
  steps: Record<string, StepReport>
  plan: PlannedNode[]
  retries: number
  agents_deployed: number
  standing: Why & { steps: Record<string, Why> }
  recipe: { digest: string; now: 'unchanged' | 'edited' | 'not saved' }
  touches?: Record<string, number> // how often each step had news since the page was opened
}

// What is otherwise than in an earlier answer; all of it, if `since` is 0.
export interface RunChanges extends Partial<RunAnswer> {
  since: number
  cursor: number
  touched: string[]
  steps: Record<string, StepReport>
  standing: RunAnswer['standing']
}

export interface StepRow extends StepReport {
  id: string
  kind: string
  agent: string
  needs: string[]
  why: string // one line: its error, why it waits, what it does
  whyAt: string | null
}

// A step as the plan and the report together know it.
export function stepsOf(run: RunAnswer): StepRow[] {
  return run.plan.map((node) => ({
    ...run.steps[node.id]!,
    id: node.id,
    kind: node.type,
    agent: node.agents.join(', '),
    needs: node.depends_on,
    ...whyOf(run, node.id),
  }))
}

function whyOf(run: RunAnswer, id: string): { why: string; whyAt: string | null } {
  const [standing, report] = [run.standing.steps[id], run.steps[id]!]
  return { why: report.error ?? standing?.says ?? '', whyAt: standing?.at ?? null }
}

// A part of a step: a branch, a try of a loop, an element of a map.
export interface StepPart {
  part: string
  agent: string
  status: string
  attempts: number
  started_at: string | null
  ended_at: string | null
  usage: Usage
  error: string | null
  says: string
}

export interface Attempt {
  part: string
  number: number
  agent: string
  model: string
  status: string
  started_at: string | null
  ended_at: string | null
  failure: string
  error: string
  usage: Usage
  provider_retries: string[]
  playbooks: string[]
  reused_from: string | null
}

export interface Entry {
  at: number
  part: string
  attempt: number
  agent: string
  kind: 'instructions' | 'prompt' | 'words' | 'tool' | 'model' | 'answer' | 'rejected' | 'failed' | 'cancelled'
  text: string
  verdict: string
}

export interface StepDetail {
  step: string
  cursor: number // the last event that is in it
  report: StepReport
  prompt: string
  model: string
  standing: Why
  validation: unknown
  parts: StepPart[]
  part_output: unknown
  attempts: Attempt[]
  transcript: Entry[]
  diff: { patch?: string } | null
  artifacts: { path: string; change: string }[]
}

export interface Gate {
  run_id: string
  workflow: string
  step: string
  about: string
  key: string
  owner: string
  asked_at: string | null
  deadline: string | null
  then: string
  overdue: boolean
  question: string
  posture: string
  read_set: string[]
  write_set: string[]
  workspace: string
  parts: GatePart[]
  later: (GatePart & { when: string })[] // what may follow in the step, as far as it is known
  grounds: { step: string; output?: unknown; status?: string }[]
  uses?: { name: string; file: string; digest: string; steps: string[]; inputs: string | Record<string, unknown> } // a recipe that is a step
}

export interface GatePart {
  part?: string
  agent?: string
  models?: string[]
  prompt?: string
  tools?: string[]
  instructions?: string
}

// --- a recipe that is being written -----------------------------------------------------------------------------------

export interface OutlineStep {
  id: string
  line: number | null
  type: string
  agents: string[]
  depends_on: { step: string; why: string }[]
  posture: string
  gated: boolean
}

export interface Outline {
  workflow: string
  dialect: string
  inputs: WorkflowInput[]
  agents: { id: string; about: string; own: boolean }[]
  steps: OutlineStep[]
  problems: Problem[]
  warnings: Problem[]
}

export interface Saved {
  workflow: WorkflowRow
  text: string
  recipe: unknown
  etag: string
}
