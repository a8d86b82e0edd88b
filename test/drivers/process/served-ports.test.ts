/** The ports that processes get to serve at, which they share with everything else on the machine. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { platform } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { observedExitText, portConflictText } from '../../../src/core/workers/worker-exit.ts'
import { FreePorts, PORT_RANGE, portsFromHandle } from '../../../src/drivers/base/served-ports.ts'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { patient } from '../../support/patience.ts'

const SERVES = { port: 80, healthPort: 81 }

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

describe('the ports of a process worker', { timeout: patient(60_000) }, () => {
  let machine: Machine
  beforeEach(async () => {
    machine = await openMachine()
  })
  afterEach(() => machine.close())

  test('are in its variables, whatever its endpoint and the protocol say', async () => {
    const driver = machine.driver()
    const spec = machine.spec('serving', { serves: SERVES, env: { PORT: '80', PORT_HEALTH: '81', MINE: 'yes' } })
    await driver.start(spec)
    const { env } = (await machine.life(spec.workerId)).report
    const served = await driver.address(spec.workerId)
    assert.deepEqual([env.PORT, env.PORT_HEALTH].map(Number), [served?.traffic.port, served?.health.port])
    assert.equal(env.MINE, 'yes')
    for (const port of [env.PORT, env.PORT_HEALTH].map(Number)) {
      assert.ok(port >= PORT_RANGE.first && port <= PORT_RANGE.last, String(port))
    }
  })

  test('of a worker of a queue are what its endpoint says', async () => {
    const spec = machine.spec('obedient', { env: { PORT: '80' } })
    await machine.driver().start(spec)
    const { env } = (await machine.life(spec.workerId)).report
    assert.deepEqual([env.PORT, env.PORT_HEALTH], ['80', undefined])
  })

  test('are not those of other programs', async () => {
    const { first } = PORT_RANGE
    const other = await listen(first)
    try {
      const ports = new FreePorts(first)
      const { port, healthPort } = await ports.pick(SERVES)
      assert.ok(port > first && healthPort > port, `${port} ${healthPort}`)
      const all = await Promise.all([1, 2, 3, 4].map(() => ports.pick(SERVES)))
      assert.equal(new Set([...all, { port, healthPort }].flatMap(Object.values)).size, 10)
    } finally {
      other.close()
    }
  })

  test('that another program takes before the worker can end it, and the next worker gets others', async () => {
    const driver = machine.driver()
    const spec = machine.spec('obedient', { serves: SERVES })
    await driver.start(spec)
    const worker = await machine.life(spec.workerId)
    const taken = (await driver.address(spec.workerId))?.traffic.port ?? 0
    const other = await listen(taken)
    try {
      worker.say('serve')
      const exit = await nextExit(machine.notifier, driver, spec.workerId)
      assert.equal(observedExitText(exit), 'exited with code 1')
      assert.ok((await machine.logs.tail(spec.workerId, 50)).some(({ line }) => line.includes('EADDRINUSE')))
      const next = machine.spec('serving', { serves: SERVES })
      await driver.start(next)
      await machine.life(next.workerId)
      const { traffic, health } = (await driver.address(next.workerId)) ?? {}
      assert.ok(traffic?.port !== taken && health?.port !== taken)
    } finally {
      other.close()
    }
  })

  test('are reused in turn, and refused with a message when all are in use', async () => {
    const { first, last } = PORT_RANGE
    const ports = new FreePorts(last)
    for (let port = first; port <= last; port += 1) ports.hold({ port, healthPort: port })
    await assert.rejects(ports.pick(SERVES), { code: 'unavailable', message: /no port from 20000 to 29999 .* is free/ })
    ports.release({ port: first + 7, healthPort: first + 7 })
    await assert.rejects(ports.pick(SERVES), { code: 'unavailable' })
    const one = await ports.pick({ port: 80, healthPort: 80 })
    assert.deepEqual(one, { port: first + 7, healthPort: first + 7 })
  })

  test('are found where the server died before it could write the handle', async () => {
    const driver = machine.driver()
    const spec = machine.spec('serving', { serves: SERVES })
    await driver.start(spec)
    await machine.life(spec.workerId)
    const served = await driver.address(spec.workerId)
    assert.ok(served !== null)
    driver.close()
    const ports = { port: served.traffic.port, healthPort: served.health.port }
    writeFileSync(join(machine.options.workerDir, spec.workerId, 'process.json'), JSON.stringify({ ports }))
    const next = machine.driver()
    assert.equal(await next.adopt(spec.workerId, null), true)
    assert.deepEqual(await next.address(spec.workerId), served)
    await next.kill(spec.workerId)
    await nextExit(machine.notifier, next, spec.workerId)
  })
})

describe('a port that the variables of a process worker name', {
  skip: platform() !== 'linux',
  timeout: patient(60_000),
}, () => {
  let machine: Machine
  beforeEach(async () => {
    machine = await openMachine()
  })
  afterEach(() => machine.close())

  /** Exit and first line of output of a worker whose variables name the port. */
  async function end(variable: string, port: number, driver = machine.driver()) {
    const spec = machine.spec('failing', { env: { [variable]: String(port), OTHER_PORT: 'none', PORTS: '1' } })
    await driver.start(spec)
    const exit = await nextExit(machine.notifier, driver, spec.workerId)
    const suspicion = exit.suspicion && portConflictText(exit.suspicion)
    return {
      cause: observedExitText(exit),
      suspicion,
      lines: (await machine.logs.tail(spec.workerId, 5)).map(({ line }) => line),
    }
  }

  test('and that another worker has is reported with its end, and at the beginning of its output', async () => {
    const first = machine.spec('serving', { serves: SERVES })
    const driver = machine.driver()
    await driver.start(first)
    const port = Number((await machine.life(first.workerId)).report.env.PORT)
    const named = `port ${port}, which its variable VLLM_PORT names, is in use by`
    const known = `${named} worker ${first.workerId} of the same endpoint`
    // Of another server.
    const unknown = `${named} another worker`
    for (const [server, clause] of [
      [driver, known],
      [machine.driver(), unknown],
    ] as const) {
      assert.deepEqual(await end('VLLM_PORT', port, server), {
        cause: 'exited with code 3',
        suspicion: clause,
        lines: [`runyard: ${clause}`],
      })
    }
  })

  test('and that another program has is reported with its end, and a free one is not', async () => {
    const other = await listen(0)
    const { port } = other.address() as AddressInfo
    assert.deepEqual(await end('DB_PORT', port), {
      cause: 'exited with code 3',
      suspicion: `port ${port}, which its variable DB_PORT names, is in use by another program`,
      lines: [],
    })
    await new Promise(resolve => other.close(resolve))
    assert.equal((await end('DB_PORT', port)).suspicion, undefined)
  })
})

/** Wants a fixed port, as the server that worker-vllm starts, and goes on or ends without it. */
const FIXED = `
import { createServer } from 'node:http'
const [port, without] = process.argv.slice(2)
createServer()
  .on('error', error => {
    console.log(without === 'python' ? 'OSError: [Errno 98] Address already in use' : String(error))
    if (without !== 'stay') process.exit(1)
  })
  .listen(Number(port), '127.0.0.1', () => console.log('listens'))
setInterval(() => {}, 1000)
`

describe('a fixed port that two process workers without networks of their own want', {
  skip: platform() !== 'linux',
  timeout: patient(60_000),
}, () => {
  test('is reported in the output of the second one, with its end or while it goes on', async t => {
    const machine = await openMachine()
    t.after(() => machine.close())
    writeFileSync(join(machine.root, 'app', 'fixed.mjs'), FIXED)
    const driver = machine.driver()
    const { port } = await new FreePorts(machine.options.firstPort).pick(SERVES)
    const start = async (without: string, changes: Partial<WorkerSpec> = {}) => {
      const args = `'${process.execPath}' fixed.mjs ${port} ${without}`
      const spec = machine.spec('', { args, ...changes })
      await driver.start(spec)
      return spec.workerId
    }
    const lines = async (worker: WorkerId) => (await machine.logs.tail(worker, 9)).map(({ line }) => line)
    const said = (worker: WorkerId, text: string) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const look = async () => {
        if ((await lines(worker)).some(line => line.includes(text))) resolve()
      }
      const unwatch = machine.logs.watch(worker, () => void look())
      void look()
      return promise.finally(unwatch)
    }
    const first = await start('stay')
    await said(first, 'listens')
    const conflict = { port, variable: null, with: 'worker', worker: first } as const
    const sentence = `runyard: port ${port}, on which it tried to listen, is in use by worker ${first} of the same endpoint: `
    const second = await start('stay')
    await said(second, sentence)
    assert.deepEqual(await driver.observe(second), { state: 'running', suspicion: conflict })
    assert.deepEqual(await driver.observe(first), { state: 'running' })
    for (const without of ['exit', 'python']) {
      const ended = await start(without)
      const exit = await nextExit(machine.notifier, driver, ended)
      assert.deepEqual(exit.suspicion, conflict, without)
      assert.ok((await lines(ended)).at(-1)?.startsWith(sentence), without)
    }
    const other = await start('exit', { endpointId: 'another' as EndpointId })
    assert.deepEqual((await nextExit(machine.notifier, driver, other)).suspicion, {
      port,
      variable: null,
      with: 'worker',
    })
    for (const worker of [first, second]) {
      await driver.kill(worker)
      await nextExit(machine.notifier, driver, worker)
    }
  })
})

test('a handle without ports names no port', () => {
  for (const text of [
    '',
    'null',
    '{}',
    '{"ports":null}',
    '{"ports":{"port":80}}',
    '{"ports":{"port":"80","healthPort":80}}',
  ]) {
    assert.equal(portsFromHandle(text), null, text)
  }
  assert.deepEqual(portsFromHandle('{"pid":2,"ports":{"port":1,"healthPort":2}}'), { port: 1, healthPort: 2 })
})
