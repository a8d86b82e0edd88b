/** The process of the relay: when it ends, when it does not, and when it is replaced. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob, submit, whenStatus } from '../support/client.ts'
import { relayPid, relayProcesses } from '../support/processes.ts'
import { root, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`

describe('the process of the relay', { concurrency: 2 }, () => {
  test('its file is for its owner alone, and its arguments hold no secret', async () => {
    const server = await startServer()
    const file = `${server.dataDir}/relay/relay.json`
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const { secret, pid } = JSON.parse(readFileSync(file, 'utf8'))
    for (const place of ['cmdline', 'environ']) {
      assert.ok(!readFileSync(`/proc/${pid}/${place}`, 'utf8').includes(secret), place)
    }
    await server.stop()
    assert.ok(!existsSync(file), 'nothing is left of it')
  })

  test('one that does not end in time is killed, and nothing is left of it either', async () => {
    const server = await startServer()
    process.kill(relayPid(server.dataDir)!, 'SIGSTOP')
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
    assert.deepEqual(relayProcesses(server.dataDir), [])
    assert.ok(!existsSync(`${server.dataDir}/relay/relay.json`))
  })

  test('a server that stops needs it to the end, so a signal to all processes does not end it before', async () => {
    const dataDir = temporaryFolder()
    const server = await startServer({ dataDir })
    const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const id = await submit(server, endpoint, { sleepMs: 1_500 })
    await whenStatus(server, endpoint, id, ['IN_PROGRESS'])
    process.kill(relayPid(dataDir)!, 'SIGTERM')
    server.signal('SIGTERM')
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    assert.deepEqual(relayProcesses(dataDir), [])
    const finished = server.events('job.moved').filter(({ jobId, to }) => jobId === id && to === 'COMPLETED')
    assert.equal(finished.length, 1)
    assert.equal(server.events('relay.lost').length, 0)
  })

  test('without a server a signal ends it', async () => {
    const server = await startServer()
    const pid = relayPid(server.dataDir)!
    await server.kill9()
    // It stays for the workers until it noticed the end of its server.
    await until('its end', () => {
      if (!relayProcesses(server.dataDir).includes(pid)) return true
      spawnSync('kill', ['-TERM', String(pid)])
      return false
    })
  })

  test('one whose data directory is removed ends by itself', async () => {
    const dataDir = temporaryFolder()
    const server = await startServer({ dataDir })
    await server.kill9()
    // The relay may be writing into it at this moment.
    rmSync(`${dataDir}/relay`, { recursive: true, maxRetries: 20, retryDelay: 20 })
    await until('its end', () => relayProcesses(dataDir).length === 0, 8_000)
  })

  test('one of another version is replaced when no worker uses it, and not before', async () => {
    const dataDir = temporaryFolder()
    const file = `${dataDir}/relay/relay.json`
    const ofAnotherVersion = () => {
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), version: 0 }))
      return relayPid(dataDir)
    }
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const { workerId } = await runJob(first, endpoint, {})
    await first.kill9()
    const old = ofAnotherVersion()
    const second = await startServer({ dataDir })
    assert.equal(relayPid(dataDir), old)
    assert.equal((await runJob(second, endpoint, {})).workerId, workerId)
    await second.stop()

    const third = await startServer({ dataDir })
    await third.kill9()
    const unused = ofAnotherVersion()
    const fourth = await startServer({ dataDir })
    assert.notEqual(relayPid(dataDir), unused)
    assert.equal(relayProcesses(dataDir).length, 1)
    assert.equal((await runJob(fourth, endpoint, {})).status, 'COMPLETED')
    await fourth.stop()
  })
})
