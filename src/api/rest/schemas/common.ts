import { z } from '@hono/zod-openapi'

/** Error body of REST: a problem document (RFC 9457). */
export const Problem = z
  .object({ title: z.string(), status: z.int(), detail: z.string(), errors: z.array(z.string()).optional() })
  .openapi('ErrorResponse')

/** An instant as RFC 3339 text. */
export const DateTime = z.string().openapi({ format: 'date-time' })

/** An address. */
export const Uri = z.string().openapi({ format: 'uri' })

/** A CUDA version such as 12.4. */
export const CudaVersion = z.string().regex(/^\d+\.\d+$/, 'must be of the form major.minor')

/** The query of a list. */
export const PageQuery = {
  cursor: z.string().min(1).max(200).optional(),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(1000)
    .openapi({ type: 'integer', minimum: 1, maximum: 1000, default: 1000 }),
}

/** Where a list goes on. */
export const Pagination = z
  .object({ nextCursor: z.string().nullable(), hasNextPage: z.boolean() })
  .openapi('Pagination')

/** What a list says about its end. */
export function pagination(nextCursor: string | null): z.output<typeof Pagination> {
  return { nextCursor, hasNextPage: nextCursor !== null }
}

/** The path parameter of one resource. */
export const IdParam = { id: z.string().min(1).max(191) }
