import type { SeededRandom } from '../random.ts'

/** How a simulated server behaves. Times count from its start. */
export interface WebBehaviour {
  readonly name: string
  /** Until it listens. */
  readonly bootMs: number
  /** For how long it then answers 204 to health checks. */
  readonly initialMs: number
  /** Its answers take so many times longer. */
  readonly slowness: number
  readonly crash: 'never' | 'at start' | 'in a request'
  /** Breaks some connections before it answers. */
  readonly breaks: boolean
  /** Answers some requests with 500. */
  readonly errs: boolean
  /** Never answers some requests. */
  readonly hangs: boolean
  /** Refuses connections for a while. */
  readonly deafFromMs: number
  readonly deafForMs: number
  /** Whether its health checks are answered all the same. */
  readonly deafToRequestsOnly: boolean
  /** Answers 503 to health checks for a while, and serves on. */
  readonly illFromMs: number
  readonly illForMs: number
  readonly neverWell: boolean
  /** Ends when it is asked to; else it has to be killed. */
  readonly obeysTerm: boolean
  /** Ends after its last request, when it is asked to; else in the middle of them. */
  readonly graceful: boolean
}

type Traits = Partial<WebBehaviour> & { readonly name: string }

const GOOD: readonly Traits[] = [
  { name: 'plain server' },
  { name: 'slow starter', initialMs: 4_000 },
  { name: 'abrupt server', graceful: false },
]

const BAD: readonly Traits[] = [
  { name: 'slow server', slowness: 6 },
  { name: 'crashing server', crash: 'in a request' },
  { name: 'stillborn server', crash: 'at start' },
  { name: 'breaking server', breaks: true },
  { name: 'erring server', errs: true },
  { name: 'hanging server', hangs: true },
  { name: 'deaf server', deafFromMs: 4_000, deafForMs: 9_000 },
  { name: 'deaf server with a good ear for health', deafFromMs: 4_000, deafForMs: 9_000, deafToRequestsOnly: true },
  { name: 'server that is ill at times', illFromMs: 5_000, illForMs: 15_000 },
  { name: 'server that is never well', neverWell: true },
  { name: 'stubborn server', obeysTerm: false },
]

/** Draws what kind of server one will be. @param badness the probability of one that misbehaves */
export function drawWebBehaviour(random: SeededRandom, badness: number): WebBehaviour {
  const traits = random.pick(random.chance(badness) ? BAD : GOOD)
  return {
    bootMs: random.int(50, 1_500),
    initialMs: random.chance(0.3) ? random.int(100, 2_000) : 0,
    slowness: 1,
    crash: 'never',
    breaks: false,
    errs: false,
    hangs: false,
    neverWell: false,
    obeysTerm: true,
    graceful: true,
    deafFromMs: 0,
    deafForMs: 0,
    deafToRequestsOnly: false,
    illFromMs: 0,
    illForMs: 0,
    ...traits,
  }
}
