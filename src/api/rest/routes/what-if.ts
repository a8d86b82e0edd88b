import { z } from '@hono/zod-openapi'
import { dollars } from '../../../core/billing/prices.ts'
import { FLASHBOOTS, MAX_IDLE_TIMEOUT_S, MAX_WORKERS } from '../../../core/endpoints/endpoint.ts'
import { renderFields, toAppError } from '../../../core/errors.ts'
import { type FieldNames, problemWithoutField } from '../../../core/field-problem.ts'
import { type SettingChanges, WHAT_IF_DAYS } from '../../../core/observing/what-if.ts'
import type { PlayedSettings, WhatIfAnswer } from '../../../services/observing/what-if.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, route } from '../route.ts'
import { DateTime, IdParam } from '../schemas/common.ts'
import { endpointId } from './serverless.ts'

function wholeNumber(minimum: number, maximum: number) {
  return z.coerce.number().int().min(minimum).max(maximum).openapi({ type: 'integer', minimum, maximum })
}

const FlashBootType = z.enum(FLASHBOOTS)
const ScalerType = z.enum(['QUEUE_DELAY', 'REQUEST_COUNT'])

/** Query of a what-if: settings that differ from the present ones, and the number of replayed days. */
const WhatIfQuery = {
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
const WhatIfBody = z
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
type WhatIfBody = z.output<typeof WhatIfBody>

const HOUR_MS = 3_600_000

/** Fields of settings, as the query names them. */
const QUERY_NAMES: FieldNames = {
  idleTimeoutS: 'idleTimeout',
  'scaler.type': 'scalerType',
  'scaler.queueDelayS': 'scalerValue',
  'scaler.requestCount': 'scalerValue',
}

/** An addition to the public contract: effects of other settings on recorded load. */
export function whatIfRoutes({ endpoints, whatIf }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/serverless/{id}/whatif',
        operationId: 'askWhatIf',
        tag: 'Serverless',
        level: 'read',
        summary:
          'What other settings would have done with the jobs that an endpoint had: worker hours, cost, waits and cold starts, beside those of today',
        params: IdParam,
        query: WhatIfQuery,
        success: { status: 200, schema: WhatIfBody },
        problems: [400, 404, 409],
      },
      async ({ caller, params, query, request }): Promise<WhatIfBody> => {
        const endpoint = await endpoints.find(caller.owner, endpointId(params.id))
        const question = { changes: changesFromQuery(query), days: query.days }
        const answer = await whatIf.answer(endpoint, question, request.signal).catch(error => {
          throw renderFields(toAppError(error), problem => {
            const name = QUERY_NAMES[problem.field] ?? problem.field
            return `query.${name}: ${problemWithoutField(problem, QUERY_NAMES)}`
          })
        })
        return { serverlessId: endpoint.id, ...body(answer) }
      },
    ),
  ]
}

function changesFromQuery(query: Members<typeof WhatIfQuery>): SettingChanges {
  const { workersMin, workersMax, idleTimeout, scalerType, scalerValue, flashBootType, startAware } = query
  return {
    workersMin,
    workersMax,
    idleTimeoutS: idleTimeout,
    scalerType,
    scalerValue,
    flashboot: flashBootType,
    startAware: startAware === undefined ? undefined : startAware === 'true',
  }
}

function body(answer: WhatIfAnswer): Omit<WhatIfBody, 'serverlessId'> {
  const { recorded, start, thawMs, concurrency, flavor, priceMicros, notes, today, other } = answer
  return {
    recorded: {
      from: new Date(recorded.fromMs).toISOString(),
      to: new Date(recorded.untilMs).toISOString(),
      attempts: recorded.attempts,
      waitMs: recorded.waitMs,
      coldStarts: recorded.cold,
    },
    assumed: {
      startMs: start.ms,
      startFrom: start.from,
      thawMs,
      concurrency,
      hardware: flavor,
      pricePerHour: dollars(priceMicros),
    },
    notes: [...notes],
    today: today && playedBody(today),
    other: other && playedBody(other),
  }
}

function playedBody({ settings, workers, costMicros, waitMs, coldStarts, thaws, mostWorkers }: PlayedSettings) {
  const { workersMin, workersMax, idleTimeoutS, scaler, flashboot, startAware } = settings
  return {
    workersMin,
    workersMax,
    idleTimeout: idleTimeoutS,
    scalerType: scaler.type,
    scalerValue: scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS : scaler.requestCount,
    flashBootType: flashboot,
    startAware,
    workerHours: {
      starting: hours(workers.startingMs),
      idle: hours(workers.idleMs),
      running: hours(workers.runningMs),
      frozen: hours(workers.frozenMs),
    },
    cost: dollars(costMicros),
    waitMs,
    coldStarts,
    thaws,
    mostWorkers,
  }
}

/** Hours with four decimals, which is less than a second. */
function hours(ms: number): number {
  return Math.round((ms / HOUR_MS) * 10_000) / 10_000
}
