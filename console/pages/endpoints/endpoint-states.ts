/** Names of the states of endpoints, and their urgency. */
import type { EndpointState } from '../../client/api-types.d.ts'
import type { Tone } from '../../parts/basic.tsx'

/** A state for people. The most urgent state has the lowest rank. */
export interface ShownState {
  readonly tone: Tone
  readonly title: string
  readonly rank: number
}

/** All states of endpoints. */
export const ENDPOINT_STATES: Readonly<Record<EndpointState, ShownState>> = {
  PROBLEM: { tone: 'bad', title: 'Problem', rank: 0 },
  WAITING: { tone: 'wait', title: 'Waiting', rank: 1 },
  ROLLING_OUT: { tone: 'busy', title: 'Rolling out', rank: 2 },
  STARTING: { tone: 'busy', title: 'Starting', rank: 3 },
  READY: { tone: 'good', title: 'Ready', rank: 4 },
  SCALED_TO_ZERO: { tone: 'off', title: 'Scaled to zero', rank: 5 },
  PAUSED: { tone: 'off', title: 'Paused', rank: 6 },
}
