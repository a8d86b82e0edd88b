/** A call to an address that a client named. */
export interface OutboundRequest {
  /** http or https. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Aborts the call. */
  readonly signal: AbortSignal
  /** True to refuse private addresses and this machine for this call; by default as for all calls of the server. */
  readonly publicOnly?: boolean
  /** True to refuse all addresses of this machine for this call, public ones too; false by default. */
  readonly notThisMachine?: boolean
  /** Called before a connection is made, with true if all addresses of the name are public; not called without any. */
  readonly onTarget?: (isPublic: boolean) => void
}

/**
 * The status of the response, or the reason of the failure, as a phrase such as "connect ECONNREFUSED 127.0.0.1:80".
 */
export type OutboundResult = { readonly status: number } | { readonly problem: string }

/**
 * Calls addresses that clients name, which therefore cannot be trusted. Link-local addresses and those where clouds
 * keep the credentials of a machine are never called, whatever name stands for them. Redirects are not followed, and
 * little of a response's body is read.
 */
export interface Outbound {
  /** Posts once. Never throws. */
  post(request: OutboundRequest): Promise<OutboundResult>
}
