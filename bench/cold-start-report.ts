/** The report of `bench/cold-start.ts`: the phases of a cold start, and the shares of server, engine and worker. */

/** A call of the server to the container engine, or the start of a process; Unix times in ms. */
export interface Traced {
  readonly what: string
  readonly called: number
  readonly ended: number
}

/** One cold start; Unix times in ms. */
export interface Round {
  /** Times at which the client sent its request and received the response. */
  readonly sent: number
  readonly responded: number
  /** Time at which the server decided to start the worker, by its record in whole ms. */
  readonly decided: number
  /** Times at which the program of the worker began, asked for a job, received it, and sent the result. */
  readonly began: number
  readonly called: number
  readonly taken: number
  readonly posted: number
  readonly traced: readonly Traced[]
  readonly disturbance: Disturbance
}

/** Delay of the server by other processes. */
export interface Disturbance {
  /** Duration of a fixed loop right before the round, in ms. */
  readonly loop: number
  /**
   * Processor time of server and relay during the round, and their wait for a processor, in ms; null if the
   * system does not report it.
   */
  readonly busy: number | null
  readonly waited: number | null
}

/** Times of the same worker with a server that responds at once: they belong to the worker and the system alone. */
export interface Alone {
  /** From the start of a process to the start of its program. */
  readonly start: number
  /** From a take to its response, and from a result to its arrival. */
  readonly take: number
  readonly done: number
}

/** The name of the call that starts a container or process. */
const STARTS = /^(?:spawn|POST \/containers\/[^/]*\/start)$/

/** Prints the phases of a cold start, the shares of server, engine and worker, and how busy the machine was. */
export function printReport(form: string, rounds: readonly Round[], alone: readonly Alone[]): void {
  // The minimum is used: only the time that surely belongs to the worker may be subtracted from the server's share.
  const bare = { take: Math.min(...alone.map(({ take }) => take)), done: Math.min(...alone.map(({ done }) => done)) }
  const shares = rounds.map(round => roundShares(round, bare))
  console.log(
    `cold start of a TypeScript worker in ${form}, ${rounds.length} rounds; milliseconds, median (minimum - maximum)`,
  )
  for (const [name, value] of Object.entries(PHASES)) print(name, rounds.map(value))
  print('total', rounds.map(all))
  for (const call of callDurations(rounds)) print(`  of which ${call.name}`, call.took)
  const starter =
    form === 'a process' ? "the system's share: starting a process" : "the engine's share: its calls and the start"
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
    '  from its result to the response',
    shares.map(({ done }) => done),
  )
  printDisturbance(rounds)
}

/** Prints the time of the worker alone, which does not count as the server's share. */
export function printAlone(alone: readonly Alone[]): void {
  console.log(`the same worker with a server that responds at once, ${alone.length} rounds`)
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
  print('other load: they waited for a processor', of('waited'))
  print('other load: a fixed loop right before', of('loop'))
}

const PHASES: Readonly<Record<string, (round: Round) => number>> = {
  'request to the decision for a worker': round => round.decided - round.sent,
  'decision to the call that starts it': round => firstStart(round).called - round.decided,
  'that call to the begin of its program': round => round.began - firstStart(round).called,
  'begin to its first take': round => round.called - round.began,
  'take to its response': round => round.taken - round.called,
  'response to its result': round => round.posted - round.taken,
  'result to the response of the request': round => round.responded - round.posted,
}

/** The server's share: all time in which it neither waits for the engine nor for the worker. */
function roundShares(round: Round, bare: Pick<Alone, 'take' | 'done'>) {
  const start = firstStart(round)
  const called = coveredMs(callsBefore(round), round.sent, start.called)
  const beforeStart = start.called - round.sent - called
  const take = round.taken - round.called - bare.take
  const done = round.responded - round.posted - bare.done
  const engine = called + round.began - start.called
  const worker = round.called - round.began + (round.posted - round.taken) + bare.take + bare.done
  return { server: beforeStart + take + done, before: beforeStart, take, done, engine, worker }
}

function firstStart({ sent, traced }: Round): Traced {
  const start = traced.find(({ what: name, called }) => called >= sent && STARTS.test(name))
  if (start === undefined) throw new Error('the server did not start a worker in this round')
  return start
}

function callsBefore(round: Round): Traced[] {
  const start = firstStart(round)
  return round.traced.filter(({ called }) => called >= round.sent && called < start.called)
}

function callDurations(rounds: readonly Round[]): { name: string; took: number[] }[] {
  const took = new Map<string, number[]>()
  for (const round of rounds) {
    const sums = new Map<string, { count: number; ms: number }>()
    for (const { what: call, called, ended } of callsBefore(round)) {
      const { count, ms } = sums.get(call) ?? { count: 0, ms: 0 }
      sums.set(call, { count: count + 1, ms: ms + ended - called })
    }
    for (const [call, { count, ms }] of sums) {
      const name = `${count === 1 ? '' : `${count} x `}${call}`
      took.set(name, [...(took.get(name) ?? []), ms])
    }
  }
  return [...took].map(([name, values]) => ({ name, took: values }))
}

/** Part of a period in which calls were under way, perhaps several at once. */
function coveredMs(calls: readonly Traced[], from: number, to: number): number {
  let sum = 0
  let at = from
  for (const { called, ended } of [...calls].sort((a, b) => a.called - b.called)) {
    const [begin, end] = [Math.max(called, at), Math.min(ended, to)]
    if (end > begin) sum += end - begin
    at = Math.max(at, end)
  }
  return sum
}

function all({ sent, responded }: Round): number {
  return responded - sent
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
