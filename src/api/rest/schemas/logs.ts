import { z } from '@hono/zod-openapi'
import { parseInstant } from '../../../core/instants.ts'
import { readEventId } from '../../../core/observing/log-cursor.ts'

/** Source of a log line. */
export const LogSource = z.enum(['container', 'system']).openapi('LogSource')

const Since = z
  .string()
  .refine(text => parseInstant(text) !== null, 'must be a date and time such as 2026-01-31T12:00:00Z')
  .openapi({ format: 'date-time' })
  .optional()

/** Query of the logs of an endpoint. */
export const EndpointLogQuery = {
  worker: z.string().min(1).max(191).optional(),
  job: z.string().min(1).max(191).optional(),
  source: LogSource.optional(),
  tail: z.coerce.number().int().min(0).max(5000).optional().openapi({ type: 'integer', minimum: 0, maximum: 5000 }),
  since: Since,
  text: z.string().min(1).max(1000).optional(),
  follow: z.enum(['true', 'false']).default('true'),
  format: z.enum(['events', 'lines', 'text']).optional(),
}

/** Query of logs. */
export const LogQuery = {
  source: LogSource.optional(),
  tail: z.coerce
    .number()
    .int()
    .min(0)
    .max(5000)
    .default(100)
    .openapi({ type: 'integer', minimum: 0, maximum: 5000, default: 100 }),
  since: Since,
}

/** Id of the last event that the reader has, or an instant. Events after it are sent. */
export const LastEventId = z
  .string()
  .refine(
    text => ['place', 'instant'].includes(readEventId(text)?.kind ?? ''),
    'must be the id of an event, or an instant',
  )
  .openapi({ format: 'date-time' })
  .optional()

/** As {@link LastEventId}, of the logs of several workers. */
export const EndpointLogsLastEventId = z
  .string()
  .max(8192)
  .refine(text => readEventId(text) !== null, 'must be the id of an event, or an instant')
  .optional()
