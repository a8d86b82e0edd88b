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
  })
  .openapi('ServerlessUsage')

const BillingRecord = z
  .object({ startTime: DateTime, endTime: DateTime, serverlessId: z.string(), ...amounts, usage: Usage })
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
