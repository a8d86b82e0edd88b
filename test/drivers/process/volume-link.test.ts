import assert from 'node:assert/strict'
import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { VolumeId, WorkerId } from '../../../src/core/ids.ts'
import { VolumeLink } from '../../../src/drivers/process/volume-link.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { patient } from '../../support/patience.ts'
import { everyEndpoint } from '../../support/worker-spec.ts'

describe('the link to the network volume of process workers', { timeout: patient(60_000) }, () => {
  let machine: Machine
  let path: string
  let said = 0
  beforeEach(async () => {
    machine = await openMachine()
    path = join(machine.folder, 'runpod-volume')
    for (const id of ['one', 'two']) await mkdir(join(machine.folder, 'volumes', id), { recursive: true })
  })
  afterEach(() => machine.close())

  const volume = (id: string) => ({ id: id as VolumeId, path: join(machine.folder, 'volumes', id) })
  const isGone = () => assert.rejects(lstat(path), { code: 'ENOENT' })

  async function started(id: string, driver = machine.driver()) {
    const plain = machine.spec('', { volume: volume(id) })
    const spec = { ...plain, protocolEnv: { ...plain.protocolEnv, RUNPOD_VOLUME_PATH: volume(id).path } }
    await driver.start(spec)
    await machine.life(spec.workerId)
    const end = async () => {
      await driver.kill(spec.workerId)
      await nextExit(machine.notifier, driver, spec.workerId)
      await driver.release(spec.workerId)
    }
    /** Its output up to what it prints when this is called, since all of it takes a while to be written. */
    const lines = async () => {
      const mark = `line ${++said}`
      ;(await machine.life(spec.workerId)).say(mark)
      for (;;) {
        const printed = (await machine.logs.tail(spec.workerId, 5)).map(({ line }) => line)
        if (printed.at(-1) === mark) return printed.filter(line => !/^line \d+$/.test(line))
        await new Promise<void>(resolve => systemClock.after(10, resolve))
      }
    }
    return { workerId: spec.workerId, end, lines }
  }

  test('is there while a worker runs that has the volume, and goes with the last one, not with what it leads to', async () => {
    const driver = machine.driver()
    await writeFile(join(volume('one').path, 'model'), 'model')
    const first = await started('one', driver)
    const second = await started('one', driver)
    assert.equal(await readFile(join(path, 'model'), 'utf8'), 'model')
    await first.end()
    assert.equal(await readlink(path), volume('one').path)
    await second.end()
    await isGone()
    assert.equal(await readFile(join(volume('one').path, 'model'), 'utf8'), 'model')
  })

  test('shows the models of a worker without a network volume, also after a restart of the server', async () => {
    const cache = join(machine.folder, 'models', 'huggingface-cache', 'hub')
    const model = { folder: 'models--a--b', path: join(cache, 'models--a--b') }
    for (const part of ['refs', 'blobs', 'snapshots/commit']) await mkdir(join(model.path, part), { recursive: true })
    await writeFile(join(model.path, 'refs', 'main'), 'commit')
    await writeFile(join(model.path, 'blobs', 'hash'), 'weights')
    await symlink('../../blobs/hash', join(model.path, 'snapshots', 'commit', 'weights'))
    const driver = machine.driver()
    const spec = machine.spec('', { models: [model] })
    const handle = await driver.start(spec)
    await machine.life(spec.workerId)
    const shown = join(path, 'huggingface-cache', 'hub', 'models--a--b', 'refs', 'main')
    assert.equal(await readFile(shown, 'utf8'), 'commit')
    const own = join(machine.folder, 'workers', spec.workerId, 'models', 'models--a--b')
    assert.equal(await readFile(join(own, 'snapshots', 'commit', 'weights'), 'utf8'), 'weights')
    await writeFile(join(own, 'refs', 'main'), 'another')
    await writeFile(join(own, 'blobs', 'other'), 'of the worker')
    driver.close()
    const next = machine.driver()
    await next.adopt(spec.workerId, handle)
    await next.tidy(new Set([spec.workerId]), new Set(), everyEndpoint)
    assert.equal(await readFile(shown, 'utf8'), 'commit')
    await next.kill(spec.workerId)
    await nextExit(machine.notifier, next, spec.workerId)
    await next.release(spec.workerId)
    await isGone()
    assert.equal(await readFile(join(model.path, 'refs', 'main'), 'utf8'), 'commit')
    assert.deepEqual(await readdir(join(model.path, 'blobs')), ['hash'])
  })

  test('leads to one volume at a time, and a worker with another one is refused', async () => {
    const driver = machine.driver()
    const first = await started('one', driver)
    const second = await started('two', driver)
    assert.equal(await readlink(path), volume('one').path)
    const told = `runyard: ${path} is not the network volume of this worker, which is in RUNPOD_VOLUME_PATH`
    assert.deepEqual([await first.lines(), await second.lines()], [[], [told]])
    await first.end()
    const third = await started('two', driver)
    assert.deepEqual([await readlink(path), await third.lines()], [volume('two').path, []])
  })

  test('never replaces a foreign file', async () => {
    await mkdir(join(machine.folder, 'other'))
    await symlink(join(machine.folder, 'other'), path)
    const worker = await started('one')
    assert.equal((await worker.lines()).length, 1)
    await worker.end()
    assert.equal(await readlink(path), join(machine.folder, 'other'))
    const folder = join(machine.folder, 'folder')
    await mkdir(folder)
    const link = new VolumeLink({ path: folder, root: join(machine.folder, 'volumes'), models: '' })
    assert.match((await link.hold('w' as WorkerId, volume('one').path)) ?? '', /is not the network volume/)
    await link.release('w' as WorkerId)
    await link.tidy()
    assert.ok((await lstat(folder)).isDirectory())
  })

  test('is nowhere where the server may not make it, and leads to nothing but volumes', async () => {
    const root = join(machine.folder, 'volumes')
    const nowhere = new VolumeLink({ path: join(machine.folder, 'missing', 'link'), root, models: '' })
    assert.equal(await nowhere.hold('w' as WorkerId, volume('one').path), null)
    const link = new VolumeLink({ path, root, models: '' })
    assert.equal(await link.hold('w' as WorkerId, '/etc'), null)
    await isGone()
  })

  test('is held by a worker that the next server takes over, and removed when no worker needs it', async () => {
    const worker = await started('one')
    const next = machine.driver()
    assert.ok(await next.adopt(worker.workerId, null))
    await next.tidy(new Set(), new Set(), everyEndpoint)
    assert.equal(await readlink(path), volume('one').path)
    await next.kill(worker.workerId)
    await nextExit(machine.notifier, next, worker.workerId)
    await next.release(worker.workerId)
    await isGone()
    await symlink(volume('two').path, path)
    await machine.driver().tidy(new Set(), new Set(), everyEndpoint)
    await isGone()
  })
})
