import type { z } from '@hono/zod-openapi'
import type { Caller } from '../../core/accounts/permission.ts'

/** A shape of named members, as zod writes it. */
export type Shape = Readonly<Record<string, z.ZodType>>

/** The members of a shape after validation. */
export type Members<Of extends Shape> = { readonly [Name in keyof Of]: z.output<Of[Name]> }

/**
 * A rule over several members of a body, or one that a schema cannot say. It is asked also when other members are wrong: it is
 * given those that are right, and the names of all that were sent, and answers one sentence for each failure, with the path of
 * the member in front.
 */
export type Rule<Of extends Shape> = (given: Partial<Members<Of>>, sent: ReadonlySet<string>) => readonly string[]

/** The JSON body that a route takes. */
export interface BodyContract<Of extends Shape> {
  readonly name: string
  readonly shape: Of
  readonly rules?: readonly Rule<Of>[]
  /** What of the rules the document can say, as keywords of JSON Schema. */
  readonly keywords?: Readonly<Record<string, unknown>>
  /** What becomes of properties that are not in the shape; they are refused where it is not said. */
  readonly unknown?: 'refused' | 'ignored'
  /** How large the body may be; 1 MiB where it is not said. */
  readonly maxBytes?: number
}

/** What a route takes and answers: the one source of validation, rights, the OpenAPI document and the page of documentation. */
export interface Contract<P extends Shape, Q extends Shape, H extends Shape, B extends Shape> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** With `{name}` for each parameter. */
  readonly path: string
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  /** The right in management that it needs; `open` for none, without a key. */
  readonly level: 'read' | 'write' | 'open'
  readonly params?: P
  readonly query?: Q
  readonly queryRules?: readonly Rule<Q>[]
  /** Request headers. */
  readonly headers?: H
  readonly body?: BodyContract<B>
  /** The answer that tells of success; a null schema has no body. */
  readonly success: {
    readonly status: 200 | 201 | 204
    readonly schema: z.ZodType | null
    readonly mediaType?: string
    readonly headers?: readonly string[]
  }
  /** Statuses of its problems beyond 401, 403 and 429. */
  readonly problems?: readonly (400 | 404 | 409)[]
}

/** What a handler is given: everything is validated. */
export interface RouteCall<P extends Shape, Q extends Shape, H extends Shape, B extends Shape> {
  readonly caller: Caller
  readonly params: Members<P>
  readonly query: Members<Q>
  readonly headers: Members<H>
  readonly body: Members<B>
  readonly request: Request
  /** Holds the request open while its answer is sent: aborts when the caller may no longer have it. */
  readonly held: () => AbortSignal
}

/** A contract with its handler. The handler's value is the JSON of the answer, or a whole answer. */
export interface RestRoute {
  readonly contract: Contract<Shape, Shape, Shape, Shape>
  readonly handle: (call: RouteCall<Shape, Shape, Shape, Shape>) => Promise<unknown>
}

/** Joins a contract with its handler, which is typed by it. */
export function route<
  P extends Shape = Record<never, never>,
  Q extends Shape = Record<never, never>,
  H extends Shape = Record<never, never>,
  B extends Shape = Record<never, never>,
>(contract: Contract<P, Q, H, B>, handle: (call: RouteCall<P, Q, H, B>) => Promise<unknown>): RestRoute {
  // The table of routes forgets the shapes; `validate` gives each handler what its own contract says.
  return { contract, handle } as unknown as RestRoute
}
