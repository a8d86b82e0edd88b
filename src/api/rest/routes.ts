import { JOB_OPERATIONS } from '../jobs/operations.ts'
import type { ApiParts } from '../parts.ts'
import recorded from './examples.json' with { type: 'json' }
import type { Examples } from './openapi.ts'
import type { RestRoute } from './route.ts'
import { accountRoutes } from './routes/account.ts'
import { alertRoutes } from './routes/alerts.ts'
import { appRoutes } from './routes/apps.ts'
import { auditRoutes } from './routes/audit.ts'
import { billingRoutes } from './routes/billing.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { documentationRoutes } from './routes/documentation.ts'
import { endpointKeyRoutes } from './routes/endpoint-keys.ts'
import { endpointLogRoutes } from './routes/endpoint-logs.ts'
import { eventRoutes } from './routes/events.ts'
import { machineRoutes } from './routes/machine.ts'
import { metricRoutes } from './routes/metrics.ts'
import { modelAliasRoutes } from './routes/model-aliases.ts'
import { overviewRoutes } from './routes/overview.ts'
import { podRoutes } from './routes/pods.ts'
import { secretRoutes } from './routes/secrets.ts'
import { serverlessRoutes } from './routes/serverless.ts'
import { globalVolumeRoutes, registryRoutes, volumeRoutes } from './routes/storage.ts'
import { templateRoutes } from './routes/templates.ts'
import { whatIfRoutes } from './routes/what-if.ts'
import { workerLogRoutes } from './routes/worker-logs.ts'
import { workerRoutes } from './routes/workers.ts'

/**
 * A request of each operation with the response of a server. test/app/surfaces/document-examples.test.ts sends the
 * requests and compares the responses; with `RUNYARD_RECORD_EXAMPLES=1` it writes them.
 */
export const EXAMPLES: Examples = recorded as Examples

/** Every route of the management API. */
export function restRoutes(parts: ApiParts): RestRoute[] {
  const routes = [
    ...overviewRoutes(parts),
    ...serverlessRoutes(parts),
    ...workerRoutes(parts),
    ...workerLogRoutes(parts),
    ...endpointLogRoutes(parts),
    ...metricRoutes(parts),
    ...whatIfRoutes(parts),
    ...podRoutes(parts),
    ...eventRoutes(parts),
    ...templateRoutes(parts),
    ...volumeRoutes(parts),
    ...globalVolumeRoutes(parts),
    ...registryRoutes(parts),
    ...billingRoutes(parts),
    ...catalogRoutes(parts),
    ...machineRoutes(parts),
    ...auditRoutes(parts),
    ...appRoutes(parts),
    ...alertRoutes(parts),
    ...secretRoutes(parts),
    ...modelAliasRoutes(parts),
    ...accountRoutes(parts),
    ...endpointKeyRoutes(parts),
  ]
  const document = { routes, operations: JOB_OPERATIONS, examples: EXAMPLES }
  return [...routes, ...documentationRoutes(document, parts.addresses)]
}
