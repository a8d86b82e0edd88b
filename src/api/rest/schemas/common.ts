import { z } from '@hono/zod-openapi'
import { MAX_CUDA_VERSION } from '../../../core/endpoints/template.ts'
import { CURSOR } from '../../../core/pages.ts'

/** Error body of REST: a problem document (RFC 9457). */
export const Problem = z
  .object({
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z.array(z.string()).optional(),
    requestId: z.string(),
  })
  .openapi('ErrorResponse')

/** An instant as RFC 3339 text. */
export const DateTime = z.string().openapi({ format: 'date-time' })

/** An address. */
export const Uri = z.string().openapi({ format: 'uri' })

/** An address with a placeholder, such as `{job_id}`, which no URI can have. */
export const UriTemplate = z.string().openapi({ format: 'uri-template' })

/** A CUDA version such as 12.4. */
export const CudaVersion = z
  .string()
  .max(MAX_CUDA_VERSION)
  .regex(/^\d+\.\d+$/, 'must be of the form major.minor')

/** The id of a referenced resource. */
export const Id = z.string().min(1).max(191)

/** An id of the catalog. The document lists the ids; an unknown one is refused with its own sentence. */
export function listed(ids: readonly string[]) {
  return z
    .string()
    .min(1)
    .openapi({ enum: [...ids] })
}

/** Non-empty text. @param max maximum characters */
export function text(max: number) {
  return z.string().min(1, { abort: true }).max(max).regex(/\S/, 'must not be empty')
}

/** Display name. */
export const Name = text(191)

/** Limit of the items of a page. @param fallback the default limit */
export function pageLimit(fallback: number) {
  return z.coerce
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(fallback)
    .openapi({ type: 'integer', minimum: 1, maximum: 1000, default: fallback })
}

/** Query of a paged list. */
export const PageQuery = {
  cursor: z.string().regex(CURSOR, 'is not one that an earlier page has returned').optional(),
  limit: pageLimit(1000),
}

/** Cursor of the next page. */
export const Pagination = z
  .object({ nextCursor: z.string().nullable(), hasNextPage: z.boolean() })
  .openapi('Pagination')

/** Page information of a list. */
export function pagination(nextCursor: string | null): z.output<typeof Pagination> {
  return { nextCursor, hasNextPage: nextCursor !== null }
}

/** The path parameter of one resource. */
export const IdParam = { id: z.string().min(1).max(191) }

/**
 * Query of a change that can be tried: with `true` it is checked as usual, returns its would-be result, and changes
 * nothing.
 */
export const DryRunQuery = { dryRun: z.enum(['true', 'false']).default('false') }

/** The response of a route that sends server-sent events. */
export const EVENT_STREAM = {
  status: 200,
  schema: z.string(),
  mediaType: 'text/event-stream',
  headers: ['Cache-Control', 'Connection', 'X-Accel-Buffering'],
} as const
