/** Parts that show jobs. */
import type { ComponentChildren } from 'preact'
import type { JobStatus } from '../../../client/api-types.d.ts'
import { State, type Tone } from '../../../parts/basic.tsx'
import { path, query } from '../../../router.ts'

/** Word and tone of each state, for people. */
export const STATE_WORDS: Readonly<Record<JobStatus, readonly [string, Tone]>> = {
  IN_QUEUE: ['Queued', 'wait'],
  IN_PROGRESS: ['Running', 'busy'],
  COMPLETED: ['Completed', 'good'],
  FAILED: ['Failed', 'bad'],
  TIMED_OUT: ['Timed out', 'bad'],
  CANCELLED: ['Cancelled', 'off'],
}

/** The state of a job. */
export function JobState({ status }: { readonly status: JobStatus }) {
  const [word, tone] = STATE_WORDS[status]
  return (
    <State tone={tone} title={status}>
      {word}
    </State>
  )
}

/** The address of this list with a job open. */
export function jobHref(id: string): string {
  const next = new URLSearchParams(query.value)
  next.set('job', id)
  return `${path.value}?${next}`
}

/** A link that opens a job beside its list. */
export function JobLink({ id, children }: { readonly id: string; readonly children: ComponentChildren }) {
  return <a href={jobHref(id)}>{children}</a>
}
