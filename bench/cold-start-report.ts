/** What the rounds of `bench/cold-start.ts` came to, by who spent the time, for people to read. */

/** A call of the container engine by the server, or the start of a process; Unix time in ms. */
export interface Traced {
  readonly what: string
  readonly asked: number
  readonly ended: number
}

/** One cold start; Unix times in ms. */
export interface Round {
  /** The client sent its request, and had the answer. */
  readonly sent: number
  readonly answered: number
  /** The worker was decided on, by the server's record of it in whole ms. */
  readonly decided: number
  /** The worker's program began, asked for a job, had it, and sent the result. */
  readonly began: number
  readonly asked: number
  readonly taken: number
  readonly posted: number
  readonly traced: readonly Traced[]
  readonly disturbance: Disturbance
}

/** How far others kept the server from the processor. */
export interface Disturbance {
  /** How long a loop of known work took right before, in ms. */
  readonly loop: number
  /** Processor time of server and relay during the round, and how long they waited for a processor; ms, null where it is not told. */
  readonly busy: number | null
  readonly waited: number | null
}

/** The same worker with a server that answers at once: all of it is the worker's and the system's time. */
export interface Alone {
  /** From the wish for a process to the begin of its program. */
  readonly start: number
  /** From a take to its answer, and from a result to its arrival. */
  readonly take: number
  readonly done: number
}

/** Which of the calls before a worker begins is the one that starts it. */
const STARTS = /^(?:spawn|POST \/containers\/[^/]*\/start)$/

/** Prints the phases of a cold start, the shares of server, engine and worker, and how far the machine was disturbed. */
export function printReport(what: string, rounds: readonly Round[], alone: readonly Alone[]): void {
  // The least, so that no more is taken off the server's share than is the worker's.
  const bare = { take: Math.min(...alone.map(({ take }) => take)), done: Math.min(...alone.map(({ done }) => done)) }
  const shares = rounds.map(round => sharesOf(round, bare))
  console.log(
    `cold start of a TypeScript worker in ${what}, ${rounds.length} rounds; milliseconds, median (least - most)`,
  )
  for (const [name, value] of Object.entries(PHASES)) print(name, rounds.map(value))
  print('all of it', rounds.map(all))
  for (const call of callsOf(rounds)) print(`  of it ${call.name}`, call.took)
  const starter =
    what === 'a process' ? "the system's share: starting a process" : "the engine's share: its calls and the start"
  print(
    starter,
    shares.map(({ engine }) => engine),
  )
  print(
    "the worker's share",
    shares.map(({ worker }) => worker),
  )
  print(
    "THE SERVER'S OWN SHARE",
    shares.map(({ server }) => server),
  )
  print(
    '  before the worker is started',
    shares.map(({ before }) => before),
  )
  print(
    '  from its take to the job',
    shares.map(({ take }) => take),
  )
  print(
    '  from its result to the answer',
    shares.map(({ done }) => done),
  )
  printDisturbance(rounds)
}

/** Prints what the worker takes alone, which is no part of the server's share. */
export function printAlone(alone: readonly Alone[]): void {
  console.log(`the same worker with a server that answers at once, ${alone.length} rounds`)
  print(
    'starting its process',
    alone.map(({ start }) => start),
  )
  print(
    'its take',
    alone.map(({ take }) => take),
  )
  print(
    'its result',
    alone.map(({ done }) => done),
  )
}

function printDisturbance(rounds: readonly Round[]): void {
  const of = (part: keyof Disturbance) => rounds.flatMap(({ disturbance }) => disturbance[part] ?? [])
  print('processor time of server and relay', of('busy'))
  print('disturbance: they waited for a processor', of('waited'))
  print('disturbance: a loop of known work, right before', of('loop'))
}

const PHASES: Readonly<Record<string, (round: Round) => number>> = {
  'request to the decision for a worker': round => round.decided - round.sent,
  'decision to the call that starts it': round => startOf(round).asked - round.decided,
  'that call to the begin of its program': round => round.began - startOf(round).asked,
  'begin to its first take': round => round.asked - round.began,
  'take to its answer': round => round.taken - round.asked,
  'answer to its result': round => round.posted - round.taken,
  'result to the answer of the request': round => round.answered - round.posted,
}

/** The server has all that is neither the engine's, while it waits for that, nor the worker's. */
function sharesOf(round: Round, bare: Pick<Alone, 'take' | 'done'>) {
  const start = startOf(round)
  const called = covered(callsBefore(round), round.sent, start.asked)
  const before = start.asked - round.sent - called
  const take = round.taken - round.asked - bare.take
  const done = round.answered - round.posted - bare.done
  const engine = called + round.began - start.asked
  const worker = round.asked - round.began + (round.posted - round.taken) + bare.take + bare.done
  return { server: before + take + done, before, take, done, engine, worker }
}

function startOf({ sent, traced }: Round): Traced {
  const start = traced.find(({ what, asked }) => asked >= sent && STARTS.test(what))
  if (start === undefined) throw new Error('the server did not start a worker in this round')
  return start
}

function callsBefore(round: Round): Traced[] {
  const start = startOf(round)
  return round.traced.filter(({ asked }) => asked >= round.sent && asked < start.asked)
}

function callsOf(rounds: readonly Round[]): { name: string; took: number[] }[] {
  const took = new Map<string, number[]>()
  for (const round of rounds) {
    const sums = new Map<string, { count: number; ms: number }>()
    for (const { what, asked, ended } of callsBefore(round)) {
      const { count, ms } = sums.get(what) ?? { count: 0, ms: 0 }
      sums.set(what, { count: count + 1, ms: ms + ended - asked })
    }
    for (const [what, { count, ms }] of sums) {
      const name = `${count === 1 ? '' : `${count} x `}${what}`
      took.set(name, [...(took.get(name) ?? []), ms])
    }
  }
  return [...took].map(([name, values]) => ({ name, took: values }))
}

/** How much of a time is covered by calls, of which several may be under way at once. */
function covered(calls: readonly Traced[], from: number, to: number): number {
  let sum = 0
  let at = from
  for (const { asked, ended } of [...calls].sort((a, b) => a.asked - b.asked)) {
    const [begin, end] = [Math.max(asked, at), Math.min(ended, to)]
    if (end > begin) sum += end - begin
    at = Math.max(at, end)
  }
  return sum
}

function all({ sent, answered }: Round): number {
  return answered - sent
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function print(name: string, values: readonly number[]): void {
  if (values.length === 0) return
  const parts = [median(values), Math.min(...values), Math.max(...values)].map(value => value.toFixed(1))
  console.log(`  ${name.padEnd(60)} ${parts[0]} (${parts[1]} - ${parts[2]})`)
}
