// What a run would do, without a model: its waves, its prompts, and how many calls it may make at the most.
import type { JSX } from 'preact'
import { Raw } from './markdown'
import { count } from './words'

export interface DryRun {
  waves: string[][]
  would_run: { id: string; type: string; agent: string | null; depends_on: string[]; delegations: { role: string; agent: string; prompt: string }[] }[]
  summary: { steps: number; max_concurrency: number; max_model_calls: number; max_delegations: number }
}

export function DryRunView({ plan }: { plan: DryRun }): JSX.Element {
  return (
    <>
      <p>{count(plan.summary.max_delegations, 'delegation')} and {count(plan.summary.max_model_calls, 'model call')} at the most, up to {plan.summary.max_concurrency} side by side.</p>
      <p class="quiet small">{count(plan.waves.length, 'wave')} when every step takes equally long:</p>
      <ol class="waves">{plan.waves.map((wave) => <li>{wave.map((id) => <a class="chip" href={`#step-${id}`} key={id} onClick={() => document.getElementById(`step-${id}`)?.setAttribute('open', '')}>{id}</a>)}</li>)}</ol>
      {plan.would_run.map((step) => (
        <details id={`step-${step.id}`} key={step.id}>
          <summary>{step.id} <span class="quiet">{step.type === 'sequential' ? '' : ` · ${step.type}`}{step.agent ? ` · ${step.agent}` : ''}</span></summary>
          {step.delegations.map((each) => <><p class="small quiet">{each.role} · {each.agent}</p><Raw text={each.prompt} /></>)}
        </details>
      ))}
    </>
  )
}
