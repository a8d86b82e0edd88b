import { z } from '@hono/zod-openapi'
import { parseInstant } from '../../../core/instants.ts'
import { readEventId } from '../../../core/observing/log-cursor.ts'

/** Source of a log line. */
export const LogSource = z.enum(['container', 'system']).openapi('LogSource')

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
  since: z
    .string()
    .refine(text => parseInstant(text) !== null, 'must be a date and time such as 2026-01-31T12:00:00Z')
    .openapi({ format: 'date-time' })
    .optional(),
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
