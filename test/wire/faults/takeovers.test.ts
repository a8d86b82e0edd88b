/**
 * Two servers on one PostgreSQL, as users start them, under load: the active one is killed, stopped for a while, or
 * loses its network, again and again. RUNYARD_TEST_TAKEOVERS is the number of rounds, 3 unless it is given.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint } from '../support/client.ts'
import { linkTo } from '../support/database-link.ts'
import { noPostgresPrograms, startPostgres } from '../support/postgres.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { attemptsIn, TakeoverClients, watchWrites, writesOutOfTurn } from '../support/takeovers.ts'
import { sleep, until } from '../support/until.ts'

const ROUNDS = Number(process.env.RUNYARD_TEST_TAKEOVERS ?? 3)
/** Time for which a server is stopped, or without its network; long enough that it resumes deposed. */
const AWAY_MS = ROUNDS > 3 ? 30_000 : 12_000
const TAKEOVER_MS = 10_000
const KINDS = ['kill', 'stop', 'cut'] as const

const isReady = async (server: Server) =>
  (await ask(server, '/readyz', { signal: AbortSignal.timeout(patient(500)) }).catch(() => null))?.status === 200
const standsBy = async (server: Server) =>
  (await ask(server, '/healthz', { signal: AbortSignal.timeout(patient(500)) }).catch(() => null))?.json?.role ===
  'standby'

interface Started {
  readonly tag: string
  readonly server: Server
}

/** Two servers on one machine, workers that note what they do, and clients that go on. */
async function startPair() {
  const postgres = await startPostgres(['track_commit_timestamp=on'])
  const link = await linkTo(postgres.url)
  const dataDir = temporaryFolder()
  const journal = join(temporaryFolder(), 'journal')
  let starts = 0
  const start = async (mayStandBy: boolean, port?: number): Promise<Started> => {
    const tag = `server-${++starts}`
    const env = { RUNYARD_DATABASE: link.urlFor(tag) }
    const server = await startServer({ dataDir, env, mayStandBy, ...(port !== undefined && { port }) })
    return { tag, server }
  }
  const active = await start(false)
  const setUp = await postgres.client()
  await watchWrites(setUp)
  const standby = await start(true)
  const enroll = async ({ tag, server }: Started) => {
    const database = await postgres.client()
    await database.query('INSERT INTO torture_servers VALUES ($1, $2)', [tag, server.pid])
  }
  await enroll(active)
  await enroll(standby)
  const settings = { workersMin: 3, workersMax: 3, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
  const endpoint = await makeEndpoint(active.server, {
    folder: fixture('node-journal'),
    env: { JOURNAL: journal },
    settings,
  })
  const clients = new TakeoverClients(() => [active.server, standby.server], endpoint, 4, 250)
  await until('some jobs', () => clients.acknowledged >= 10, 60_000)
  const judge = async () => {
    const { attempts, jobs, again, together } = attemptsIn(journal)
    const { writes, outOfTurn } = await writesOutOfTurn(await postgres.client())
    console.log(`${jobs} jobs, ${attempts} attempts, ${again} jobs ran again, ${writes} writes in turn`)
    assert.deepEqual(together, [], 'jobs that ran twice at once')
    assert.deepEqual(outOfTurn, [], 'writes while another server was active')
    assert.ok(writes > 0 && jobs >= clients.acknowledged)
  }
  return { postgres, link, active, standby, clients, start, enroll, judge }
}

describe('two servers on one PostgreSQL', { skip: noPostgresPrograms, concurrency: 2 }, () => {
  test('the active one disappears: the other one takes over in time, no acknowledged job is lost, no job runs twice at once, and no late write counts', {
    timeout: 7_200_000,
  }, async () => {
    const { link, clients, start, enroll, judge, ...pair } = await startPair()
    let { active, standby } = pair
    const times = new Map<string, number[]>(KINDS.map(kind => [kind, []]))
    for (let round = 0; round < ROUNDS; round += 1) {
      const kind = KINDS[round % KINDS.length]!
      const before = clients.acknowledged
      await until('load', () => clients.acknowledged >= before + 10, 60_000)
      const beganMs = performance.now()
      const { server, tag } = active
      if (kind === 'kill') await server.kill9()
      else if (kind === 'stop') server.signal('SIGSTOP')
      else link.cut(tag)
      await until(`a takeover after ${kind}`, () => isReady(standby.server), 60_000, 20)
      const tookMs = performance.now() - beganMs
      times.get(kind)!.push(tookMs)
      const next = standby
      if (kind === 'kill') {
        standby = await start(true, server.port)
        await enroll(standby)
      } else {
        await sleep(Math.max(0, AWAY_MS - tookMs))
        if (kind === 'stop') server.signal('SIGCONT')
        else link.mend(tag)
        standby = active
      }
      active = next
      await until('the other one to stand by', () => standsBy(standby.server), 60_000)
      await clients.allDone(60_000)
      console.log(`round ${round + 1}, ${kind}: takeover in ${Math.round(tookMs)} ms`)
    }
    await clients.end()
    await clients.allDone(60_000)
    for (const [kind, all] of times) console.log(`${kind}: ${summary(all)}`)
    await judge()
    const late = [...times.values()].flat().filter(ms => ms > patient(TAKEOVER_MS))
    assert.deepEqual(late, [], `takeovers that took longer than ${TAKEOVER_MS} ms`)
    assert.deepEqual(await standby.server.stop(), { code: 0, signal: null }, 'a server that stands by ends in order')
    assert.deepEqual(await active.server.stop(), { code: 0, signal: null })
  })

  test('the database goes away for longer than the lease: one of both acts when it is back, and nothing is lost', async () => {
    const { postgres, active, standby, clients, judge } = await startPair()
    const both = [active.server, standby.server]
    await postgres.kill9()
    await until('the active one to notice', async () => !(await isReady(active.server)))
    await sleep(8_000)
    for (const server of both) assert.equal((await ask(server, '/healthz')).status, 200)
    await postgres.start()
    const ready = async () => (await Promise.all(both.map(isReady))).filter(is => is).length
    await until('one of both to act', async () => (await ready()) === 1, 30_000)
    const before = clients.acknowledged
    await until('more jobs', () => clients.acknowledged >= before + 20, 60_000)
    await clients.end()
    await clients.allDone(60_000)
    await judge()
    assert.equal(await ready(), 1)
    for (const server of both) await server.stop()
  })
})

function summary(all: readonly number[]): string {
  const sorted = all.map(Math.round).sort((a, b) => a - b)
  return `${sorted.length} takeovers, median ${sorted[Math.floor(sorted.length / 2)]} ms, longest ${sorted.at(-1)} ms`
}
