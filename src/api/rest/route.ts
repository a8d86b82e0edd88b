import type { z } from '@hono/zod-openapi'
import type { Caller } from '../../core/accounts/permission.ts'
import type { ReportSave } from '../audited.ts'

/** A zod shape: schemas by member name. */
export type Shape = Readonly<Record<string, z.ZodType>>

/** The members of a shape after validation. */
export type Members<Of extends Shape> = { readonly [Name in keyof Of]: z.output<Of[Name]> }

/**
 * A rule over several members of a body, or one that a schema cannot express. It also runs when other members are
 * wrong: it gets the valid members and the names of all that were sent, and returns one sentence for each failure,
 * which starts with the path of the member.
 */
export type Rule<Of extends Shape> = (given: Partial<Members<Of>>, sent: ReadonlySet<string>) => readonly string[]

/** The JSON body that a route takes. */
export interface BodyContract<Of extends Shape> {
  readonly name: string
  readonly shape: Of
  readonly rules?: readonly Rule<Of>[]
  /** The rules as far as JSON Schema keywords can express them, for the OpenAPI document. */
  readonly keywords?: Readonly<Record<string, unknown>>
  /** Members that only the operator may give. */
  readonly operatorMembers?: readonly string[]
  /** Handling of properties that are not in the shape. Default: refuse them. */
  readonly unknown?: 'refused' | 'ignored'
  /** Maximum body in bytes. Default: 1 MiB. */
  readonly maxBytes?: number
}

/** Request and response of a route: the only source of validation, rights, the OpenAPI document and its page. */
export interface Contract<P extends Shape, Q extends Shape, H extends Shape, B extends Shape> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** Path with `{name}` for each parameter. */
  readonly path: string
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  /** Required right in management. `operator`: all rights of the operator's account. `open`: no key needed. */
  readonly level: 'read' | 'write' | 'operator' | 'open'
  /** True for a route that workers of apps may call, too; its handler shows them no more than they may use. */
  readonly forApps?: true
  /** True for a handler that reports the endpoint or template that it saves: the audit log then does not read it. */
  readonly reports?: true
  readonly params?: P
  readonly query?: Q
  readonly queryRules?: readonly Rule<Q>[]
  /** Request headers. */
  readonly headers?: H
  readonly body?: BodyContract<B>
  /** The success response. A null schema: no body. */
  readonly success: {
    readonly status: 200 | 201 | 204
    readonly schema: z.ZodType | null
    readonly mediaType?: string
    readonly headers?: readonly string[]
  }
  /** Error statuses besides 401, 403 and 429. */
  readonly problems?: readonly (400 | 404 | 409)[]
}

/** Validated input of a handler. */
export interface RouteCall<P extends Shape, Q extends Shape, H extends Shape, B extends Shape> {
  readonly caller: Caller
  readonly params: Members<P>
  readonly query: Members<Q>
  readonly headers: Members<H>
  readonly body: Members<B>
  readonly request: Request
  /** Registers the request as open while its response is sent. Aborts when the caller may no longer read it. */
  readonly held: () => AbortSignal
  readonly report: ReportSave
}

/** A contract with its handler. The handler returns the JSON of the response body, or a Response. */
export interface RestRoute {
  readonly contract: Contract<Shape, Shape, Shape, Shape>
  readonly handle: (call: RouteCall<Shape, Shape, Shape, Shape>) => Promise<unknown>
}

/** Joins a contract with its handler; the contract gives the handler its types. */
export function route<
  P extends Shape = Record<never, never>,
  Q extends Shape = Record<never, never>,
  H extends Shape = Record<never, never>,
  B extends Shape = Record<never, never>,
>(contract: Contract<P, Q, H, B>, handle: (call: RouteCall<P, Q, H, B>) => Promise<unknown>): RestRoute {
  // The table of routes has no shapes in its type; `validate` gives each handler the values of its own contract.
  return { contract, handle } as unknown as RestRoute
}
