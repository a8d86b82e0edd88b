import type { OPERATIONS, StorePart } from '../../ports/store/operations.ts'
import type { Store } from '../../ports/store/store.ts'
import { accounts } from '../operations/accounts/accounts.ts'
import { keys } from '../operations/accounts/keys.ts'
import { quotas } from '../operations/accounts/quotas.ts'
import { sessions } from '../operations/accounts/sessions.ts'
import { usage } from '../operations/accounts/usage.ts'
import { alerts } from '../operations/alerts/alerts.ts'
import { appBuilds } from '../operations/apps/app-builds.ts'
import { apps } from '../operations/apps/apps.ts'
import { audit } from '../operations/audit/audit.ts'
import { clock } from '../operations/clock.ts'
import { endpoints } from '../operations/endpoints/endpoints.ts'
import { releases } from '../operations/endpoints/releases.ts'
import { removals } from '../operations/endpoints/removals.ts'
import { templates } from '../operations/endpoints/templates.ts'
import { volumes } from '../operations/endpoints/volumes.ts'
import { batches } from '../operations/jobs/batches.ts'
import { jobOutcomes } from '../operations/jobs/job-outcomes.ts'
import { jobRecords } from '../operations/jobs/job-records.ts'
import { jobs } from '../operations/jobs/jobs.ts'
import { largeTexts } from '../operations/jobs/large-texts.ts'
import { streams } from '../operations/jobs/streams.ts'
import { webhooks } from '../operations/jobs/webhooks.ts'
import { attemptTimes } from '../operations/observing/attempt-times.ts'
import { metrics } from '../operations/observing/metrics.ts'
import { modelAliases } from '../operations/openai/model-aliases.ts'
import { servedModels } from '../operations/openai/served-models.ts'
import type { Operation, PortOperations } from '../operations/operation.ts'
import { registries } from '../operations/secrets/registries.ts'
import { seals } from '../operations/secrets/seals.ts'
import { secrets } from '../operations/secrets/secrets.ts'
import { upkeep } from '../operations/upkeep.ts'
import { queuedWorkers } from '../operations/workers/queued-workers.ts'
import { stops } from '../operations/workers/stops.ts'
import { workers } from '../operations/workers/workers.ts'

/** Reads and changes as the port declares them. */
type Declared<Part extends StorePart> = {
  readonly [Method in keyof (typeof OPERATIONS)[Part]]: Pick<
    (typeof OPERATIONS)[Part][Method] & { reads: boolean },
    'reads'
  >
}

/** Every method of the port as an operation, under the names of the port. */
export const operations: { readonly [Part in StorePart]: PortOperations<Store[Part]> & Declared<Part> } = {
  jobs,
  jobOutcomes,
  jobRecords,
  batches,
  streams,
  largeTexts,
  stops,
  webhooks,
  endpoints,
  modelAliases,
  servedModels,
  templates,
  registries,
  volumes,
  alerts,
  apps,
  appBuilds,
  releases,
  secrets,
  workers,
  queuedWorkers,
  keys,
  sessions,
  accounts,
  seals,
  usage,
  metrics,
  attemptTimes,
  upkeep,
  removals,
  quotas,
  audit,
  clock,
}

const byName = new Map<string, Operation>(
  Object.entries(operations).flatMap(([part, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${part}.${method}`, operation as unknown as Operation]),
  ),
)

/** The operation of a name such as `jobs.claim`. */
export function findOperation(name: string): Operation {
  const operation = byName.get(name)
  if (operation === undefined) throw new Error(`the store has no operation ${name}`)
  return operation
}

/**
 * A store whose methods pass their names and arguments on.
 * @param call runs an operation by its name
 * @param keepsOrder true where writes are made in the order of their calls; false unless given
 */
export function storeFromCalls(
  call: (name: string, args: readonly unknown[]) => Promise<unknown>,
  close: () => Promise<void>,
  keepsOrder = false,
): Store {
  const parts = Object.entries(operations).map(([part, methods]) => {
    const names = Object.keys(methods)
    const passOn = (method: string) => {
      const name = `${part}.${method}`
      return (...args: unknown[]) => call(name, args)
    }
    return [part, Object.fromEntries(names.map(method => [method, passOn(method)]))] as const
  })
  return { ...(Object.fromEntries(parts) as unknown as Omit<Store, 'close' | 'keepsOrder'>), keepsOrder, close }
}
