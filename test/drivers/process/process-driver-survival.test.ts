import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { exitOf } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { follow } from '../../contract/worker-logs.ts'

test('a worker runs and writes on when its server is killed, and the next server takes it over', {
  timeout: 60_000,
}, async () => {
  const machine = await openMachine()
  try {
    const spec = machine.spec('')
    const argument = JSON.stringify({ options: machine.options, folder: join(machine.folder, 'logs'), spec })
    const server = spawn(process.execPath, [join(import.meta.dirname, 'doomed-server.ts'), argument], {
      stdio: 'inherit',
    })
    const worker = await machine.life(spec.workerId)
    worker.say('before')
    await printed(machine, spec.workerId, 'before')
    const killed = new Promise(resolve => server.on('exit', (_code, signal) => resolve(signal)))
    server.kill('SIGKILL')
    assert.equal(await killed, 'SIGKILL')
    worker.say('after')
    await printed(machine, spec.workerId, 'after')

    const driver = machine.driver()
    assert.equal(await driver.adopt(spec.workerId, null), true)
    await driver.terminate(spec.workerId)
    await exitOf(machine.notifier, driver, spec.workerId)
    await worker.ended
    assert.deepEqual(
      (await machine.logs.tail(spec.workerId, 10)).map(({ line }) => line),
      ['before', 'after'],
    )
    assert.equal((await stat(machine.logs.path(spec.workerId))).mode & 0o777, 0o600)
  } finally {
    await machine.close()
  }
})

async function printed(machine: Machine, worker: WorkerId, line: string): Promise<void> {
  const abort = new AbortController()
  for await (const entry of follow(machine.logs, worker, 10, abort.signal)) if (entry.line === line) break
  abort.abort()
}
