import { dollars } from '../../../core/billing/prices.ts'
import { renderFields, toAppError } from '../../../core/errors.ts'
import { type FieldNames, problemWithoutField } from '../../../core/field-problem.ts'
import type { SettingChanges } from '../../../core/observing/what-if.ts'
import type { PlayedSettings, WhatIfAnswer } from '../../../services/observing/what-if.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, route } from '../route.ts'
import { IdParam } from '../schemas/common.ts'
import { WhatIfBody, WhatIfQuery } from '../schemas/what-if.ts'
import { endpointId } from './serverless.ts'

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
        const asked = { changes: changesFromQuery(query), days: query.days }
        const answer = await whatIf.answer(endpoint, asked, request.signal).catch(error => {
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
