import type { Claim, ClaimRequest } from '../../../ports/store/claims.ts'
import type { ClaimedRow } from '../../tables/jobs.ts'
import * as sql from '../../tables/jobs.ts'
import { query, queryOne, type Steps } from '../operation.ts'
import { type BesideSuspects, claimInTurns, claimOf } from './turns.ts'

/** Time for which a suspect waits until a worker starts or becomes free, before one is let run empty for it. */
const MAX_SUSPECT_WAIT_MS = 30_000

type Found = Omit<Claim, 'jobs'> & { readonly rows: readonly ClaimedRow[] }

/**
 * The first jobs for a worker that is locked, so that no other claim of it is decided at the same time. Where there
 * are suspects (core/job), whether it gets one, others, or nothing for now.
 */
export function* claimFromQueue(request: ClaimRequest, inTurns: boolean): Steps<Found> {
  // Turns take several statements, of which none should be in vain.
  if (inTurns && (yield* anySuspect(request))) return yield* claimAmongSuspects(request, inTurns)
  // This hands out nothing where there are suspects, so without them it is all that there is.
  const rows = yield* claimOthers(request, inTurns, false)
  if (rows.length > 0 || !(yield* anySuspect(request))) return found(rows)
  return yield* claimAmongSuspects(request, inTurns)
}

function* anySuspect({ endpointId }: ClaimRequest): Steps<boolean> {
  return (yield* queryOne(sql.noSuspect, [endpointId])) === null
}

function* claimAmongSuspects(request: ClaimRequest, inTurns: boolean): Steps<Found> {
  const { endpointId, workerId, nowMs } = request
  const beside = yield* queryOne<BesideRow>(sql.besideSuspects, [endpointId, workerId, nowMs])
  if (beside === null || beside.suspects > 0) return found([], { holdsBack: true })
  const waitingSinceMs = beside.waiting_since_ms
  if (waitingSinceMs !== null && beside.held === 0) {
    const alone = yield* query<ClaimedRow>(sql.claimSuspect, [endpointId, workerId, nowMs])
    if (alone.length > 0) return found(alone)
  } else if (waitingSinceMs !== null) {
    const isLate = nowMs - waitingSinceMs >= MAX_SUSPECT_WAIT_MS ? 1 : 0
    const runsEmpty = (yield* queryOne(sql.runsEmpty, [endpointId, workerId, isLate])) !== null
    if (runsEmpty) return found([], { holdsBack: true, leavesSuspect: true })
  }
  return found(yield* claimOthers(request, inTurns, true), { leavesSuspect: waitingSinceMs !== null })
}

function claimOthers(request: ClaimRequest, inTurns: boolean, besideSuspects: BesideSuspects) {
  return inTurns ? claimInTurns(request, besideSuspects) : claimOf('', request, besideSuspects)
}

function found(rows: readonly ClaimedRow[], how: Partial<Claim> = {}): Found {
  return { holdsBack: false, leavesSuspect: false, ...how, rows }
}

interface BesideRow {
  readonly held: number
  readonly suspects: number
  readonly waiting_since_ms: number | null
}
