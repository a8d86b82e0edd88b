/** A call to an address that a client named. */
export interface OutboundRequest {
  /** http or https. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Aborts the call. */
  readonly signal: AbortSignal
  /** Whether private addresses and this machine are refused for this call; as all calls of the server unless given. */
  readonly publicOnly?: boolean
  /** True when the addresses of this machine are refused for this call, also those that are public; false when left out. */
  readonly notThisMachine?: boolean
  /** Called before a connection is made, with whether all addresses of the name are public; not called when there is none. */
  readonly onTarget?: (isPublic: boolean) => void
}

/** The status of the response, or why there is none, as a phrase such as "connect ECONNREFUSED 127.0.0.1:80". */
export type OutboundResult = { readonly status: number } | { readonly problem: string }

/**
 * Calls addresses that clients name, which therefore cannot be trusted. Link-local addresses and those where clouds keep
 * the credentials of a machine are never called, whatever name stands for them. Redirects are not followed, and little of
 * a response's body is read.
 */
export interface Outbound {
  /** Posts once. Never throws. */
  post(request: OutboundRequest): Promise<OutboundResult>
}
