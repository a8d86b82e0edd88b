import { JOB_OPERATIONS } from '../jobs/operations.ts'
import { EXAMPLES } from './examples.ts'
import type { RestRoute } from './route.ts'
import { type AccountParts, accountRoutes } from './routes/account.ts'
import { type AuditRouteParts, auditRoutes } from './routes/audit.ts'
import { billingRoutes } from './routes/billing.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { documentationRoutes } from './routes/documentation.ts'
import { type EndpointKeyParts, endpointKeyRoutes } from './routes/endpoint-keys.ts'
import { endpointLogRoutes } from './routes/endpoint-logs.ts'
import { type EventParts, eventRoutes } from './routes/events.ts'
import { type MachineRouteParts, machineRoutes } from './routes/machine.ts'
import { type MetricParts, metricRoutes } from './routes/metrics.ts'
import { type OverviewParts, overviewRoutes } from './routes/overview.ts'
import { secretRoutes } from './routes/secrets.ts'
import { type ServerlessParts, serverlessRoutes } from './routes/serverless.ts'
import { registryRoutes, volumeRoutes } from './routes/storage.ts'
import { templateRoutes } from './routes/templates.ts'
import { type WhatIfParts, whatIfRoutes } from './routes/what-if.ts'
import { type WorkerLogParts, workerLogRoutes } from './routes/worker-logs.ts'
import { type WorkerParts, workerRoutes } from './routes/workers.ts'

/** Dependencies of the routes of REST version 2. */
export type RouteParts = ServerlessParts &
  EndpointKeyParts &
  WorkerLogParts &
  WorkerParts &
  MetricParts &
  WhatIfParts &
  EventParts &
  OverviewParts &
  MachineRouteParts &
  AuditRouteParts &
  AccountParts &
  Parameters<typeof billingRoutes>[0] &
  Parameters<typeof catalogRoutes>[0] &
  Parameters<typeof secretRoutes>[0] &
  Parameters<typeof registryRoutes>[0] &
  Parameters<typeof volumeRoutes>[0]

/** Every route of the management API. */
export function restRoutes(parts: RouteParts): RestRoute[] {
  const routes = [
    ...overviewRoutes(parts),
    ...serverlessRoutes(parts),
    ...workerRoutes(parts),
    ...workerLogRoutes(parts),
    ...endpointLogRoutes(parts),
    ...metricRoutes(parts),
    ...whatIfRoutes(parts),
    ...eventRoutes(parts),
    ...templateRoutes(parts),
    ...volumeRoutes(parts),
    ...registryRoutes(parts),
    ...billingRoutes(parts),
    ...catalogRoutes(parts),
    ...machineRoutes(parts),
    ...auditRoutes(parts),
    ...secretRoutes(parts),
    ...accountRoutes(parts),
    ...endpointKeyRoutes(parts),
  ]
  const document = { routes, operations: JOB_OPERATIONS, examples: EXAMPLES }
  return [...routes, ...documentationRoutes(document, parts.addresses)]
}
