import { AppError } from '../../core/errors.ts'
import type { Driver } from '../../ports/driver.ts'
import type { Leader } from '../../ports/leader.ts'
import type { StoreLayer } from '../../ports/store/operations.ts'

const RETRY_AFTER_S = 2

/** Layer around the store that only a leader changes: changes by others are `unavailable`. */
export function createFence(leader: Leader): StoreLayer {
  return (call, _, { reads }) => (reads ? call : whileLeading(leader, call))
}

/** A driver with which only a leader starts, adopts, freezes and ends workers; all servers may read. */
export function fencedDriver(driver: Driver, leader: Leader): Driver {
  return {
    name: driver.name,
    placedBy: image => driver.placedBy(image),
    readsModels: image => driver.readsModels(image),
    nameFor: image => driver.nameFor(image),
    savedImage: image => driver.savedImage(image),
    check: (...args) => driver.check(...args),
    observe: worker => driver.observe(worker),
    address: worker => driver.address(worker),
    capacity: () => driver.capacity(),
    keepsApart: () => driver.keepsApart(),
    isolation: (handle, recorded) => driver.isolation(handle, recorded),
    start: whileLeading(leader, driver.start.bind(driver)),
    adopt: whileLeading(leader, driver.adopt.bind(driver)),
    freeze: whileLeading(leader, driver.freeze.bind(driver)),
    thaw: whileLeading(leader, driver.thaw.bind(driver)),
    processes: whileLeading(leader, driver.processes.bind(driver)),
    terminate: whileLeading(leader, driver.terminate.bind(driver)),
    kill: whileLeading(leader, driver.kill.bind(driver)),
    release: whileLeading(leader, driver.release.bind(driver)),
    tidy: whileLeading(leader, driver.tidy.bind(driver)),
  }
}

function whileLeading<Args extends readonly unknown[], Value>(
  leader: Leader,
  run: (...args: Args) => Promise<Value>,
): (...args: Args) => Promise<Value> {
  return async (...args) => {
    if (!(await leader.confirm())) throw notLeading()
    return run(...args)
  }
}

function notLeading(): AppError {
  const message =
    'this server lost its hold on the database for a moment and changes nothing until it has it back; try again'
  return new AppError('unavailable', message, { retryAfterSeconds: RETRY_AFTER_S })
}

/** The leader of an installation with one server: always this one. */
export const singleLeader: Leader = { isLeader: () => true, confirm: async () => true, watch: () => () => {} }
