import type { Store } from '../../ports/store/store.ts'
import { accounts } from './accounts.ts'
import { batches } from './batches.ts'
import { endpoints } from './endpoints.ts'
import { jobOutcomes } from './job-outcomes.ts'
import { jobs } from './jobs.ts'
import { keys } from './keys.ts'
import type { Operation, OperationsOf } from './operation.ts'
import { queuedWorkers } from './queued-workers.ts'
import { quotas } from './quotas.ts'
import { registries } from './registries.ts'
import { releases } from './releases.ts'
import { removals } from './removals.ts'
import { seals } from './seals.ts'
import { secrets } from './secrets.ts'
import { stops } from './stops.ts'
import { streams } from './streams.ts'
import { templates } from './templates.ts'
import { upkeep } from './upkeep.ts'
import { usage } from './usage.ts'
import { volumes } from './volumes.ts'
import { webhooks } from './webhooks.ts'
import { workers } from './workers.ts'

/** The parts of the store port. */
export type Part = Exclude<keyof Store, 'close'>

/** Every method of the port as an operation, under the names of the port. */
export const operations: { readonly [P in Part]: OperationsOf<Store[P]> } = {
  jobs,
  jobOutcomes,
  batches,
  streams,
  stops,
  webhooks,
  endpoints,
  templates,
  registries,
  volumes,
  releases,
  secrets,
  workers,
  queuedWorkers,
  keys,
  accounts,
  seals,
  usage,
  upkeep,
  removals,
  quotas,
}

const byName = new Map<string, Operation>(
  Object.entries(operations).flatMap(([part, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${part}.${method}`, operation as unknown as Operation]),
  ),
)

/** The operation of a name such as `jobs.claim`. */
export function operationOf(name: string): Operation {
  const operation = byName.get(name)
  if (operation === undefined) throw new Error(`the store has no operation ${name}`)
  return operation
}

/**
 * A store whose methods pass their names and arguments on.
 * @param call runs an operation by its name
 */
export function storeOf(
  call: (name: string, args: readonly unknown[]) => Promise<unknown>,
  close: () => Promise<void>,
): Store {
  const parts = Object.entries(operations).map(([part, methods]) => {
    const names = Object.keys(methods)
    const passOn = (method: string) => {
      const name = `${part}.${method}`
      return (...args: unknown[]) => call(name, args)
    }
    return [part, Object.fromEntries(names.map(method => [method, passOn(method)]))] as const
  })
  return { ...(Object.fromEntries(parts) as unknown as Omit<Store, 'close'>), close }
}
