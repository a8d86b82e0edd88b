/** Steps in the order in which they happened. */
import type { ComponentChildren } from 'preact'
import { clockTime, duration } from '../format.ts'
import type { Tone } from './basic.tsx'

/** A step of a time line. */
export interface Step {
  readonly atMs: number
  readonly title: string
  readonly tone?: Tone
  /** Duration in milliseconds; null for a moment. */
  readonly ms?: number | null
  readonly detail?: ComponentChildren
}

/** Steps in a column, each with its time since the first, and a bar for its duration. */
export function TimeLine({ steps, label }: { readonly steps: readonly Step[]; readonly label: string }) {
  if (steps.length === 0) return null
  const firstMs = steps[0]!.atMs
  const lastMs = Math.max(...steps.map(({ atMs, ms }) => atMs + (ms ?? 0)))
  const whole = Math.max(1, lastMs - firstMs)
  return (
    <ol class="time-line" aria-label={label}>
      {steps.map((step, at) => (
        <li key={`${at} ${step.title}`} class={step.tone ?? 'off'}>
          <time title={clockTime(step.atMs)}>+{duration(step.atMs - firstMs)}</time>
          <span class="what">
            <b>{step.title}</b>
            {step.ms == null ? null : <span class="faint"> {duration(step.ms)}</span>}
            {step.detail === undefined ? null : <div class="detail">{step.detail}</div>}
          </span>
          <span class="bar" aria-hidden="true">
            <span
              style={{
                marginLeft: `${((step.atMs - firstMs) / whole) * 100}%`,
                width: `${Math.max(0.6, ((step.ms ?? 0) / whole) * 100)}%`,
              }}
            />
          </span>
        </li>
      ))}
    </ol>
  )
}
