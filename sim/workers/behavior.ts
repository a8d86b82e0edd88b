import type { SeededRandom } from '../random.ts'

/** Behavior of a simulated worker. */
export interface Behavior {
  readonly name: string
  /**
   * The Python SDK drops a result when it cannot reach the server, its old version has no stop poll, its version 2
   * runs hooks, and our SDK keeps retrying.
   */
  readonly sdk: 'python' | 'old python' | 'python 2' | 'runyard'
  /**
   * Outcome of the hooks that run before its handler, while it asks for jobs already. `in silence` when its
   * output does not report it.
   */
  readonly hooks: 'none' | 'succeed' | 'fail' | 'fail in silence'
  /** Maximum number of jobs at a time. */
  readonly concurrency: number
  /** Factor on the duration of its jobs. */
  readonly slowness: number
  /** Time from its start to its first request. */
  readonly bootMs: number
  readonly crash: 'never' | 'at start' | 'with a job' | 'in a job' | 'after a post'
  /** Number of times it posts each result. */
  readonly posts: 0 | 1 | 2
  /** True if it stops a job on request. Otherwise it runs the job to its end and posts the result. */
  readonly obeysStops: boolean
  /** True if it ends on SIGTERM. Otherwise it must be killed. */
  readonly obeysTerm: boolean
  /** True if it requests its replacement after every third job. */
  readonly refreshes: boolean
  /**
   * True if its handler blocks the loop: while one job runs, the others wait and no response is read. Pings continue.
   */
  readonly blocks: boolean
  /** True if it loses a job while it runs, takes others, and posts the result in the end. */
  readonly forgets: boolean
  /** Number of jobs after which it stops taking jobs and only pings. */
  readonly zombieAfter: number
  /** True if its pings continue after its end, with the jobs that it had. */
  readonly orphanPings: boolean
  /** True if it sends a progress update after the result. */
  readonly lateProgress: boolean
}

type Traits = Partial<Behavior> & { readonly name: string }

const GOOD: readonly Traits[] = [
  { name: 'normal' },
  { name: 'old', sdk: 'old python' },
  { name: 'insistent', sdk: 'runyard' },
  { name: 'batch', concurrency: 4 },
  { name: 'insistent batch', sdk: 'runyard', concurrency: 3 },
  { name: 'refreshing', refreshes: true },
  { name: 'gossiping', lateProgress: true },
  { name: 'loading', sdk: 'python 2', hooks: 'succeed', concurrency: 2 },
]

const BAD: readonly Traits[] = [
  { name: 'slow', slowness: 6 },
  { name: 'crashing', crash: 'in a job', orphanPings: true },
  { name: 'crashing in a batch', crash: 'in a job', concurrency: 4 },
  { name: 'crashing with a job', crash: 'with a job' },
  { name: 'stillborn', crash: 'at start' },
  { name: 'never ready', bootMs: 1_000_000 },
  { name: 'dying', crash: 'after a post', orphanPings: true },
  { name: 'late', slowness: 40, obeysStops: false },
  { name: 'silent', posts: 0, obeysStops: false },
  { name: 'doubling', posts: 2 },
  { name: 'forgetful', forgets: true },
  { name: 'blocked', blocks: true, concurrency: 4, slowness: 2 },
  { name: 'zombie', zombieAfter: 1 },
  { name: 'not starting', sdk: 'python 2', hooks: 'fail', concurrency: 2 },
  { name: 'not starting in silence', sdk: 'python 2', hooks: 'fail in silence', concurrency: 2 },
  { name: 'stubborn', obeysStops: false, obeysTerm: false, slowness: 2 },
]

/** Draws the behavior of a new worker. @param faultProbability probability of a faulty one */
export function drawBehavior(random: SeededRandom, faultProbability: number): Behavior {
  const traits = random.pick(random.chance(faultProbability) ? BAD : GOOD)
  return {
    sdk: 'python',
    hooks: 'none',
    concurrency: 1,
    slowness: 1,
    bootMs: random.int(100, 2_500),
    crash: 'never',
    posts: 1,
    obeysStops: true,
    obeysTerm: true,
    refreshes: false,
    blocks: false,
    forgets: false,
    zombieAfter: Number.POSITIVE_INFINITY,
    orphanPings: false,
    lateProgress: random.chance(0.2),
    ...traits,
  }
}
