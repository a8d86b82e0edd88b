/** States of endpoints for people, and their urgency. */
import type { EndpointOverview, EndpointState } from '../../client/api-types.d.ts'
import { percent } from '../../format.ts'

/** A state for people. The most urgent state has the lowest rank. */
export interface ShownState {
  /** As `console/parts/basic.tsx` shows it. */
  readonly tone: 'good' | 'busy' | 'wait' | 'bad' | 'off'
  readonly title: string
  readonly rank: number
}

const STATES: Readonly<Record<EndpointState, ShownState>> = {
  PROBLEM: { tone: 'bad', title: 'Problem', rank: 0 },
  WAITING: { tone: 'wait', title: 'Waiting', rank: 2 },
  ROLLING_OUT: { tone: 'busy', title: 'Rolling out', rank: 3 },
  STARTING: { tone: 'busy', title: 'Starting', rank: 4 },
  READY: { tone: 'good', title: 'Ready', rank: 5 },
  SCALED_TO_ZERO: { tone: 'off', title: 'Scaled to zero', rank: 6 },
  PAUSED: { tone: 'off', title: 'Paused', rank: 7 },
}
/** Rank of an endpoint whose requests fail: it is worse than one that waits. */
const FAILING_RANK = 1

type RatedRow = Pick<EndpointOverview, 'rate'>

/** Number of requests that ended in the last hour. */
export function requestsOfHour({ rate: { points } }: RatedRow): number {
  return points.reduce((sum, point) => sum + point, 0)
}

/** Sentence about the errors of an endpoint whose requests fail. */
export function failingSentence(row: RatedRow): string {
  const { errorShare, recentErrorShare } = row.rate
  const late = recentErrorShare === null ? '' : `, and ${percent(recentErrorShare)} in the last ten minutes`
  return `${percent(errorShare)} of ${requestsOfHour(row)} requests failed in the last hour${late}.`
}

/** Kinds of attention, the most urgent first. */
export const ATTENTION_KINDS: readonly EndpointOverview['attention'][] = ['fix', 'failing', 'wait', 'chosen']

type UrgentRow = Pick<EndpointOverview, 'attention' | 'state' | 'rate' | 'rollout'>

/** Order of a list: what needs attention first, the rest by the urgency of its state. */
export function byAttention(a: UrgentRow, b: UrgentRow): number {
  // The server explains a limited number of rows; a state without its reason counts as well.
  const rank = (row: UrgentRow) => {
    const kind = row.attention ?? (row.state === 'PROBLEM' ? 'fix' : row.state === 'WAITING' ? 'wait' : null)
    return kind === null ? ATTENTION_KINDS.length : ATTENTION_KINDS.indexOf(kind)
  }
  return rank(a) - rank(b) || shownState(a).rank - shownState(b).rank
}

/** The state of an endpoint as a list shows it. */
export function shownState(row: Pick<EndpointOverview, 'state' | 'rate' | 'rollout'>): ShownState {
  const shown = STATES[row.state]
  const { failingShare: share } = row.rate
  if (share !== null && shown.rank > FAILING_RANK) {
    return { tone: 'bad', title: `${percent(share)} fail`, rank: FAILING_RANK }
  }
  const { rollout } = row
  if (rollout?.state !== 'CANARY' || row.state !== 'ROLLING_OUT') return shown
  return { ...shown, title: rollout.canary === null ? 'Canary' : `Canary ${rollout.canary}%` }
}
