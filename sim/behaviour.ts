import type { SeededRandom } from './random.ts'

/** How a simulated worker goes about its work. */
export interface Behaviour {
  readonly name: string
  /** The Python SDK gives a result up when it cannot reach the server; ours insists. */
  readonly sdk: 'python' | 'runyard'
  /** How many jobs it runs at once. */
  readonly concurrency: number
  /** Its jobs take so many times longer. */
  readonly slowness: number
  /** From its start to its first request. */
  readonly bootMs: number
  readonly crash: 'never' | 'at start' | 'in a job' | 'after a post'
  /** How often it posts a result. */
  readonly posts: 0 | 1 | 2
  /** Stops a job when it is told to; else it works on and posts all the same. */
  readonly obeysStops: boolean
  /** Ends when it is asked to; else it has to be killed. */
  readonly obeysTerm: boolean
  /** Asks to be replaced after each job. */
  readonly refreshes: boolean
}

type Traits = Partial<Behaviour> & { readonly name: string }

const GOOD: readonly Traits[] = [
  { name: 'normal' },
  { name: 'insistent', sdk: 'runyard' },
  { name: 'batch', concurrency: 4 },
  { name: 'refreshing', refreshes: true },
]

const BAD: readonly Traits[] = [
  { name: 'slow', slowness: 6 },
  { name: 'crashing', crash: 'in a job' },
  { name: 'crashing in a batch', crash: 'in a job', concurrency: 4 },
  { name: 'stillborn', crash: 'at start' },
  { name: 'dying', crash: 'after a post' },
  { name: 'late', slowness: 40, obeysStops: false },
  { name: 'silent', posts: 0, obeysStops: false },
  { name: 'doubling', posts: 2 },
  { name: 'stubborn', obeysStops: false, obeysTerm: false, slowness: 2 },
]

/** Draws what kind of worker one will be. @param badness the probability of one that misbehaves */
export function drawBehaviour(random: SeededRandom, badness: number): Behaviour {
  const traits = random.pick(random.chance(badness) ? BAD : GOOD)
  return {
    ...{ sdk: 'python', concurrency: 1, slowness: 1, bootMs: random.int(100, 2_500), crash: 'never', posts: 1 },
    ...{ obeysStops: true, obeysTerm: true, refreshes: false },
    ...traits,
  }
}
