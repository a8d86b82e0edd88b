import { type StartFailure, startFailureText, WorkerStartError } from '../core/workers/start-failure.ts'
import type { Driver } from '../ports/driver.ts'

/**
 * A driver for installations that may not run workers, such as a server that others can reach and that was given no
 * process root. Endpoints and jobs can be made; every explanation of why they wait has the reason.
 */
export function createNoDriver(reason: StartFailure): Driver {
  return {
    name: 'none',
    placedBy: () => 'machine',
    readsModels: () => true,
    nameFor: () => 'none',
    savedImage: image => image,
    check: async () => reason,
    start: async () => {
      throw new WorkerStartError(reason)
    },
    adopt: async () => false,
    observe: async () => ({
      state: 'exited',
      exit: { code: null, signal: null, cause: { kind: 'unseen', when: 'unknown' } },
    }),
    address: async () => null,
    freeze: async () => {},
    thaw: async () => {},
    terminate: async () => {},
    kill: async () => {},
    release: async () => {},
    keepsApart: () => null,
    isolation: () => null,
    // It takes up nothing of what another driver beside it has; that nothing starts here is what `check` says.
    capacity: async () => ({ freeWorkers: null, bound: startFailureText(reason) }),
    tidy: async () => {},
  }
}
