import { z } from '@hono/zod-openapi'
import { DateTime, PageQuery, Pagination } from './common.ts'

const environment = {
  id: z.string(),
  name: z.string(),
  state: z.enum(['EMPTY', 'DEPLOYED']),
  activeBuildId: z.string().nullable(),
  createdAt: DateTime,
}
const Environment = z.object(environment).openapi('AppEnvironment')

const RunningBuild = z.object({ buildId: z.string().nullable(), workers: z.int() }).openapi('RunningBuild')

const Endpoint = z
  .object({ id: z.string(), name: z.string(), buildId: z.string().nullable(), running: z.array(RunningBuild) })
  .openapi('AppEndpoint')

const Build = z
  .object({ id: z.string(), size: z.int(), unpackedSize: z.int(), createdAt: DateTime })
  .openapi('AppBuild')

const app = { id: z.string(), name: z.string(), createdAt: DateTime, endpointCount: z.int() }

/** A page of apps. */
export const AppList = z
  .object({
    apps: z.array(z.object({ ...app, environments: z.array(Environment) }).openapi('App')),
    pagination: Pagination,
  })
  .openapi('ListAppsResponse')

/** The query of the list of apps. */
export const AppQuery = { ...PageQuery, name: z.string().min(1).max(191).optional() }

/** An app with its endpoints and builds. Sizes are in bytes. */
export const AppDetail = z
  .object({
    ...app,
    environments: z.array(
      z.object({ ...environment, endpoints: z.array(Endpoint) }).openapi('AppEnvironmentWithEndpoints'),
    ),
    builds: z.array(Build),
  })
  .openapi('AppDetail')
