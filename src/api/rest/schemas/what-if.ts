import { z } from '@hono/zod-openapi'
import { FLASHBOOTS, MAX_IDLE_TIMEOUT_S, MAX_WORKERS } from '../../../core/endpoints/endpoint.ts'
import { WHAT_IF_DAYS } from '../../../core/observing/what-if.ts'
import { DateTime } from './common.ts'

function wholeNumber(minimum: number, maximum: number) {
  return z.coerce.number().int().min(minimum).max(maximum).openapi({ type: 'integer', minimum, maximum })
}

const FlashBootType = z.enum(FLASHBOOTS)
const ScalerType = z.enum(['QUEUE_DELAY', 'REQUEST_COUNT'])

/** Query of a what-if: settings that differ from the present ones, and the number of replayed days. */
export const WhatIfQuery = {
  workersMin: wholeNumber(0, MAX_WORKERS).optional(),
  workersMax: wholeNumber(1, MAX_WORKERS).optional(),
  idleTimeout: wholeNumber(1, MAX_IDLE_TIMEOUT_S).optional(),
  scalerType: ScalerType.optional(),
  scalerValue: z.coerce
    .number()
    .min(0.5)
    .max(1_000_000)
    .optional()
    .openapi({ type: 'number', minimum: 0.5, maximum: 1_000_000 }),
  flashBootType: FlashBootType.optional(),
  startAware: z.enum(['true', 'false']).optional(),
  days: wholeNumber(1, WHAT_IF_DAYS).default(WHAT_IF_DAYS).openapi({ default: WHAT_IF_DAYS }),
}

const Waits = z.object({ p50: z.number(), p95: z.number(), p99: z.number() }).openapi('WhatIfWaits')

const Played = z
  .object({
    workersMin: z.int(),
    workersMax: z.int(),
    idleTimeout: z.int(),
    scalerType: ScalerType,
    scalerValue: z.number(),
    flashBootType: FlashBootType,
    startAware: z.boolean(),
    workerHours: z.object({
      starting: z.number(),
      idle: z.number(),
      running: z.number(),
      frozen: z.number(),
    }),
    cost: z.number(),
    waitMs: Waits.nullable(),
    coldStarts: z.int(),
    thaws: z.int(),
    mostWorkers: z.int(),
  })
  .openapi('WhatIfFigures')

/** Effects of settings. */
export const WhatIfBody = z
  .object({
    serverlessId: z.string(),
    recorded: z.object({
      from: DateTime,
      to: DateTime,
      attempts: z.int(),
      waitMs: Waits.nullable(),
      coldStarts: z.int(),
    }),
    assumed: z.object({
      startMs: z.number(),
      startFrom: z.enum(['WORKERS', 'COLD_ATTEMPTS', 'UNKNOWN']),
      thawMs: z.number(),
      concurrency: z.int(),
      hardware: z.string(),
      pricePerHour: z.number(),
    }),
    notes: z.array(z.string()),
    today: Played.nullable(),
    other: Played.nullable(),
  })
  .openapi('WhatIf')
/** See {@link WhatIfBody}. */
export type WhatIfBody = z.output<typeof WhatIfBody>
