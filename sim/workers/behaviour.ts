import type { SeededRandom } from '../random.ts'

/** How a simulated worker goes about its work. */
export interface Behaviour {
  readonly name: string
  /** The Python SDK gives a result up when it cannot reach the server, the old one has no stop poll; ours insists. */
  readonly sdk: 'python' | 'old python' | 'runyard'
  /** How many jobs it runs at once. */
  readonly concurrency: number
  /** Its jobs take so many times longer. */
  readonly slowness: number
  /** From its start to its first request. */
  readonly bootMs: number
  readonly crash: 'never' | 'at start' | 'with a job' | 'in a job' | 'after a post'
  /** How often it posts a result. */
  readonly posts: 0 | 1 | 2
  /** Stops a job when it is told to; else it works on and posts all the same. */
  readonly obeysStops: boolean
  /** Ends when it is asked to; else it has to be killed. */
  readonly obeysTerm: boolean
  /** Asks to be replaced after each third job. */
  readonly refreshes: boolean
  /** Its handler blocks the loop: while one job runs the others wait, and no answer is read. Pings go on. */
  readonly blocks: boolean
  /** Lets go of a job in the middle of it, asks for others, and posts its result in the end. */
  readonly forgets: boolean
  /** After so many jobs it asks for no more, and pings for ever. */
  readonly zombieAfter: number
  /** Its pings go on after its end, with the jobs that it had. */
  readonly orphanPings: boolean
  /** Sends a progress update after the result, too. */
  readonly lateProgress: boolean
}

type Traits = Partial<Behaviour> & { readonly name: string }

const GOOD: readonly Traits[] = [
  { name: 'normal' },
  { name: 'old', sdk: 'old python' },
  { name: 'insistent', sdk: 'runyard' },
  { name: 'batch', concurrency: 4 },
  { name: 'insistent batch', sdk: 'runyard', concurrency: 3 },
  { name: 'refreshing', refreshes: true },
  { name: 'gossiping', lateProgress: true },
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
  { name: 'stubborn', obeysStops: false, obeysTerm: false, slowness: 2 },
]

/** Draws what kind of worker one will be. @param badness the probability of one that misbehaves */
export function drawBehaviour(random: SeededRandom, badness: number): Behaviour {
  const traits = random.pick(random.chance(badness) ? BAD : GOOD)
  return {
    sdk: 'python',
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
