import { z } from '@hono/zod-openapi'
import { dollars } from '../../../core/billing/prices.ts'
import type { Amounts, BillCalculator } from '../../../services/billing/bill-calculator.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { BillingTimeQuery } from '../schemas/billing.ts'
import { IdParam, PageQuery, pagination } from '../schemas/common.ts'
import { billingTime, timeRule, timeText } from './billing.ts'
import { endpointId } from './serverless.ts'

/** The lists of things that Runyard lacks, by path, with the member of the response. */
const LISTS: Readonly<Record<string, string>> = {
  '/v2/clusters': 'clusters',
  '/v2/registries/delegations': 'delegations',
  '/v2/sandboxes': 'sandboxes',
}

/**
 * Bills of things that Runyard lacks or gives without charge: by kind the id in its query and its records, if it has
 * one, the count of these, and its amounts.
 */
const BILLS: Readonly<Record<string, { id?: string; count?: string; amounts: readonly string[] }>> = {
  pods: { id: 'podId', count: 'uniquePodCount', amounts: ['gpuAmount', 'cpuAmount', 'diskAmount'] },
  clusters: { id: 'clusterId', count: 'uniqueClusterCount', amounts: ['gpuAmount', 'diskAmount', 'networkingAmount'] },
  'network-volumes': {
    id: 'networkVolumeId',
    count: 'uniqueNetworkVolumeCount',
    amounts: ['standardAmount', 'highPerformanceAmount'],
  },
  endpoints: { amounts: [] },
}

/** Amounts of the bill over all kinds that are always 0. */
const FREE_AMOUNTS: readonly string[] = [
  ...['podGpuAmount', 'podCpuAmount', 'podDiskAmount', 'serverlessDiskAmount', 'serverlessFeeAmount'],
  ...['storageStandardAmount', 'storageHighPerformanceAmount', 'endpointAmount'],
  ...['clusterGpuAmount', 'clusterDiskAmount', 'clusterNetworkingAmount'],
]

/**
 * The lists and bills of the public API for things that Runyard lacks, so that tools that list everything work. The
 * document of the API leaves them out.
 */
export function absentRoutes(parts: ApiParts): RestRoute[] {
  return [...lists(), builds(parts), ...bills(parts), wholeBill(parts)]
}

/** A contract that is not published, so its names and its summary are placeholders. */
function contract(path: string) {
  const success = { status: 200, schema: z.unknown() } as const
  const placeholders = { operationId: `get ${path}`, tag: '', summary: '' }
  return { ...placeholders, method: 'get', path, level: 'read', success } as const
}

function lists(): RestRoute[] {
  return Object.entries(LISTS).map(([path, member]) =>
    route({ ...contract(path), query: PageQuery }, async () => ({ [member]: [], pagination: pagination(null) })),
  )
}

function builds({ endpoints }: ApiParts): RestRoute {
  return route(
    { ...contract('/v2/serverless/{id}/builds'), params: IdParam, query: PageQuery },
    async ({ caller, params }) => {
      await endpoints.find(caller.owner, endpointId(params.id))
      return { builds: [], pagination: pagination(null) }
    },
  )
}

function bills({ billing }: ApiParts): RestRoute[] {
  return Object.entries(BILLS).map(([kind, { id, count, amounts }]) =>
    route(
      {
        ...contract(`/v2/billing/${kind}`),
        query: { ...BillingTimeQuery, ...(id === undefined ? {} : { [id]: z.string().max(191).optional() }) },
        queryRules: [timeRule(() => billing)],
      },
      async ({ query }) => ({
        records: [],
        metadata: {
          query: {
            ...spanBody(billing.span(billingTime(query))),
            ...(id === undefined ? {} : { [id]: (query as Readonly<Record<string, unknown>>)[id] ?? null }),
          },
          recordCount: 0,
          ...(count === undefined ? {} : { [count]: 0 }),
          totals: { totalAmount: 0, ...zeros(amounts) },
        },
      }),
    ),
  )
}

/** The bill over all kinds: a record for each span of time in which endpoints were used. */
function wholeBill({ billing }: ApiParts): RestRoute {
  return route(
    { ...contract('/v2/billing'), query: BillingTimeQuery, queryRules: [timeRule(() => billing)] },
    async ({ caller, query }) => {
      const bill = await billing.bill(caller.owner, billingTime(query), null)
      const sums = new Map<number, Amounts & { endMs: number }>()
      for (const { startMs, endMs, gpu, cpu } of bill.records) {
        const known = sums.get(startMs) ?? { gpu: 0, cpu: 0 }
        sums.set(startMs, { endMs, gpu: known.gpu + gpu, cpu: known.cpu + cpu })
      }
      const records = [...sums].map(([startMs, { endMs, ...sum }]) => ({
        startTime: timeText(startMs),
        endTime: timeText(endMs),
        ...wholeAmounts(sum),
      }))
      const totals = wholeAmounts(bill.totals)
      return { records, metadata: { query: spanBody(bill), recordCount: records.length, totals } }
    },
  )
}

function spanBody({ size, startMs, endMs }: ReturnType<BillCalculator['span']>) {
  return { startTime: timeText(startMs), endTime: timeText(endMs), bucketSize: size }
}

function wholeAmounts({ gpu, cpu }: Amounts) {
  const serverless = { serverlessGpuAmount: dollars(gpu), serverlessCpuAmount: dollars(cpu) }
  return { totalAmount: dollars(gpu + cpu), ...serverless, ...zeros(FREE_AMOUNTS) }
}

function zeros(names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map(name => [name, 0]))
}
