/** The lease of a database while PostgreSQL, or the network to it, is away. */
import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import type { Leadership } from '../../../src/ports/leader.ts'
import { openPostgresLease } from '../../../src/system/coordination/postgres-lease.ts'
import { patient } from '../../support/patience.ts'
import { atEnd } from '../support/cleanup.ts'
import { noPostgresPrograms, startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const never = new AbortController().signal

async function candidateOn(url: string) {
  const candidate = await openPostgresLease({ url, machine: 'here', boundToMachine: false, instance: null })
  atEnd(() => candidate.close())
  return candidate
}

async function termOn(url: string) {
  const term = await (await candidateOn(url)).lead(never)
  atEnd(() => term.close())
  const states: Leadership[] = []
  term.watch(now => void states.push(now))
  return { term, states }
}

/** A network to a database that can be cut: nothing passes, without an error. */
async function networkTo(url: string): Promise<{ url: string; cut(): void; heal(): void }> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer(near => {
    const far = connect(Number(port), hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', bytes => void to.write(bytes)).on('error', () => {})
      from.on('close', () => void (sockets.delete(from) && to.destroy()))
      if (isCut) from.pause()
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const set = (cut: boolean) => {
    isCut = cut
    for (const socket of sockets) {
      if (cut) socket.pause()
      else socket.resume()
    }
  }
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const here = new URL(url)
  here.port = String((server.address() as { port: number }).port)
  return { url: here.href, cut: () => set(true), heal: () => set(false) }
}

describe('the lease of a database', { skip: noPostgresPrograms, concurrency: 3 }, () => {
  test('is the same after a kill -9 of PostgreSQL, and its server acts only while it is confirmed', async () => {
    const postgres = await startPostgres()
    const { term, states } = await termOn(postgres.url)
    await postgres.kill9()
    await until('it to notice', () => states.at(-1) === 'unsure')
    assert.deepEqual([term.isLeader(), await term.confirm()], [false, false])
    await postgres.start()
    await until('it to act again', () => states.at(-1) === 'active')
    assert.deepEqual([await term.confirm(), term.epoch, states], [true, 1, ['unsure', 'active']])
  })

  test('is renewed by the same server after PostgreSQL stood still', async () => {
    const postgres = await startPostgres()
    const { term, states } = await termOn(postgres.url)
    postgres.stall()
    await until('it to notice', () => states.at(-1) === 'unsure')
    postgres.resume()
    await until('it to act again', () => states.at(-1) === 'active')
    assert.deepEqual([term.epoch, states], [1, ['unsure', 'active']])
  })

  test('goes to another server within 10 s when the network of the first is cut, which has stopped acting before and is deposed later', async () => {
    const postgres = await startPostgres()
    const network = await networkTo(postgres.url)
    const { term, states } = await termOn(network.url)
    const leading = (await candidateOn(postgres.url)).lead(never)
    network.cut()
    const cutMs = performance.now()
    const next = await leading
    atEnd(() => next.close())
    assert.ok(performance.now() - cutMs < patient(10_000))
    assert.deepEqual([term.isLeader(), await term.confirm(), states], [false, false, ['unsure']])
    network.heal()
    await until('it to be deposed', () => states.at(-1) === 'deposed')
    assert.deepEqual([next.epoch, next.isLeader()], [2, true])
  })
})
