/** `runyard doctor` on this machine: with and without a server, an engine and a database. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { findingText } from '../../../src/cli/commands/doctor.ts'
import type { Finding } from '../../../src/core/observing/diagnosis.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { engine, engineEnv, openedServer, probeSkip, testImage } from '../support/probe.ts'
import { runCommand, startServer } from '../support/server.ts'

const CARDS = `#!/bin/sh
case "$*" in *query-gpu*) for i in 0 1; do echo "$i, GPU-$i, NVIDIA H200, 143771, 580.1"; done ;; esac
`
const AWAY = { DOCKER_HOST: 'unix:///nowhere.sock' }

async function doctor(args: readonly string[], env: Readonly<Record<string, string>> = AWAY) {
  const { code, stdout, stderr } = await runCommand(['doctor', '--json', ...args], env)
  assert.equal(stderr, '')
  const findings = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Finding)
  return { code, of: (check: string) => findings.find(finding => finding.check === check) }
}

describe('runyard doctor', { concurrency: 2 }, () => {
  test('without a server it says what a start would find, and makes nothing', async () => {
    const dataDir = `${temporaryFolder()}/new`
    const { of } = await doctor(['--data-dir', dataDir, '--port', '0'])
    assert.equal(of('data directory')?.message, `${dataDir} is made by the first start`)
    assert.equal(of('port')?.state, 'ok')
    assert.equal(of('database')?.message, 'the embedded database is made by the first start')
    assert.ok(!existsSync(dataDir))
  })

  test('with a server it says that it runs, and looks at its database', async () => {
    const server = await startServer()
    chmodSync(server.dataDir, 0o755)
    const { of } = await doctor(['--data-dir', server.dataDir])
    assert.equal(of('server')?.message, `it runs and answers at ${server.url}`)
    assert.match(of('database')?.message ?? '', /answers \(SQLite [\d.]+, schema \d+ of Runyard \S+\)/)
    assert.equal(of('data directory')?.state, 'warn')
    await server.stop()
  })

  test('a server reports the same to its operator, with its own settings', async () => {
    const server = await startServer()
    const { status, json } = await ask(server, '/v2/machine/diagnosis')
    assert.equal(status, 200, JSON.stringify(json))
    const of = (check: string) => json.findings.find((finding: Finding) => finding.check === check)
    assert.equal(of('server')?.message, `it runs and answers at ${server.url}`)
    assert.equal(of('data directory')?.message, `${server.dataDir} is writable and for its owner alone`)
    assert.equal((await ask(server, '/healthz')).status, 200)
    const { disk, memoryMb, isolation } = (await ask(server, '/v2/machine')).json
    assert.ok(disk.availableBytes > 0 && disk.totalBytes > disk.availableBytes)
    assert.ok(memoryMb.total > 0)
    assert.match(
      isolation.processes,
      /^Workers run without a cage \(--worker-sandbox off\): a worker can read and change every file/,
    )
    await server.stop()
  })

  test('what is in the way ends it with 1, and each line says what to do', async () => {
    const dataDir = temporaryFolder()
    writeFileSync(`${dataDir}/runyard.sqlite`, 'this is no database, however long it may be'.repeat(50))
    const taken = createServer()
    await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const { code, of } = await doctor(['--data-dir', dataDir, '--port', String(port)])
    taken.close()
    assert.equal(code, 1)
    assert.match(of('port')?.message ?? '', new RegExp(`port ${port} is in use by pid ${process.pid} `))
    assert.match(of('database')?.message ?? '', /it is damaged \(file is not a database\)/)
    assert.match(of('engine')?.action ?? '', /start the engine/)
    const people = stripVTControlCharacters(findingText(of('database')!))
    assert.match(people, /^fail {2}database {8}the embedded database: it is damaged.*\n {22}-> restore a backup/)
  })

  test('PostgreSQL: its version and clock, or why it does not answer, never its password', async t => {
    const url = process.env.RUNYARD_TEST_POSTGRES
    if (url === undefined) return t.skip('RUNYARD_TEST_POSTGRES names no PostgreSQL')
    const there = await doctor(['--data-dir', temporaryFolder(), '--port', '0'], { ...AWAY, RUNYARD_DATABASE: url })
    assert.match(there.of('database')?.message ?? '', /^PostgreSQL answers \(\d+/)
    assert.equal(there.of('clock')?.state, 'ok')
    const env = { RUNYARD_DATABASE: 'postgres://u:hidden@127.0.0.1:1/d' }
    const away = await doctor(['--data-dir', temporaryFolder(), '--port', '0'], env)
    assert.match(away.of('database')?.message ?? '', /^PostgreSQL: nothing listens at 127\.0\.0\.1:1 \(ECONNREFUSED\)$/)
    assert.ok(!JSON.stringify(away.of('database')).includes('hidden'))
  })

  test('an engine is asked about itself, and a container calls this machine', { skip: probeSkip }, async () => {
    const dataDir = temporaryFolder()
    const args = ['--data-dir', dataDir, '--port', '0', '--image', testImage]
    const { of } = await doctor(args, engineEnv)
    assert.match(of('engine')?.message ?? '', /^(Docker|Podman) \d+\./)
    assert.equal(of('clock')?.state, 'ok')
    assert.equal(of('network')?.state, 'ok')
    assert.equal(of('reachability')?.message, `a container of ${testImage} reached this machine`)
    const networks = await engine.listNetworks({ filters: { name: ['runyard-doctor'] } })
    assert.deepEqual(networks, [], 'the network is taken away again')
    // The doctor of the next test is at work beside this one, in the network of a server.
    const containers = await engine.listContainers({ all: true, filters: { label: ['runyard.doctor'] } })
    const own = containers.filter(({ HostConfig }) => HostConfig.NetworkMode.startsWith('runyard-doctor'))
    assert.deepEqual(own, [], 'the container is removed')
  })

  test('beside a server with containers it uses their network and leaves it', { skip: probeSkip }, async () => {
    const dataDir = temporaryFolder()
    const { server, network } = await openedServer(dataDir)
    const { of } = await doctor(['--data-dir', dataDir, '--image', testImage], engineEnv)
    assert.equal(of('reachability')?.state, 'ok')
    assert.equal((await engine.listNetworks({ filters: { name: [network] } })).length, 1)
    const missing = await doctor(['--data-dir', dataDir, '--docker-network', 'nobody-made-this'], engineEnv)
    assert.match(missing.of('network')?.message ?? '', /no network 'nobody-made-this'/)
    const open = await doctor(
      ['--data-dir', dataDir, '--docker-network', 'bridge', '--image', 'nobody-made-this'],
      engineEnv,
    )
    assert.match(open.of('network')?.message ?? '', /reach each other/)
    assert.equal(open.of('reachability')?.state, 'skip')
    await server.stop()
  })

  test('a failing tool for GPUs is reported, and not as a machine without GPUs', async () => {
    const tools = temporaryFolder()
    writeFileSync(`${tools}/nvidia-smi`, '#!/bin/sh\necho "couldn\'t communicate with the driver" >&2\nexit 9\n', {
      mode: 0o755,
    })
    const env = { ...AWAY, PATH: `${tools}:${process.env.PATH}` }
    const { of } = await doctor(['--data-dir', temporaryFolder(), '--port', '0'], env)
    assert.equal(of('gpu')?.state, 'warn')
    assert.match(of('gpu')?.message ?? '', /^nvidia-smi ended with code 9: couldn't communicate/)
  })

  test('cards whose GPUs the engine cannot give to containers are found', { skip: probeSkip }, async () => {
    const tools = `${temporaryFolder()}/tools`
    mkdirSync(tools)
    writeFileSync(`${tools}/nvidia-smi`, CARDS, { mode: 0o755 })
    const env = { ...engineEnv, PATH: `${tools}:${process.env.PATH}` }
    const { of } = await doctor(['--data-dir', temporaryFolder(), '--port', '0', '--docker-network', 'none'], env)
    assert.match(of('gpu')?.message ?? '', /^2 \(NVIDIA H200\), which the engine cannot give/)
    assert.match(of('network')?.message ?? '', /workers cannot be in the network 'none'/)
  })
})
