/**
 * Records the pauses of a server from inside, as its own account: Node loads it before the server (`--import`). At
 * its end the server writes them into the file of RUNYARD_PAUSES. A pause of the event loop that nothing else fills
 * gets the function that ran most in it, by the samples of a profile.
 */
import { openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector'
import { createRequire } from 'node:module'
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { isMainThread } from 'node:worker_threads'
import type { Pause } from './pauses.ts'

/** Shortest pause that is recorded, in milliseconds. */
const SHORTEST_MS = 0.5
/** Shortest pause of the event loop, and the interval at which it is looked for. */
const LOOP = { shortestMs: 3, intervalMs: 1 }
/** Shortest transaction of PostgreSQL that is recorded: the event loop goes on meanwhile. */
const SHORTEST_QUERY_MS = 5
const SAMPLING_US = 500
/** Offset of the number of checkpointed frames in the index of a write-ahead log. */
const CHECKPOINTED_OFFSET = 96
/** Limit of recorded pauses. */
const MAX_PAUSES = 500_000

function record(target: string): void {
  const pauses: Pause[] = []
  const add = (cause: string, fromMs: number, toMs: number) => {
    if (pauses.length < MAX_PAUSES) pauses.push({ cause, fromMs, toMs })
  }
  watchCollections(add)
  watchSqlite(add)
  watchPostgres(add)
  const profile = startProfile()
  const stalls = watchLoop()
  process.once('exit', () => {
    const samples = profile()
    for (const stall of stalls) {
      const filledMs = pauses.reduce((sum, pause) => sum + overlapMs(pause, stall), 0)
      const ms = stall.toMs - stall.fromMs
      if (filledMs < ms / 2) pauses.push({ ...stall, cause: stall.waitedMs > ms / 2 ? 'no processor' : samples(stall) })
    }
    writeFileSync(target, JSON.stringify(pauses))
  })
}

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function overlapMs(a: Omit<Pause, 'cause'>, b: Omit<Pause, 'cause'>): number {
  return Math.max(0, Math.min(a.toMs, b.toMs) - Math.max(a.fromMs, b.fromMs))
}

type Add = (cause: string, fromMs: number, toMs: number) => void

function watchCollections(add: Add): void {
  const offsetMs = nowMs() - performance.now()
  const { NODE_PERFORMANCE_GC_MAJOR, NODE_PERFORMANCE_GC_MINOR } = constants
  const names = new Map([
    [NODE_PERFORMANCE_GC_MAJOR, 'collection of old objects'],
    [NODE_PERFORMANCE_GC_MINOR, 'collection of young objects'],
  ])
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) {
      const { startTime, duration, detail } = entry as PerformanceEntry & { readonly detail: { readonly kind: number } }
      const name = names.get(detail.kind) ?? 'other collection'
      if (duration >= SHORTEST_MS) add(name, startTime + offsetMs, startTime + offsetMs + duration)
    }
  }).observe({ entryTypes: ['gc'] })
}

/** Commits, commits with a checkpoint in them, and other statements of the embedded database in this thread. */
function watchSqlite(add: Add): void {
  const checkpoints = new Checkpoints()
  const { run, all, exec } = { ...methodsOf(StatementSync.prototype), exec: DatabaseSync.prototype.exec }
  const note = (sql: string, fromMs: number) => {
    const isCommit = sql === 'COMMIT'
    const hasCheckpoint = isCommit && checkpoints.moved()
    const toMs = nowMs()
    if (toMs - fromMs < SHORTEST_MS) return
    add(hasCheckpoint ? 'commit with a checkpoint' : isCommit ? 'commit' : statementName(sql), fromMs, toMs)
  }
  const timed = (original: (...args: never[]) => unknown) =>
    function (this: StatementSync, ...args: never[]): unknown {
      const fromMs = nowMs()
      try {
        return original.apply(this, args)
      } finally {
        note(this.sourceSQL, fromMs)
      }
    }
  Object.assign(StatementSync.prototype, { run: timed(run), all: timed(all) })
  Object.assign(DatabaseSync.prototype, {
    exec(this: DatabaseSync, sql: string): void {
      const fromMs = nowMs()
      try {
        exec.call(this, sql)
      } finally {
        checkpoints.follow(this)
        note(sql, fromMs)
      }
    },
  })
}

function methodsOf({ run, all }: StatementSync): {
  run: (...args: never[]) => unknown
  all: (...args: never[]) => unknown
} {
  return { run, all }
}

function statementName(sql: string): string {
  const words = sql.trim().split(/\s+/, 60)
  const table = words[words.findIndex(word => /^(?:from|into|update)$/i.test(word)) + 1] ?? ''
  return `statement: ${words[0]?.toUpperCase()} ${table}`
}

/** The progress of checkpoints of one database, by the index of its write-ahead log. */
class Checkpoints {
  /** Never closed: that would end the locks of this process on the file. */
  #index: number | null = null
  #latest = 0
  readonly #bytes = Buffer.alloc(4)

  /** Follows the first database that has a write-ahead log. */
  follow(database: DatabaseSync): void {
    const location = this.#index === null ? database.location() : null
    if (location === null) return
    try {
      this.#index = openSync(`${location}-shm`, 'r')
    } catch {
      // It has no write-ahead log yet.
    }
  }

  /** True if a checkpoint was made since the last call. */
  moved(): boolean {
    if (this.#index === null) return false
    readSync(this.#index, this.#bytes, 0, 4, CHECKPOINTED_OFFSET)
    const frames = this.#bytes.readUInt32LE()
    // A log that begins again has none.
    const hasMoved = frames > 0 && frames !== this.#latest
    this.#latest = frames
    return hasMoved
  }
}

/** Transactions of PostgreSQL, from their first message to their last. The event loop does not wait for them. */
function watchPostgres(add: Add): void {
  const { Client } = createRequire(import.meta.url)('pg') as typeof import('pg')
  const query = Client.prototype.query as (this: unknown, ...args: unknown[]) => unknown
  Object.assign(Client.prototype, {
    query(this: unknown, ...args: unknown[]): unknown {
      const fromMs = nowMs()
      const ended = () => {
        const toMs = nowMs()
        if (toMs - fromMs >= SHORTEST_QUERY_MS) add('transaction of PostgreSQL', fromMs, toMs)
      }
      const [asked] = args
      if (isPipeline(asked)) asked.done.then(ended, ended)
      return query.apply(this, args)
    },
  })
}

function isPipeline(asked: unknown): asked is { readonly done: Promise<unknown> } {
  return typeof asked === 'object' && asked !== null && 'done' in asked && asked.done instanceof Promise
}

/** A time in which the event loop did not turn. */
interface Stall {
  readonly fromMs: number
  readonly toMs: number
  /** Part of it in which this thread could run and had no processor. */
  readonly waitedMs: number
}

function watchLoop(): readonly Stall[] {
  const stalls: Stall[] = []
  let latestMs = nowMs()
  let latestWaitedMs = waitedForProcessorMs()
  setInterval(() => {
    const ms = nowMs()
    const waitedMs = waitedForProcessorMs()
    if (ms - latestMs >= LOOP.intervalMs + LOOP.shortestMs && stalls.length < MAX_PAUSES)
      stalls.push({ fromMs: latestMs, toMs: ms, waitedMs: waitedMs - latestWaitedMs })
    latestMs = ms
    latestWaitedMs = waitedMs
  }, LOOP.intervalMs).unref()
  return stalls
}

/** Time in which the main thread could run and had no processor, since its start. */
function waitedForProcessorMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
}

/** Names of V8 for samples outside of functions. */
const OUTSIDE: Readonly<Record<string, string>> = {
  '(program)': 'program of Node',
  '(idle)': 'wait for events',
  '(garbage collector)': 'collection, several',
  '(root)': 'program of Node',
}

/** Starts the profile. @returns its end, with the function of the server that ran most in a time */
function startProfile(): () => (time: Omit<Pause, 'cause'>) => string {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.setSamplingInterval', { interval: SAMPLING_US })
  session.post('Profiler.start')
  return () => {
    let profile: Profiler.Profile | null = null
    session.post('Profiler.stop', (_, result) => {
      profile = result?.profile ?? null
    })
    return profile === null ? () => 'unknown' : new Samples(profile).busiest
  }
}

/** The samples of a profile by their times. */
class Samples {
  readonly #names = new Map<number, string>()
  readonly #ids: readonly number[]
  readonly #atMs: number[] = []

  constructor({ nodes, samples = [], timeDeltas = [], startTime }: Profiler.Profile) {
    this.#ids = samples
    let us = startTime
    for (const delta of timeDeltas) {
      us += delta
      this.#atMs.push(us / 1_000)
    }
    const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id] as const)))
    const byId = new Map(nodes.map(node => [node.id, node]))
    for (const { id } of nodes) {
      let own = byId.get(id)
      while (own !== undefined && !own.callFrame.url.includes('/src/')) own = byId.get(parents.get(own.id) ?? -1)
      const { functionName, url } = (own ?? byId.get(id)!).callFrame
      const name = `function: ${functionName || 'without a name'} ${url.replace(/^.*\/src\//, '')}`
      this.#names.set(id, OUTSIDE[functionName] ?? name.trim())
    }
  }

  /** The function of the server of most samples in a time, or what V8 names instead. */
  readonly busiest = ({ fromMs, toMs }: Omit<Pause, 'cause'>): string => {
    const counts = new Map<string, number>()
    for (let at = firstAfter(this.#atMs, fromMs); at < this.#atMs.length && this.#atMs[at]! < toMs; at += 1) {
      const name = this.#names.get(this.#ids[at]!) ?? 'unknown'
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 'unknown'
  }
}

function firstAfter(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! > value) high = middle
    else low = middle + 1
  }
  return low
}

const file = process.env.RUNYARD_PAUSES
if (file !== undefined && isMainThread && process.argv.includes('serve')) record(file)
