import type { Clock } from '../../ports/clock.ts'
import type { Store } from '../../ports/store/store.ts'
import { inheriting, KnownRows } from '../known-rows.ts'

/**
 * A store that finds workers by their tokens in memory, so that the calls of a worker do not read its row each time. A call that begins after
 * a change of a worker has returned sees that change. Figures of its work, such as how long it was idle, may be older.
 */
export function withKnownWorkers(store: Store, clock: Clock): Store {
  const { workers } = store
  const rows = new KnownRows((tokenHash: string) => workers.findByToken(tokenHash), clock)
  return {
    ...store,
    workers: inheriting(workers, {
      findByToken: tokenHash => rows.find(tokenHash),
      insert: rows.changing(workers.insert),
      started: rows.changing(workers.started),
      pulling: rows.changing(workers.pulling),
      seen: rows.changing(workers.seen),
      retire: rows.changing(workers.retire),
      evict: rows.changing(workers.evict),
      noteProblem: rows.changing(workers.noteProblem),
      exited: rows.changing(workers.exited),
      removeExited: rows.changing(workers.removeExited),
    }),
  }
}
