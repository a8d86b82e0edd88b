/** Images of workers: their sources, the choice for each worker, and their removal. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import type { DockerDriver } from '../../../src/drivers/docker/docker.ts'
import type { ImagePins, RegistryCredential, StartWatch } from '../../../src/ports/driver.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { nextExit } from '../../contract/driver.ts'
import { type DockerMachine, noDocker, onPodman, openDockerMachine } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { openRegistry, type TestRegistry } from '../../support/registry.ts'

const DAY = 24 * 3_600_000

describe('the images of containers', { skip: noDocker, timeout: patient(120_000) }, () => {
  let machine: DockerMachine
  let driver: DockerDriver
  let depot: TestRegistry
  const used: string[] = []
  before(async () => {
    machine = await openDockerMachine()
    driver = machine.driver()
    depot = await openRegistry()
  })
  after(async () => {
    const remove = (image: string) => machine.engine.getImage(image).remove({ force: true })
    for (const { RepoTags, RepoDigests } of await machine.engine.listImages())
      for (const image of [...(RepoTags ?? []), ...(RepoDigests ?? [])])
        if (used.some(name => image.startsWith(name))) await remove(image).catch(() => {})
    await machine.close()
    await depot.close()
  })
  const named = (name: string) => {
    used.push(`${depot.host}/${name}`)
    return `${depot.host}/${name}`
  }
  /** Starts a worker and gives what it has printed. */
  const outputOf = async (image: string, watch?: Partial<StartWatch>, by: RegistryCredential | null = depot.user) => {
    const spec = machine.spec([], { image, args: '', credential: by })
    await driver.start(spec, { pulling: () => {}, pulled: () => {}, ...watch })
    await nextExit(machine.notifier, driver, spec.workerId)
    return machine.output(spec.workerId)
  }
  const refusalOf = async (image: string, by: RegistryCredential | null) => {
    const failed = await driver.start(machine.spec([], { image, args: '', credential: by })).catch(thrown => thrown)
    return `${failed.code}: ${failed.message}`
  }
  /** Pins as a store keeps them. */
  const pins = (): ImagePins & { now: string | null } => ({
    now: null,
    async current() {
      return this.now
    },
    async pin(image, replaced) {
      if (this.now === replaced) this.now = image
      return this.now ?? image
    },
  })

  test('what guards the registry is asked before each download, and nothing calls the registry when it refuses', async () => {
    depot.publish('guarded', '1', 'hello')
    const image = `${named('guarded')}:1`
    const before = depot.calls.length
    const guard = async () => ({ kind: 'registry_private', image, host: depot.host }) as const
    const spec = machine.spec([], { image, args: '', credential: depot.user, guard })
    await assert.rejects(driver.start(spec), /is not public/)
    assert.equal(depot.calls.length, before)
    const open = machine.spec([], { image, args: '', credential: depot.user, guard: async () => null })
    await driver.start(open)
    await nextExit(machine.notifier, driver, open.workerId)
    assert.deepEqual(await machine.output(open.workerId), ['hello'])
  })

  test('an image is downloaded once for all workers that wait for it, with the credential, and its progress is reported', async () => {
    depot.publish('pulled', '1', 'once')
    const image = `${named('pulled')}:1`
    const told: (number | null | 'pulled')[] = []
    const gate = depot.hold()
    const first = outputOf(image, { pulling: percent => told.push(percent), pulled: () => told.push('pulled') })
    await gate.asked
    const second = outputOf(image)
    gate.release()
    assert.deepEqual(await Promise.all([first, second]), [['once'], ['once']])
    assert.equal(told[0], null)
    assert.deepEqual(told.slice(-2), [onPodman ? null : 100, 'pulled'])
    const layers = depot.calls.filter(call => call.startsWith('GET /v2/pulled/blobs/'))
    assert.equal(new Set(layers).size, layers.length, layers.join('\n'))
  })

  test('what is there starts without a registry', async () => {
    depot.publish('present', '1', 'here')
    const image = `${named('present')}:1`
    await outputOf(image)
    depot.calls.length = 0
    assert.deepEqual(await outputOf(image, {}, { username: 'nobody', password: 'wrong' }), ['here'])
    assert.deepEqual(depot.calls, [])
  })

  test('a download that cannot be is refused with its reason, and never with a password', async () => {
    depot.publish('private', '1', 'secret')
    const image = `${depot.host}/private:1`
    const wrong = { username: 'me', password: 'let me in' }
    assert.match(await refusalOf(image, wrong), /^invalid: image '.*private:1' .* does not accept the credential/)
    assert.doesNotMatch(await refusalOf(image, wrong), /let me in/)
    assert.match(await refusalOf(image, null), /requires a credential, and the template has none/)
    assert.match(await refusalOf(`${depot.host}/nothing:1`, depot.user), /has no such image/)
    assert.match(await refusalOf('127.0.0.1:1/any:1', null), /127\.0\.0\.1:1 cannot be reached/)
    assert.match(await refusalOf('No Image', null), /^invalid: 'No Image' is not a reference of a container image/)
  })

  test('all workers of a release run the image that its name meant at first, the next release what it means then', {
    skip: onPodman,
  }, async () => {
    const image = named('moving')
    const [old, fresh] = [pins(), pins()]
    const first = depot.publish('moving', 'latest', 'one')
    assert.deepEqual(await outputOf(image, { pins: old }), ['one'])
    assert.equal(old.now, `${image}@${first}`)
    depot.publish('moving', 'latest', 'two')
    assert.deepEqual(await outputOf(image, { pins: old }), ['one'])
    assert.deepEqual(await outputOf(image, { pins: fresh }), ['two'])
    assert.deepEqual(await outputOf(image, { pins: old }), ['one'])
  })

  test('a start during which another image was set runs that image', async () => {
    const image = `${named('raced')}:1`
    const first = depot.publish('raced', '1', 'first')
    const winner = { ...pins(), pin: async () => `${named('raced')}@${first}` }
    depot.publish('raced', '1', 'second')
    assert.deepEqual(await outputOf(image, { pins: winner }), ['first'])
  })

  test('an image that was built here is settled by its id; when that is gone the name stands for another one', async () => {
    depot.publish('local', '1', 'old')
    const source = `${named('local')}:1`
    await outputOf(source)
    used.push('runyard-test-local')
    await machine.engine.getImage(source).tag({ repo: 'runyard-test-local', tag: '1' })
    const settled = { ...pins(), now: `sha256:${'0'.repeat(64)}` }
    assert.deepEqual(await outputOf('runyard-test-local:1', { pins: settled }), ['old'])
    assert.match(settled.now, /^sha256:(?!0000)[0-9a-f]{64}$/)
    depot.calls.length = 0
    await outputOf('runyard-test-local:1', { pins: settled })
    assert.deepEqual(depot.calls, [])
  })

  test('an image that was removed after a worker ran it is downloaded again for the next one', async () => {
    depot.publish('removed', '1', 'still the same')
    const image = `${named('removed')}:1`
    const settled = pins()
    for (let turn = 0; turn < 2; turn += 1) {
      depot.calls.length = 0
      assert.deepEqual(await outputOf(image, { pins: settled }), ['still the same'])
      assert.ok(depot.calls.length > 0, 'it was downloaded')
      for (const { Id } of await machine.own()) await machine.engine.getContainer(Id).remove({ force: true })
      const found = await machine.engine.getImage(settled.now!).inspect()
      await machine.engine.getImage(found.Id).remove({ force: true })
    }
  })

  test('a start that is ended while its image is downloaded stops at once', async () => {
    depot.publish('slow', '1', 'slow')
    const gate = depot.hold()
    const spec = machine.spec([], { image: `${named('slow')}:1`, args: '', credential: depot.user })
    const started = driver.start(spec)
    await gate.asked
    assert.equal((await driver.observe(spec.workerId)).state, 'exited')
    await Promise.all([
      driver.kill(spec.workerId),
      assert.rejects(started, { code: 'invalid', message: /stopped while its image was being downloaded/ }),
    ])
    gate.release()
    await driver.release(spec.workerId)
    assert.ok(!(await machine.own()).some(({ Labels }) => Labels['dev.runyard.worker'] === spec.workerId))
  })

  test('a downloaded image is removed a day after its last use when no release runs it; others stay', async () => {
    const names = ['gone', 'wanted', 'own'].map(name => `${named(name)}:1`) as [string, string, string]
    for (const name of ['gone', 'wanted', 'own']) depot.publish(name, '1', name)
    const [gone, wanted, own] = names
    await machine.engine.pull(own, { ...depot.user, serveraddress: depot.host })
    let shift = 0
    const clock = { ...systemClock, now: () => systemClock.now() + shift }
    await driver.close()
    driver = machine.driver({ clock })
    const keep = pins()
    await outputOf(gone)
    await outputOf(wanted, { pins: keep })
    await outputOf(own)
    for (const { Labels } of await machine.own()) await driver.release(Labels['dev.runyard.worker'] as WorkerId)
    const there = async () => {
      const all = await Promise.all(
        names.map(name =>
          machine.engine
            .getImage(name)
            .inspect()
            .catch(() => null),
        ),
      )
      return names.filter((_, i) => all[i] !== null)
    }
    while ((await machine.own()).length > 0) await driver.tidy(new Set(), new Set([keep.now!]))
    assert.deepEqual(await there(), [gone, wanted, own])
    shift = DAY + 1
    await driver.tidy(new Set(), new Set([keep.now!]))
    assert.deepEqual(await there(), [wanted, own])
  })

  test('while the disk is nearly full, what was downloaded goes after an hour already', async () => {
    depot.publish('short', '1', 'short')
    const image = `${named('short')}:1`
    let shift = 0
    let free = 0.5
    const folders = new Set<string>()
    const clock = { ...systemClock, now: () => systemClock.now() + shift }
    await driver.close()
    driver = machine.driver({
      clock,
      freeShare: folder => {
        folders.add(folder)
        return free
      },
    })
    await outputOf(image)
    for (const { Labels } of await machine.own()) await driver.release(Labels['dev.runyard.worker'] as WorkerId)
    while ((await machine.own()).length > 0) await driver.tidy(new Set(), new Set())
    const isThere = () =>
      machine.engine
        .getImage(image)
        .inspect()
        .then(Boolean, () => false)
    shift = DAY / 24 + 1
    await driver.tidy(new Set(), new Set())
    assert.equal(await isThere(), true)
    free = 0.05
    await driver.tidy(new Set(), new Set([image]))
    assert.equal(await isThere(), true, 'an endpoint runs it')
    await driver.tidy(new Set(), new Set())
    assert.equal(await isThere(), false)
    const { DockerRootDir } = (await machine.engine.info()) as { DockerRootDir: string }
    assert.deepEqual([...folders], [DockerRootDir], 'it is the disk of the engine that is looked at')
  })

  test('notes about images that cannot be read are replaced', async () => {
    writeFileSync(join(machine.folder, 'images.json'), '[{"id":')
    await driver.close()
    driver = machine.driver()
    assert.equal(await driver.check('python:3', ''), null)
  })
})
