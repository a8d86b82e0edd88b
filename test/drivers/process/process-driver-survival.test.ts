import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { listParts, OUTPUT_BYTES, partFile } from '../../../src/disk/worker-output.ts'
import { readPump } from '../../../src/pump/pump-file.ts'
import { nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { follow } from '../../contract/worker-logs.ts'
import { patient } from '../../support/patience.ts'

test('a worker runs and writes on when its server is killed, and the next server takes it over', {
  timeout: patient(60_000),
}, async () => {
  const machine = await openMachine()
  try {
    const spec = machine.spec('')
    const argument = JSON.stringify({
      options: machine.options,
      folder: join(machine.folder, 'logs'),
      pump: join(machine.folder, 'pump'),
      spec,
    })
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
    await nextExit(machine.notifier, driver, spec.workerId)
    await worker.ended
    assert.deepEqual(
      (await machine.logs.tail(spec.workerId, 10)).map(({ line }) => line),
      ['before', 'after'],
    )
    assert.equal((await stat(join(machine.logs.folder(spec.workerId), '0.log'))).mode & 0o777, 0o600)
  } finally {
    await machine.close()
  }
})

test('what a worker prints before it ends is whole when its end is known, whoever is slow to read it', {
  timeout: patient(60_000),
}, async () => {
  const machine = await openMachine()
  try {
    const driver = machine.driver()
    const spec = machine.spec('', { args: "sh -c 'seq 200000; echo last >&2'" })
    await driver.start(spec)
    assert.equal((await nextExit(machine.notifier, driver, spec.workerId)).code, 0)
    const lines = (await machine.logs.tail(spec.workerId, 300_000)).map(({ line }) => line)
    assert.equal(lines.length, 200_001)
    assert.deepEqual(lines.slice(-2), ['200000', 'last'])
  } finally {
    await machine.close()
  }
})

test('a worker that prints line by line is as fast as one that prints at once', {
  timeout: patient(60_000),
}, async () => {
  const machine = await openMachine()
  try {
    const driver = machine.driver()
    const program = 'for (let n = 1; n <= 20000; n += 1) console.log(n)'
    const spec = machine.spec('', { args: `'${process.execPath}' -e '${program}'` })
    await driver.start(spec)
    assert.equal((await nextExit(machine.notifier, driver, spec.workerId)).code, 0)
    const lines = (await machine.logs.tail(spec.workerId, 30_000)).map(({ line }) => line)
    assert.deepEqual([lines.length, lines[0], lines.at(-1)], [20_000, '1', '20000'])
  } finally {
    await machine.close()
  }
})

test('workers that print without end fill no disk, with lines and without one, also while no server runs', {
  timeout: patient(60_000),
}, async () => {
  const machine = await openMachine()
  try {
    const driver = machine.driver()
    const specs = [machine.spec('', { args: 'yes flood' }), machine.spec('', { args: 'cat /dev/zero' })]
    for (const spec of specs) await driver.start(spec)
    driver.close()
    for (const { workerId } of specs) {
      const folder = machine.logs.folder(workerId)
      let end = 0
      // Longer than all that is kept, which the files are named after.
      while (end < 1.25 * OUTPUT_BYTES) {
        const parts = await Promise.all(listParts(folder).map(begin => stat(partFile(folder, begin)).catch(() => null)))
        const bytes = parts.reduce((sum, found) => sum + (found?.size ?? 0), 0)
        assert.ok(bytes <= OUTPUT_BYTES + 4 * 65_536, `${bytes} bytes are on the disk`)
        end = listParts(folder).at(-1) ?? 0
      }
    }
    const next = machine.driver()
    for (const { workerId } of specs) {
      assert.equal(await next.adopt(workerId, null), true)
      await next.kill(workerId)
      await nextExit(machine.notifier, next, workerId)
    }
  } finally {
    await machine.close()
  }
})

test('a worker whose pump is killed or stopped prints on, and its lines are read by the next one', {
  timeout: patient(60_000),
}, async () => {
  const machine = await openMachine()
  const pump = () => readPump(join(machine.folder, 'pump'))!.pid
  try {
    const driver = machine.driver()
    const spec = machine.spec('')
    await driver.start(spec)
    const worker = await machine.life(spec.workerId)
    worker.say('first')
    await printed(machine, spec.workerId, 'first')
    const first = pump()
    process.kill(first, 'SIGKILL')
    worker.say('without a pump')
    await printed(machine, spec.workerId, 'without a pump')
    assert.notEqual(pump(), first)

    process.kill(pump(), 'SIGSTOP')
    worker.say('with a stopped pump')
    await printed(machine, spec.workerId, 'with a stopped pump')

    driver.close()
    process.kill(pump(), 'SIGKILL')
    worker.say('without a pump and a server')
    const next = machine.driver()
    assert.equal(await next.adopt(spec.workerId, null), true)
    await printed(machine, spec.workerId, 'without a pump and a server')
    await next.terminate(spec.workerId)
    assert.equal((await nextExit(machine.notifier, next, spec.workerId)).code, null)
  } finally {
    await machine.close()
  }
})

test('a worker goes on while its output cannot be written, and the output says how much is missing', {
  timeout: patient(60_000),
}, async () => {
  const machine = await openMachine()
  try {
    const driver = machine.driver()
    // More than its pipe holds, so that the worker would block before its report.
    const spec = machine.spec('', {
      args: `sh -c 'head -c 300000 /dev/zero && exec "${process.execPath}" worker.mjs'`,
    })
    const folder = machine.logs.folder(spec.workerId)
    // As on a full disk: no file can be made there.
    await writeFile(folder, '')
    await driver.start(spec)
    const worker = await machine.life(spec.workerId)
    await rm(folder)
    worker.say('after')
    await printed(machine, spec.workerId, 'after')
    const lines = (await machine.logs.tail(spec.workerId, 100)).map(({ line }) => line)
    assert.equal(lines.filter(line => /^runyard: \d{6} bytes are missing here \(\w+\)$/.test(line)).length, 1)
  } finally {
    await machine.close()
  }
})

async function printed(machine: Machine, worker: WorkerId, line: string): Promise<void> {
  const abort = new AbortController()
  for await (const entry of follow(machine.logs, worker, 10, abort.signal)) if (entry.line === line) break
  abort.abort()
}
