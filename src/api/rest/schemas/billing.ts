import { z } from '@hono/zod-openapi'
import { BUCKET_SIZES } from '../../../core/billing/billing.ts'
import { DateTime } from './common.ts'

const Time = z.iso.datetime({ offset: true }).openapi({ format: 'date-time' }).optional()
const BucketSize = z.enum(BUCKET_SIZES)
const Amount = z.number()

/** Time range of a bill. */
export const BillingTimeQuery = {
  startTime: Time,
  endTime: Time,
  bucketSize: BucketSize.default('day').openapi({ default: 'day' }),
  lastN: z.coerce.number().int().min(1).optional().openapi({ type: 'integer', minimum: 1 }),
}

/** Query of a bill. */
export const BillingQuery = { ...BillingTimeQuery, serverlessId: z.string().max(191).optional() }

const amounts = {
  totalAmount: Amount,
  gpuAmount: Amount,
  cpuAmount: Amount,
  diskAmount: Amount,
  feeAmount: Amount,
}

const tokenFigures = {
  requests: z.int().openapi({ description: 'answered requests to operations whose answers report tokens' }),
  measuredRequests: z.int().openapi({ description: 'those of them whose answer reported its tokens' }),
  promptTokens: z.int(),
  completionTokens: z.int(),
  cachedTokens: z.int().openapi({ description: 'the part of promptTokens that came from a cache' }),
}

const Usage = z
  .object({
    startingMs: z.int(),
    runningMs: z.int(),
    idleMs: z.int(),
    frozenMs: z.int(),
    billedMs: z.int(),
    jobs: z.object({
      completed: z.int(),
      failed: z.int(),
      timedOut: z.int(),
      cancelled: z.int(),
      expired: z.int(),
      queuedMs: z.int(),
      executionMs: z.int(),
    }),
    tokens: z
      .object(tokenFigures)
      .nullable()
      .openapi('ServerlessTokens', { description: 'tokens of its requests; null for buckets of an hour' }),
  })
  .openapi('ServerlessUsage')

const BillingRecord = z
  .object({
    startTime: DateTime,
    endTime: DateTime,
    serverlessId: z.string(),
    serverlessName: z.string().nullable().openapi({ description: 'the name of an endpoint or task that was deleted' }),
    ...amounts,
    usage: Usage,
  })
  .openapi('ServerlessBillingRecord')

/** A bill of serverless endpoints. */
export const BillBody = z
  .object({
    records: z.array(BillingRecord),
    metadata: z.object({
      query: z.object({
        startTime: DateTime,
        endTime: DateTime,
        bucketSize: BucketSize.openapi({ default: 'day' }),
        serverlessId: z.string().nullable(),
      }),
      recordCount: z.int(),
      uniqueServerlessCount: z.int(),
      totals: z.object(amounts).openapi('ServerlessBillingAmounts'),
    }),
  })
  .openapi('ListServerlessBillingResponse')
/** See {@link BillBody}. */
export type BillBody = z.output<typeof BillBody>

/** Query of the use of tokens. Tokens are summed by the day. */
export const TokenQuery = {
  ...BillingQuery,
  bucketSize: BucketSize.exclude(['hour']).default('day').openapi({ default: 'day' }),
  keyId: z.string().max(191).optional().openapi({ description: 'the requests of one API key' }),
}

const TokenRecord = z
  .object({
    startTime: DateTime,
    endTime: DateTime,
    serverlessId: z.string(),
    keyId: z.string().nullable().openapi({ description: 'null for requests without a key' }),
    model: z.string().nullable().openapi({ description: 'as the answers name it; null where they name none' }),
    ...tokenFigures,
  })
  .openapi('TokenUsageRecord')

/** Tokens by endpoint, key and model. */
export const TokensBody = z
  .object({
    records: z.array(TokenRecord),
    metadata: z.object({
      query: z.object({
        startTime: DateTime,
        endTime: DateTime,
        bucketSize: BucketSize.openapi({ default: 'day' }),
        serverlessId: z.string().nullable(),
        keyId: z.string().nullable(),
      }),
      recordCount: z.int(),
      totals: z.object(tokenFigures).openapi('TokenUsageTotals'),
    }),
  })
  .openapi('ListTokenUsageResponse')
/** See {@link TokensBody}. */
export type TokensBody = z.output<typeof TokensBody>
