/** Real processes on cards of the driver library for tests: they are suspended before they are frozen. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { openCardMachine } from '../support/card-machine.ts'
import { runJob, submit, whenFinal } from '../support/client.ts'
import { type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const FLASHBOOT = { flashBootType: 'FLASHBOOT' }
const suspends = (server: Server) => server.events('worker.suspended').length

describe('suspended workers', { skip: noFakeGpus, timeout: patient(180_000) }, () => {
  test('two models take turns on a card that has room for one, each with the same process and memory', async t => {
    const { options, endpoint, usedMib } = openCardMachine(t)
    const server = await startServer(options)
    t.after(() => server.stop())
    const [first, second] = [await endpoint(server, FLASHBOOT), await endpoint(server, FLASHBOOT)]
    const begun = (await runJob(server, first, {})).output
    await until('the first to be suspended', () => suspends(server) === 1)
    assert.equal(await usedMib(), 0)
    const other = (await runJob(server, second, {})).output
    assert.notEqual(other.pid, begun.pid)
    assert.ok((await usedMib()) > 1_024)
    assert.deepEqual((await runJob(server, first, {})).output, begun)
    assert.deepEqual((await runJob(server, second, {})).output, other)
    assert.deepEqual(server.events('worker.exited'), [])
  })

  test('a server killed in the middle of a suspend and of a resume finds the worker and gives it its next job', async t => {
    // Each copy takes about a second.
    const { gpus, options, endpoint, usedMib } = openCardMachine(t, { gbps: 1 })
    let server = await startServer(options)
    t.after(() => server.stop())
    const id = await endpoint(server, FLASHBOOT)
    const begun = (await runJob(server, id, {})).output
    const restart = async () => {
      await server.kill9()
      server = await startServer({ ...options, dataDir: server.dataDir, port: server.port })
    }
    const isNow = async (...states: string[]) => states.includes(await gpus.suspender().state(begun.pid))
    const next = async () => (await runJob(server, id, {})).output
    await until('its lock', () => isNow('locked', 'changing', 'checkpointed'))
    await restart()
    assert.deepEqual(await next(), begun, 'the suspend was finished or undone')
    await until('it to be suspended', () => suspends(server) === 1)
    const job = await submit(server, id, {})
    await until('its restore', () => isNow('locked', 'changing', 'running'))
    await restart()
    assert.deepEqual((await whenFinal(server, id, job)).output, begun)
    await until('it to be suspended again', async () => suspends(server) === 1 && (await usedMib()) === 0)
    assert.deepEqual(await next(), begun)
    assert.deepEqual(server.events('worker.exited'), [])
  })
})
