/** States of tasks. */
import type { Pod } from '../../client/api-types.d.ts'
import type { Tone } from '../../parts/basic.tsx'

/** The state of a task in a word, and its tone. */
export function taskState({ status, workerId, startedAt }: Pick<Pod, 'status' | 'workerId' | 'startedAt'>): {
  readonly tone: Tone
  readonly word: string
} {
  if (status === 'EXITED') return { tone: 'off', word: 'ended' }
  if (workerId === null) return { tone: 'wait', word: 'waits for a place' }
  return startedAt === null ? { tone: 'busy', word: 'starts' } : { tone: 'good', word: 'runs' }
}
