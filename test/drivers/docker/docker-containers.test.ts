/** Limits of a worker's container, the storage of its output, and the report of its end. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { VolumeId, WorkerId } from '../../../src/core/ids.ts'
import { UNPLACED } from '../../../src/core/workers/placement.ts'
import { startFailureText } from '../../../src/core/workers/start-failure.ts'
import { observedExitText } from '../../../src/core/workers/worker-exit.ts'
import type { DockerDriver } from '../../../src/drivers/docker/docker.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { nextExit } from '../../contract/driver.ts'
import { type DockerMachine, noDocker, onPodman, openDockerMachine } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'

/**
 * Ends well when the kernel lets it have exactly what CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID,
 * SETUID, NET_BIND_SERVICE allow.
 */
const RIGHTS = 'grep -qx "CapBnd:.00000000000004fb" /proc/self/status && grep -qx "NoNewPrivs:.1" /proc/self/status'

describe('a container of a worker', { skip: noDocker, timeout: patient(120_000) }, () => {
  let machine: DockerMachine
  let driver: DockerDriver
  before(async () => {
    machine = await openDockerMachine()
    driver = machine.driver()
  })
  after(() => machine.close())
  const inspect = (worker: WorkerId) => machine.engine.getContainer(`runyard-${worker}`).inspect()
  const exit = (worker: WorkerId) => nextExit(machine.notifier, driver, worker)
  const run = async (words: readonly string[], changes: Parameters<DockerMachine['spec']>[1] = {}) => {
    const spec = machine.spec(words, changes)
    await driver.start(spec)
    return spec.workerId
  }

  test('has an init, few rights, and bounds on processes, memory, processors and output', async () => {
    const placement = { ...UNPLACED, vcpus: 1.5, memoryMb: 300 }
    const worker = await run(['sleep', '60'], { placement, diskGb: 3 })
    const { Config, HostConfig: host } = await inspect(worker)
    assert.deepEqual([host.Init, host.RestartPolicy?.Name, host.PidsLimit], [true, 'no', 8192])
    assert.deepEqual(host.SecurityOpt, ['no-new-privileges'])
    if (!onPodman) {
      assert.deepEqual(host.CapDrop, ['ALL'])
      assert.deepEqual((host.CapAdd as string[]).map(name => name.replace('CAP_', '')).sort(), [
        ...['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID'],
      ])
    }
    assert.deepEqual([host.Memory, host.NanoCpus], [300 * 1024 * 1024, 1.5e9])
    assert.ok(host.MemorySwap === host.Memory || host.MemorySwap === -1, 'no swap, or an engine that cannot count it')
    assert.equal(host.ShmSize, 64 * 1024 * 1024)
    if (!onPodman)
      assert.deepEqual(host.LogConfig, { Type: 'json-file', Config: { 'max-file': '2', 'max-size': '16m' } })
    assert.equal(Config.Labels['dev.runyard.worker'], worker)
    assert.equal(Config.Labels['dev.runyard.installation'], machine.installation)
    assert.equal(Config.Hostname, worker)
    await driver.kill(worker)
  })

  test('has the variables of its endpoint, those of the protocol take precedence, and no variable gives it all GPUs', async () => {
    const env = { MINE: 'yes', RUNPOD_POD_ID: 'not me', NVIDIA_VISIBLE_DEVICES: 'all' }
    const spec = machine.spec(['env'], { env })
    await driver.start(spec)
    await exit(spec.workerId)
    const said = await machine.output(spec.workerId)
    for (const line of ['MINE=yes', `RUNPOD_POD_ID=${spec.workerId}`, 'NVIDIA_VISIBLE_DEVICES=void']) {
      assert.ok(said.includes(line), line)
    }
  })

  test('finds the files of its endpoint, and keeps what it writes there', async () => {
    const path = join(machine.folder, 'volume')
    mkdirSync(path)
    writeFileSync(join(path, 'model'), 'weights\n')
    const script = 'cat /runpod-volume/model; echo $RUNPOD_VOLUME_PATH; echo done > /runpod-volume/result'
    const worker = await run(['sh', '-c', script], {
      volume: { id: 'v' as VolumeId, path },
      protocolEnv: { RUNPOD_VOLUME_PATH: path },
    })
    await exit(worker)
    assert.deepEqual(await machine.output(worker), ['weights', '/runpod-volume'])
    assert.equal(readFileSync(join(path, 'result'), 'utf8'), 'done\n')
  })

  test('a task finds its volumes at the paths that its program names', async () => {
    const [data, models] = ['data', 'models'].map(name => join(machine.folder, name)) as [string, string]
    for (const path of [data, models]) {
      mkdirSync(path)
      writeFileSync(join(path, 'name'), `${path}\n`)
    }
    const volume = { id: 'd' as VolumeId, path: data }
    const mounts = [
      { ...volume, at: '/data' },
      { id: 'm' as VolumeId, path: models, at: '/srv/models' },
    ]
    const script = 'cat /data/name /runpod-volume/name /srv/models/name; echo done > /srv/models/result'
    const worker = await run(['sh', '-c', script], { volume, mounts })
    await exit(worker)
    assert.deepEqual(await machine.output(worker), [data, data, models])
    assert.equal(readFileSync(join(models, 'result'), 'utf8'), 'done\n')
  })

  test('a volume whose folder the engine does not see is the reason why it does not start', {
    skip: onPodman,
  }, async () => {
    const volume = { id: 'v' as VolumeId, path: join(machine.folder, 'nowhere') }
    await assert.rejects(run(['true'], { volume }), { code: 'invalid', message: /folder of the network volume/ })
  })

  test('args are what the image starts with, or an entry point of their own', async () => {
    const line = machine.spec([], { args: `sh -c 'echo "$0 and $1"' one 'two words'` })
    const json = machine.spec([], { args: JSON.stringify({ entrypoint: ['echo', 'entry'], cmd: ['command'] }) })
    for (const spec of [line, json]) {
      await driver.start(spec)
      await exit(spec.workerId)
    }
    assert.deepEqual(await machine.output(line.workerId), ['one and two words'])
    assert.deepEqual(await machine.output(json.workerId), ['entry command'])
  })

  test('a GPU that the engine cannot give is the reason why it does not start', async () => {
    const gpu = { index: 0, uuid: 'GPU-1', type: 'NVIDIA L4', memoryGb: 24 }
    await assert.rejects(run(['true'], { placement: { ...UNPLACED, gpus: [gpu] } }), {
      code: 'invalid',
      message: onPodman
        ? /gives containers no GPUs/
        : /cannot give GPUs to containers; install the NVIDIA Container Toolkit/,
    })
    assert.equal((await machine.own()).filter(({ State }) => State === 'created').length, 0)
  })

  test('has the rights of the kernel that its container is made with, and no others', async () => {
    const { signal, code } = await exit(await run(['sh', '-c', RIGHTS]))
    assert.deepEqual([signal, code], [null, 0])
  })

  test('a worker that exceeds its memory ends with that reason', { skip: onPodman }, async () => {
    const words = ['python3', '-c', 'x = bytearray(200 * 1024 * 1024); print(len(x))']
    const worker = await run(words, { placement: { ...UNPLACED, memoryMb: 32 } })
    const end = await exit(worker)
    assert.deepEqual([end.cause, end.signal], [{ kind: 'out_of_memory', limitMb: 32 }, 'SIGKILL'])
    assert.equal(observedExitText(end), 'was killed because it used more than its 32 MB of memory')
  })

  test('a program that is missing or not executable is named', async () => {
    const path = join(machine.folder, 'programs')
    mkdirSync(path)
    writeFileSync(join(path, 'text'), 'just text\n')
    const volume = { id: 'v' as VolumeId, path }
    const causeOf = async (program: string) => observedExitText(await exit(await run([program], { volume })))
    assert.match(await causeOf('/nowhere'), /^exited with code (127|1) because its program.* does not exist/)
    assert.match(await causeOf('/runpod-volume/text'), /^exited with code (126|1) because its program.* is not exec/)
  })

  test('a container that was removed from outside has ended, with that reason', async () => {
    const worker = await run(['sleep', '60'])
    await machine.engine.getContainer(`runyard-${worker}`).remove({ force: true })
    assert.match(
      observedExitText(await exit(worker)),
      /was killed by SIGKILL|removed from the container engine by another program/,
    )
  })

  test('its output is in the log once and whole, however often the server is replaced', async () => {
    const lines = 3_000
    const script = `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo "line $i"; [ $((i%20)) = 0 ] && sleep 0.01; done
      head -c 40000 /dev/zero | tr '\\0' x; echo; sleep 0.1; echo last >&2; sleep 0.1; printf 'no end'`
    const spec = machine.spec(['sh', '-c', script])
    const handle = await driver.start(spec)
    for (const line of [400, 1000, 1600]) {
      await machine.said(spec.workerId, `line ${line}`)
      // The server dies without a word: its driver is left as it is, and writes nothing more.
      await driver.close()
      driver = machine.driver()
      await driver.adopt(spec.workerId, handle)
    }
    await exit(spec.workerId)
    const expected = [...Array.from({ length: lines }, (_, i) => `line ${i + 1}`), 'x'.repeat(40_000), 'last', 'no end']
    const text = readFileSync(join(machine.logs.folder(spec.workerId), '0.log'), 'utf8')
    const short = (line: string) => line.replace(/x{9,}/, run => `x times ${run.length}`)
    assert.deepEqual(text.split('\n').map(short).sort(), expected.map(short).sort())
  })

  test('output of a worker from the time without a server is in its log, although it has ended', async () => {
    const spec = machine.spec(['sh', '-c', 'echo one; sleep 0.5; echo two'])
    const handle = await driver.start(spec)
    await machine.said(spec.workerId, 'one')
    await driver.close()
    await machine.engine.getContainer(`runyard-${spec.workerId}`).wait()
    driver = machine.driver()
    assert.equal(await driver.adopt(spec.workerId, handle), false)
    assert.deepEqual(await machine.output(spec.workerId), ['one', 'two'])
  })

  test('while the engine is away a worker is seen by its process, and ended by it', async () => {
    const spec = machine.spec(['sleep', '60'])
    const handle = await driver.start(spec)
    const alone = machine.driver({ addresses: () => engineAddresses('unix:///nowhere.sock', {}) })
    assert.match(
      startFailureText((await alone.check(spec.image, ''))!),
      /container engine is away: none was found at unix:\/\/\/nowhere\.sock/,
    )
    assert.equal(await alone.adopt(spec.workerId, null), false)
    assert.equal(await alone.adopt(spec.workerId, handle), true)
    assert.deepEqual(await alone.observe(spec.workerId), { state: 'running' })
    await assert.rejects(alone.start(machine.spec(['true'])), { code: 'invalid', message: /container engine is away/ })
    await alone.kill(spec.workerId)
    assert.match(observedExitText(await nextExit(machine.notifier, alone, spec.workerId)), /^ended/)
    await alone.release(spec.workerId)
    await exit(spec.workerId)
  })

  test('a release removes the container, and tidying removes unknown ones, of this installation alone', async () => {
    const other = await openDockerMachine()
    try {
      const foreign = other.spec(['sleep', '60'])
      await other.driver().start(foreign)
      const [released, stray, kept] = [await run(['true']), await run(['sleep', '60']), await run(['sleep', '60'])]
      await exit(released)
      await driver.release(released)
      await driver.close()
      driver = machine.driver()
      await driver.adopt(kept, null)
      await driver.tidy(new Set([kept]), new Set())
      const left = (await machine.own()).map(({ Labels }) => Labels['dev.runyard.worker'])
      assert.ok(left.includes(kept))
      for (const gone of [released, stray]) assert.ok(!left.includes(gone))
      assert.equal((await other.own()).length, 1)
      await driver.kill(kept)
    } finally {
      await other.close()
    }
  })
})
