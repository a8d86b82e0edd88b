import type { BillingTime, BucketSize } from '../../../core/billing/billing.ts'
import { LAST_N_EXCLUDES } from '../../../core/billing/billing.ts'
import { dollars } from '../../../core/billing/prices.ts'
import type { EndpointId, KeyId } from '../../../core/ids.ts'
import { NO_TOKENS, type TokenFigures } from '../../../core/openai/token-sums.ts'
import type { Amounts, BillCalculator, BillingRecord } from '../../../services/billing/bill-calculator.ts'
import { bucketName, type TokenSums } from '../../../services/billing/token-sums.ts'
import { restSentence } from '../../field-names.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import { BillBody, BillingQuery, BillingTimeQuery, TokenQuery, TokensBody } from '../schemas/billing.ts'

/** Routes of usage and cost of endpoints. */
export function billingRoutes({ billing, tokenSums }: ApiParts): RestRoute[] {
  return [
    tokenRoute(billing, tokenSums),
    route(
      {
        method: 'get',
        path: '/v2/billing/serverless',
        operationId: 'listServerlessBilling',
        tag: 'Billing',
        level: 'read',
        summary: 'What endpoints have used in each span of time, and what that costs',
        query: BillingQuery,
        queryRules: [timeRule(() => billing)],
        success: { status: 200, schema: BillBody },
        problems: [400],
      },
      async ({ caller, query }): Promise<BillBody> => {
        const endpointId = (query.serverlessId ?? null) as EndpointId | null
        const time = billingTime(query)
        const { size, startMs, endMs, records, totals } = await billing.bill(caller.owner, time, endpointId)
        const formerNames = await billing.formerNames(caller.owner, startMs)
        const tokens = await tokenSums.ofEndpoints(caller.owner, time, endpointId)
        const tokensOf = (record: BillingRecord) =>
          size === 'hour' ? null : figuresBody(tokens.get(bucketName(record)) ?? NO_TOKENS)
        return {
          records: records.map(record =>
            recordBody(record, formerNames.get(record.endpointId) ?? null, tokensOf(record)),
          ),
          metadata: {
            query: {
              startTime: timeText(startMs),
              endTime: timeText(endMs),
              bucketSize: size,
              serverlessId: endpointId,
            },
            recordCount: records.length,
            uniqueServerlessCount: new Set(records.map(record => record.endpointId)).size,
            totals: amountsBody(totals),
          },
        }
      },
    ),
  ]
}

function tokenRoute(billing: BillCalculator, tokenSums: TokenSums): RestRoute {
  const checkTime = timeRule(() => billing)
  return route(
    {
      method: 'get',
      path: '/v2/billing/tokens',
      operationId: 'listTokenUsage',
      tag: 'Billing',
      level: 'read',
      summary: 'Tokens that workers reported in their answers, by endpoint, key and model',
      query: TokenQuery,
      queryRules: [(given, sent) => checkTime(given, sent)],
      success: { status: 200, schema: TokensBody },
      problems: [400],
    },
    async ({ caller, query }): Promise<TokensBody> => {
      const endpointId = (query.serverlessId ?? null) as EndpointId | null
      const keyId = (query.keyId ?? null) as KeyId | null
      const time = billingTime(query)
      const { startMs, endMs, records, totals } = await tokenSums.read(caller.owner, time, { endpointId, keyId })
      return {
        records: records.map(record => ({
          startTime: timeText(record.startMs),
          endTime: timeText(record.endMs),
          serverlessId: record.endpointId,
          keyId: record.keyId,
          model: record.model,
          ...figuresBody(record.figures),
        })),
        metadata: {
          query: {
            startTime: timeText(startMs),
            endTime: timeText(endMs),
            bucketSize: time.size,
            serverlessId: endpointId,
            keyId,
          },
          recordCount: records.length,
          totals: figuresBody(totals),
        },
      }
    },
  )
}

function figuresBody({ requests, measured, ...tokens }: TokenFigures): TokensBody['metadata']['totals'] {
  return { requests, measuredRequests: measured, ...tokens }
}

/** The time range of a query. */
export function billingTime({
  bucketSize,
  startTime,
  endTime,
  lastN,
}: Partial<Members<typeof BillingTimeQuery>>): BillingTime {
  return {
    size: (bucketSize ?? 'day') as BucketSize,
    startMs: instant(startTime),
    endMs: instant(endTime),
    lastN,
  }
}

/**
 * Checks the time range of a query against the current time.
 * @param billing called only for a request
 */
export function timeRule(billing: () => BillCalculator): Rule<typeof BillingTimeQuery> {
  return (given, sent) => {
    const problems = billing().problems(billingTime(given))
    const wrong = Object.keys(BillingTimeQuery).some(name => sent.has(name) && !(name in given))
    // If the schema refused a part of the range, check only the rules that do not depend on that part.
    const both = sent.has('lastN') && (sent.has('startTime') || sent.has('endTime'))
    const most = problems.filter(problem => problem.field === 'lastN' && problem !== LAST_N_EXCLUDES)
    const shown = wrong ? [...(both ? [LAST_N_EXCLUDES] : []), ...most] : problems
    return shown.map(problem => restSentence(problem, 'query'))
  }
}

/** An instant on a whole second. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

function recordBody(
  record: BillingRecord,
  formerName: string | null,
  tokens: BillBody['records'][number]['usage']['tokens'],
): BillBody['records'][number] {
  const { startMs, endMs, endpointId, workers, jobs } = record
  const { completed, failed, timedOut, cancelled, expired, queuedMs, executionMs } = jobs
  return {
    startTime: timeText(startMs),
    endTime: timeText(endMs),
    serverlessId: endpointId,
    serverlessName: formerName,
    ...amountsBody(record),
    usage: {
      ...workers,
      billedMs: record.billedMs,
      jobs: { completed, failed, timedOut, cancelled, expired, queuedMs, executionMs },
      tokens,
    },
  }
}

/** Disks have no cost of their own, and fees do not exist. */
function amountsBody({ gpu, cpu }: Amounts): BillBody['metadata']['totals'] {
  return {
    totalAmount: dollars(gpu + cpu),
    gpuAmount: dollars(gpu),
    cpuAmount: dollars(cpu),
    diskAmount: 0,
    feeAmount: 0,
  }
}

function instant(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text)
}
