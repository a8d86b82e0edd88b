/** Time in which a login of a command line has to be approved, and its key to be taken, in milliseconds. */
export const LOGIN_MS = 10 * 60_000

/** Limits of open logins: of one address, and of all; a new one ends the oldest. */
export const MAX_LOGINS = { ofAddress: 10, ofAll: 1_000 } as const

/** Random bytes of the id of a login: whoever has the id gets the key. */
export const LOGIN_ID_BYTES = 16

/** Limit of the shown part of a client's own description. */
export const MAX_LOGIN_AGENT = 200

/**
 * State of a login, in the words of RunPod's clients: `CONSUMED` once its key was handed out, which happens once.
 */
export type LoginStatus = 'PENDING' | 'APPROVED' | 'CONSUMED' | 'DENIED' | 'EXPIRED'

/** A program that asks for a key, which a person approves in the console. */
export interface LoginRequest {
  readonly id: string
  readonly status: LoginStatus
  /** Address that the program asked from. */
  readonly address: string
  /** Name that the program gives itself, which proves nothing; empty without one. */
  readonly agent: string
  readonly askedAtMs: number
  readonly expiresAtMs: number
}

/** Visible ASCII characters of a program's description of itself, up to {@link MAX_LOGIN_AGENT}. */
export function shownAgent(agent: string): string {
  return agent.replaceAll(/[^\x20-\x7e]/g, '').slice(0, MAX_LOGIN_AGENT)
}
