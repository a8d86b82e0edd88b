/** Frozen process workers, beyond what every driver does. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { platform } from 'node:os'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { listProcesses, parsePs, readProcess } from '../../../src/drivers/base/process-table.ts'
import type { ProcessDriver } from '../../../src/drivers/process/process.ts'
import { findMarker } from '../../../src/drivers/process/process-marks.ts'
import { nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { follow } from '../../contract/worker-logs.ts'
import { patient } from '../../support/patience.ts'

let machine: Machine
let driver: ProcessDriver
beforeEach(async () => {
  machine = await openMachine()
  driver = machine.driver()
})
afterEach(() => machine.close())

describe('a frozen process worker', { timeout: patient(60_000) }, () => {
  for (const behaviour of ['parent', 'daemons', 'runaway'] as const) {
    const skip =
      behaviour === 'parent' ? false : behaviour === 'daemons' ? platform() !== 'linux' : 'problem' in findMarker()
    test(`is all that it has started: ${behaviour}`, { skip }, async () => {
      const { workerId } = await start(behaviour)
      await machine.life(workerId, 'child')
      await driver.freeze(workerId)
      assert.equal(machine.frozen(workerId), true)
      await driver.thaw(workerId)
      await machine.responds(workerId)
      await driver.freeze(workerId)
      await driver.kill(workerId)
      await (await machine.life(workerId, 'child')).ended
    })
  }

  test('is all that it has started also for the next server', { skip: platform() !== 'linux' }, async () => {
    const { workerId, handle } = await start('daemons')
    await machine.life(workerId, 'child')
    await driver.freeze(workerId)
    driver.close()
    const next = machine.driver()
    await next.adopt(workerId, handle)
    assert.equal(machine.frozen(workerId), true)
    await next.freeze(workerId)
    await next.thaw(workerId)
    await machine.responds(workerId)
    await next.kill(workerId)
  })

  test('keeps what it had stopped by itself', async () => {
    const { workerId } = await start('parent')
    const { pid } = (await machine.life(workerId, 'child')).report
    process.kill(pid, 'SIGSTOP')
    while (readProcess(pid)?.stopped !== true);
    await driver.freeze(workerId)
    await driver.thaw(workerId)
    assert.equal(readProcess(pid)?.stopped, true)
    process.kill(pid, 'SIGCONT')
    await machine.responds(workerId)
    await driver.kill(workerId)
  })

  test('that stopped itself as a whole is thawed as a whole', async () => {
    const { workerId } = await start('parent')
    const worker = await machine.life(workerId)
    const child = await machine.life(workerId, 'child')
    for (const { report } of [worker, child]) process.kill(report.pid, 'SIGSTOP')
    while (!machine.frozen(workerId));
    await driver.freeze(workerId)
    await driver.thaw(workerId)
    await machine.responds(workerId)
    await driver.kill(workerId)
  })

  test('is not taken for ended by a shell that controls its jobs', { skip: !existsSync('/bin/bash') }, async () => {
    const args = `/bin/bash -c 'exec 2>/dev/null; set -m; "${process.execPath}" worker.mjs stubborn; echo "ended with $?"; sleep 100'`
    const { workerId } = await start('', args)
    const worker = await machine.life(workerId)
    for (let round = 0; round < 3; round += 1) {
      await driver.freeze(workerId)
      assert.equal(machine.frozen(workerId), true)
      await driver.thaw(workerId)
      await machine.responds(workerId)
    }
    worker.say('exit')
    for await (const { line } of follow(machine.logs, workerId, 10, new AbortController().signal)) {
      assert.equal(line, 'ended with 0')
      break
    }
    await driver.kill(workerId)
  })

  test('is distinguished from the next process with its number', async () => {
    const { workerId } = await start('parent')
    const { pid } = (await machine.life(workerId, 'child')).report
    await driver.freeze(workerId)
    process.kill(pid, 'SIGKILL')
    await (await machine.life(workerId, 'child')).ended
    await driver.thaw(workerId)
    assert.deepEqual(await driver.observe(workerId), { state: 'running' })
    await driver.kill(workerId)
    await nextExit(machine.notifier, driver, workerId)
  })
})

test('the table of processes has this one and its parent', async () => {
  const all = await listProcesses()
  const own = all.find(({ pid }) => pid === process.pid)
  assert.deepEqual([own?.parent, own?.living, own?.stopped], [process.ppid, true, false])
  assert.ok(all.some(({ pid }) => pid === process.ppid))
})

test('a line of ps is read in the columns of this program', () => {
  assert.deepEqual(parsePs('  501 Ts       1   500 Wed Nov 25 01:51:14 2026   '), {
    pid: 501,
    parent: 1,
    group: 500,
    startTime: 'Wed Nov 25 01:51:14 2026',
    living: true,
    stopped: true,
    resting: true,
  })
  assert.equal(parsePs(''), null)
})

async function start(behaviour: string, args?: string) {
  const spec = machine.spec(behaviour, args === undefined ? {} : { args })
  const handle = await driver.start(spec)
  await machine.life(spec.workerId)
  return { workerId: spec.workerId, handle }
}
