import type { z } from '@hono/zod-openapi'

/**
 * Entry of the OpenAPI document for an operation that is not in the table of REST routes, and whose code checks its
 * input by other means.
 */
export interface DocumentedOperation {
  readonly method: 'get' | 'post' | 'put' | 'delete'
  /** Path with `{name}` for each parameter. */
  readonly path: string
  readonly operationId: string
  readonly tag: string
  /** One sentence. */
  readonly summary: string
  readonly params: Readonly<Record<string, z.ZodType>>
  readonly query?: Readonly<Record<string, z.ZodType>>
  readonly headers?: Readonly<Record<string, z.ZodType>>
  readonly body?: { readonly schema: z.ZodType; readonly required: boolean }
  /** The body of the success response, whose status is 200. */
  readonly response: z.ZodType
  /** Media type of that body. Default: JSON. */
  readonly mediaType?: string
  /** True if POST does the same as GET. */
  readonly postToo?: true
  /** Body of errors. Default: a sentence in `error`. */
  readonly error?: z.ZodType
  /** Error statuses besides those of every operation (400, 401, 403, 404, 429, 503). */
  readonly errors?: readonly (409 | 413)[]
}
