import type { SeededRandom } from '../random.ts'

/** Behavior of a simulated HTTP server of a worker. Times count from its start. */
export interface WebBehavior {
  readonly name: string
  /** Time until it listens. */
  readonly bootMs: number
  /** Time for which it then responds to health checks with 204. */
  readonly initialMs: number
  /** Factor on the duration of its requests. */
  readonly slowness: number
  readonly crash: 'never' | 'at start' | 'in a request'
  /** True if it breaks some connections before the response. */
  readonly breaks: boolean
  /** True if it responds to some requests with 500. */
  readonly errs: boolean
  /** True if it never responds to some requests. */
  readonly hangs: boolean
  /** Beginning and duration of the time in which it refuses connections. */
  readonly refusesFromMs: number
  readonly refusesForMs: number
  /** True if its health checks still succeed in that time. */
  readonly refusesRequestsOnly: boolean
  /** Beginning and duration of the time in which it responds to health checks with 503; it still serves requests. */
  readonly unhealthyFromMs: number
  readonly unhealthyForMs: number
  readonly neverHealthy: boolean
  /** True if it ends on SIGTERM. Otherwise it must be killed. */
  readonly obeysTerm: boolean
  /** True if it finishes its requests before it ends on SIGTERM. */
  readonly graceful: boolean
}

type Traits = Partial<WebBehavior> & { readonly name: string }

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
  { name: 'deaf server', refusesFromMs: 4_000, refusesForMs: 9_000 },
  {
    name: 'deaf server with a good ear for health',
    refusesFromMs: 4_000,
    refusesForMs: 9_000,
    refusesRequestsOnly: true,
  },
  { name: 'server that is ill at times', unhealthyFromMs: 5_000, unhealthyForMs: 15_000 },
  { name: 'server that is never well', neverHealthy: true },
  { name: 'stubborn server', obeysTerm: false },
]

/** Draws the behavior of a new server. @param faultProbability probability of a faulty one */
export function drawWebBehavior(random: SeededRandom, faultProbability: number): WebBehavior {
  const traits = random.pick(random.chance(faultProbability) ? BAD : GOOD)
  return {
    bootMs: random.int(50, 1_500),
    initialMs: random.chance(0.3) ? random.int(100, 2_000) : 0,
    slowness: 1,
    crash: 'never',
    breaks: false,
    errs: false,
    hangs: false,
    neverHealthy: false,
    obeysTerm: true,
    graceful: true,
    refusesFromMs: 0,
    refusesForMs: 0,
    refusesRequestsOnly: false,
    unhealthyFromMs: 0,
    unhealthyForMs: 0,
    ...traits,
  }
}
