/**
 * Writes per second of the SQLite store, inline and in a thread, on this disk and on an emulated slow one, and the
 * delay of an unrelated timer in that time: `bin/node bench/store.ts [folder on the disk to measure]`. With
 * RUNYARD_TEST_POSTGRES, the address of a PostgreSQL, also those of the store on PostgreSQL, in a schema that is
 * dropped afterwards: without a lease, and as a server does that asserts its epoch with each write.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { withSchema } from '../scripts/torture/database.ts'
import type { EndpointId, WorkerId } from '../src/core/ids.ts'
import type { Job } from '../src/core/jobs/job.ts'
import type { Store } from '../src/ports/store/store.ts'
import { openPostgresStore } from '../src/store/engines/postgres.ts'
import { measureFlushMs, type SqliteStore, type StoreHost, sqliteStoreOn } from '../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../src/store/engines/sqlite-engine.ts'
import { gatherInMicrotasks, InlineHost } from '../src/store/engines/sqlite-inline.ts'
import { ThreadHost } from '../src/store/engines/thread-host.ts'
import { openPostgresLease } from '../src/system/coordination/postgres-lease.ts'
import { makeEndpoint, makeTemplate, makeWorker, makeJob as storedJobOf, TPL } from '../test/contract/store-world.ts'
import { SLOW_FLUSH_MS, slowCommit } from './store-slow-commit.ts'

const RUN_MS = 1_500
const WARM_UP_MS = 300
const CONCURRENCIES = [1, 16, 64]
const endpointId = 'e' as EndpointId
const input = JSON.stringify({ input: { prompt: 'x'.repeat(1_000) } })

interface Variant {
  readonly name: string
  readonly host: StoreHost
  readonly slow: boolean
  readonly gather?: (flush: () => void) => void
}

const variants: Variant[] = [false, true].flatMap(slow => [
  { name: 'inline', host: 'inline' as const, slow },
  {
    name: 'inline, gathered until setImmediate',
    host: 'inline' as const,
    slow,
    gather: (flush: () => void) => void setImmediate(flush),
  },
  { name: 'thread', host: 'thread' as const, slow },
])

async function open({ host, slow, gather }: Variant, file: string): Promise<SqliteStore> {
  if (host === 'thread') {
    const program = new URL('./store-slow-thread.ts', import.meta.url)
    return sqliteStoreOn(await (slow ? ThreadHost.open({ file }, program) : ThreadHost.open({ file })))
  }
  const engine = new SqliteEngine({ file, ...(slow ? { aroundCommit: slowCommit } : {}) })
  return sqliteStoreOn(new InlineHost(engine, gather ?? gatherInMicrotasks))
}

async function fill(store: Store): Promise<void> {
  await store.templates.insert(makeTemplate(TPL))
  await store.endpoints.insert(makeEndpoint(endpointId, { workersMax: 1_000 }))
  for (let n = 0; n < 64; n += 1) {
    const id = `w${n}` as WorkerId
    await store.workers.insert(makeWorker(id, { endpointId }), id)
    await store.workers.seen(id, 1, null, 0)
  }
}

function numberedJob(n: number): Job {
  const id = `${String(n).padStart(9, '0')}-4c1b-4a5e-9f0e-0123456789ab`
  return storedJobOf(id, { endpointId, input, position: n, queuedAtMs: n, expiresAtMs: 1e13 })
}

interface Measured {
  readonly perSecond: number
  /** Delay of a timer of 1 ms: median and 99th percentile. */
  readonly lateMs: readonly [number, number]
}

/**
 * Runs `step` in several loops at once for a while; each step counts as one operation. Each step begins in its own
 * turn of the event loop, like requests on different sockets.
 */
async function measure(loops: number, step: (loop: number) => Promise<void>): Promise<Measured> {
  const late: number[] = []
  let counting = false
  let count = 0
  let stop = false
  let due = performance.now() + 1
  let ticker = setTimeout(tick, 1)
  function tick() {
    if (counting) late.push(Math.max(0, performance.now() - due))
    due = performance.now() + 1
    ticker = setTimeout(tick, 1)
  }
  const loop = async (n: number) => {
    while (!stop) {
      await new Promise(resolve => setImmediate(resolve))
      await step(n)
      if (counting) count += 1
    }
  }
  const running = Array.from({ length: loops }, (_, n) => loop(n))
  await delay(WARM_UP_MS)
  counting = true
  const start = performance.now()
  await delay(RUN_MS)
  const took = performance.now() - start
  stop = true
  clearTimeout(ticker)
  await Promise.all(running)
  late.sort((a, b) => a - b)
  const at = (share: number) => late[Math.floor(late.length * share)] ?? Number.NaN
  return { perSecond: (count * 1_000) / took, lateMs: [at(0.5), at(0.99)] }
}

function delay(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

let sequence = 0

async function insert(store: Store): Promise<void> {
  sequence += 1
  await store.jobs.insert(numberedJob(sequence))
}

async function claimAndFinish(store: Store, loop: number): Promise<void> {
  const workerId = `w${loop}` as WorkerId
  const [job] = (await store.jobs.claim({ endpointId, workerId, limit: 1, nowMs: 1 })).jobs
  if (job === undefined) throw new Error('the queue is empty')
  const outcome = { status: 'COMPLETED', output: '{"ok":true}', error: null, warning: null } as const
  await store.jobOutcomes.finish({ jobId: job.id, workerId, outcome, nowMs: 2 })
}

/** Inserts jobs for the claims, many in one commit, since each commit on the emulated disk is slow. */
async function stock(store: Store, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => insert(store)))
}

async function run(variant: Variant, folder: string): Promise<void> {
  for (const loops of CONCURRENCIES) {
    const file = join(folder, `${variants.indexOf(variant)}-${loops}.sqlite`)
    const store = await open(variant, file)
    await fill(store)
    const inserts = await measure(loops, () => insert(store))
    await stock(store, variant.slow ? 30_000 : 60_000)
    const statsBefore = await store.stats()
    const finishes = await measure(loops, loop => claimAndFinish(store, loop))
    const statsAfter = await store.stats()
    const together = (statsAfter.writes - statsBefore.writes) / (statsAfter.commits - statsBefore.commits)
    await store.close()
    report([variant.name, `${loops}`, ...cells(inserts), ...cells(finishes), together.toFixed(1)])
  }
}

/** PostgreSQL groups the flushes of transactions itself and does not report them. */
async function runPostgres(base: string): Promise<void> {
  for (const loops of CONCURRENCIES) {
    for (const asserts of [false, true]) {
      await withSchema(base, async schema => {
        const url = schema ?? base
        const lease = await openPostgresLease({ url, machine: 'bench', boundToMachine: false, instance: null })
        const term = asserts ? await lease.lead(new AbortController().signal) : null
        const store = await openPostgresStore(term === null ? { url } : { url, fence: term.fence })
        await fill(store)
        const inserts = await measure(loops, () => insert(store))
        await stock(store, 8_000)
        const finishes = await measure(loops, loop => claimAndFinish(store, loop))
        await store.close()
        await term?.close()
        await lease.close()
        const name = asserts ? 'PostgreSQL, with the epoch' : 'PostgreSQL'
        report([name, `${loops}`, ...cells(inserts), ...cells(finishes), ''])
      })
    }
  }
}

function cells({ perSecond, lateMs }: Measured): string[] {
  return [Math.round(perSecond).toString(), lateMs.map(ms => ms.toFixed(1)).join(' / ')]
}

function report(row: string[]): void {
  console.log(`| ${row.join(' | ')} |`)
}

const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'runyard-bench-'))
try {
  const flush = measureFlushMs(folder, () => performance.now())
  console.log(`${cpus().length} x ${cpus()[0]?.model}, Node ${process.version}, flush ${flush.toFixed(2)} ms`)
  for (const slow of [false, true]) {
    console.log(slow ? `\nflush ${SLOW_FLUSH_MS} ms slower (emulated)\n` : '\nthis disk\n')
    report(['store', 'loops', 'inserts/s', 'timer late p50 / p99 ms', 'claim+finish/s', 'late ms', 'writes/commit'])
    report(Array(7).fill('---'))
    for (const variant of variants.filter(candidate => candidate.slow === slow)) await run(variant, folder)
    const postgres = process.env.RUNYARD_TEST_POSTGRES ?? ''
    if (!slow && postgres !== '') await runPostgres(postgres)
  }
} finally {
  rmSync(folder, { recursive: true })
}
