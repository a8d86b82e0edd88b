import type { WorkerId } from '../core/ids.ts'
import { type StartFailure, startFailureText, WorkerStartError } from '../core/workers/start-failure.ts'
import type { Driver, Observation } from '../ports/driver.ts'

/** The driver of images whose names have a prefix. */
export interface DriverRoute {
  /** True for an image of this driver; only asked about images that no earlier route takes. */
  readonly takes: (image: string) => boolean
  readonly driver: Driver
}

const UNSEEN: Observation = {
  state: 'exited',
  exit: { code: null, signal: null, cause: { kind: 'unseen', when: 'unknown' } },
}

/**
 * A driver for all images. A call for an image goes to the driver of the first route that takes it, a call for a
 * worker to the driver that started or adopted it in this run of the server, and all other calls go to every driver.
 * @param routes the last one takes every image
 * @param maxWorkers limit of the workers of all drivers together
 */
export function createRoutedDriver(routes: readonly DriverRoute[], maxWorkers: number): Driver {
  const drivers = routes.map(({ driver }) => driver)
  const places = new Map<WorkerId, Driver>()
  const driverForImage = (image: string) => routes.find(({ takes }) => takes(image))!.driver
  const driverByName = (name: string | undefined) => drivers.find(driver => driver.name === name)
  const placeWorker = (worker: WorkerId, driver: Driver) => {
    places.set(worker, driver)
    return driver
  }
  return {
    name: 'routed',
    placedBy: image => driverForImage(image).placedBy(image),
    readsModels: image => driverForImage(image).readsModels(image),
    nameFor: image => driverForImage(image).name,
    savedImage: image => driverForImage(image).savedImage(image),
    check: (image, ...rest) => driverForImage(image).check(image, ...rest),
    start: (spec, watch) => placeWorker(spec.workerId, driverForImage(spec.image)).start(spec, watch),
    isolation: (handle, recorded) => driverByName(recorded)?.isolation(handle, recorded) ?? null,
    adopt: async (worker, handle, recorded) => {
      const driver = driverByName(recorded)
      return driver === undefined ? false : placeWorker(worker, driver).adopt(worker, handle)
    },
    observe: async worker => places.get(worker)?.observe(worker) ?? UNSEEN,
    address: async worker => places.get(worker)?.address(worker) ?? null,
    freeze: async worker => places.get(worker)?.freeze(worker),
    thaw: async worker => places.get(worker)?.thaw(worker),
    processes: async worker => places.get(worker)?.processes(worker) ?? null,
    terminate: async worker => places.get(worker)?.terminate(worker),
    kill: async worker => places.get(worker)?.kill(worker),
    release: async worker => {
      // A worker that is not placed ended before this run, and any driver may have something left of it.
      const place = places.get(worker)
      for (const driver of place === undefined ? drivers : [place]) await driver.release(worker)
      places.delete(worker)
    },
    keepsApart: () => drivers.flatMap(driver => driver.keepsApart() ?? []).join('; ') || null,
    capacity: async () => {
      const capacities = await Promise.all(drivers.map(driver => driver.capacity()))
      const taken = capacities.reduce((sum, { freeWorkers }) => sum + maxWorkers - (freeWorkers ?? maxWorkers), 0)
      return {
        freeWorkers: maxWorkers - taken,
        bound: `the limit of ${maxWorkers} workers on this machine (--max-workers)`,
      }
    },
    tidy: async (...args) => {
      for (const driver of drivers) await driver.tidy(...args)
    },
  }
}

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
    observe: async () => UNSEEN,
    address: async () => null,
    freeze: async () => {},
    thaw: async () => {},
    processes: async () => null,
    terminate: async () => {},
    kill: async () => {},
    release: async () => {},
    keepsApart: () => null,
    isolation: () => null,
    // This driver takes no room from another one beside it; `check` reports that nothing starts here.
    capacity: async () => ({ freeWorkers: null, bound: startFailureText(reason) }),
    tidy: async () => {},
  }
}
