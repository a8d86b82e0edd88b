import type { Emit } from '../events.ts'
import type { Ports } from '../ports/ports.ts'
import { withHeldRemovals } from '../services/observing/held-removals.ts'
import { TimeKeeper } from '../services/observing/server-time.ts'
import type { AppConfig } from './config.ts'

/** The care of the server's time, and ports of whose store retention removes nothing while it waits. */
export interface TimeCare {
  /** Null where the server's time is that of the machine's clock. */
  readonly timeKeeper: TimeKeeper | null
  readonly given: Ports
}

export function createTimeCare(ports: Ports, emit: Emit, { renewTerm }: Pick<AppConfig, 'renewTerm'>): TimeCare {
  const { store, time } = ports
  if (time === undefined) return { timeKeeper: null, given: ports }
  const timeKeeper = new TimeKeeper({ store, time, emit }, renewTerm)
  return { timeKeeper, given: { ...ports, store: withHeldRemovals(store, () => timeKeeper.isHeld()) } }
}
