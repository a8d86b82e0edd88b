/** Sums of the tokens that workers report, by account, key, endpoint and model, in days of UTC. */
import type { EndpointId, KeyId, OwnerId } from '../ids.ts'
import type { TokenUsage } from './token-usage.ts'

/** Length of the spans in which tokens are summed. */
export const DAY_MS = 86_400_000

/** The day that an instant falls into, as the instant of its beginning. */
export function dayStart(atMs: number): number {
  return Math.floor(atMs / DAY_MS) * DAY_MS
}

/** Summed figures of requests, in the order in which they are stored. */
export const TOKEN_FIGURES = ['requests', 'measured', 'promptTokens', 'completionTokens', 'cachedTokens'] as const

/**
 * Sums over answered requests: `measured` of them reported their tokens. `cachedTokens` are a part of
 * `promptTokens`.
 */
export type TokenFigures = Readonly<Record<(typeof TOKEN_FIGURES)[number], number>>

/** The figures of no request. */
export const NO_TOKENS: TokenFigures = {
  requests: 0,
  measured: 0,
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
}

/** The sum of both. */
export function addTokens(a: TokenFigures, b: TokenFigures): TokenFigures {
  return {
    requests: a.requests + b.requests,
    measured: a.measured + b.measured,
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
  }
}

/** The figures of one answered request. @param usage null if its answer reported none */
export function tokensOfRequest(usage: TokenUsage | null): TokenFigures {
  if (usage === null) return { ...NO_TOKENS, requests: 1 }
  const { promptTokens, completionTokens, cachedTokens } = usage
  return { requests: 1, measured: 1, promptTokens, completionTokens, cachedTokens }
}

/** Whom, and to what, the figures of a request count. */
export interface TokenPlace {
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  /** Null for a request without a key, to an endpoint that needs none. */
  readonly keyId: KeyId | null
  /** The name that the answer gave; null without one. */
  readonly model: string | null
}

/** Figures of one place in one day. */
export interface TokenDay extends TokenPlace {
  readonly dayMs: number
  readonly figures: TokenFigures
}

/** Limit of names of models of one account and day; all further ones count as {@link OTHER_MODELS}. */
export const MAX_MODELS = 100
/** The name under which the models beyond {@link MAX_MODELS} count. */
export const OTHER_MODELS = '(other)'
