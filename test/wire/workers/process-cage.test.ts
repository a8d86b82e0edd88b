/** Workers in a cage, as the process driver starts, ends and adopts them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ObservedExit, observedExitText } from '../../../src/core/workers/worker-exit.ts'
import { FreePorts } from '../../../src/drivers/base/served-ports.ts'
import { cageOptions } from '../../../src/drivers/cage/arguments.ts'
import { Cage } from '../../../src/drivers/cage/cage.ts'
import { findLimits } from '../../../src/drivers/cage/limits.ts'
import { lackWithoutCage, tryOwnNetwork } from '../../../src/drivers/cage/network-trial.ts'
import { OwnNetwork } from '../../../src/drivers/cage/own-network.ts'
import { NO_BUBBLEWRAP, tryCage, tryCageAside } from '../../../src/drivers/cage/trial.ts'
import type { ProcessDriver } from '../../../src/drivers/process/process.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'

const trial = tryCage()
const skip = 'problem' in trial && process.env.RUNYARD_NO_SKIP !== '1' ? trial.problem : false

const missing = 'problem' in trial ? null : tryOwnNetwork(trial.bwrap, true)
const noNetwork = missing !== null && process.env.RUNYARD_NO_SKIP !== '1' ? missing.problem : false

/** Tells that it runs, and ends by itself when asked, with 7. */
const PROGRAM = `
process.on('SIGTERM', () => { console.log('asked'); process.exit(7) })
console.log('begun ' + process.env.SECRET)
if (process.argv[2] === 'crash') process.kill(process.pid, 'SIGSEGV')
if (process.argv[2] === 'code') process.exit(3)
setInterval(() => { if (process.argv[2] === 'tick') console.log('tick') }, process.argv[2] === 'tick' ? 10 : 1000)
`

/** Names all that lies where its image lies. */
const BESIDE = `
import { readdirSync } from 'node:fs'
console.log('beside it: ' + readdirSync(process.argv[2]).join())
`

/** Wants a fixed port, as the server that worker-vllm starts. */
const FIXED = `
import { createServer } from 'node:http'
const refused = error => console.log(String(error))
createServer().on('error', refused).listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listens'))
setInterval(() => {}, 1000)
`

/** Writes beside itself. */
const CHANGES = `
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
const state = new URL('state.txt', import.meta.url)
appendFileSync(state, ' and after')
mkdirSync(new URL('cache', import.meta.url))
console.log(String(readFileSync(state)))
`

/** Writes without end, a little at a time. */
const FILLS = `
import { openSync, unlinkSync, writeSync } from 'node:fs'
const path = process.env.HOME + '/full'
const file = openSync(path, 'w')
// unlink
setInterval(() => writeSync(file, Buffer.alloc(4 << 20, 1)), 20)
`

/** As the system's clock, but nobody waits for long. */
const impatient: Clock = { ...systemClock, after: (ms, callback) => systemClock.after(Math.min(ms, 200), callback) }

describe('the options of a cage', () => {
  const spec = {
    readable: ['/usr', '/srv/image'],
    writable: ['/data/w/home'],
    tmp: '/data/w/tmp',
    volume: '/data/v',
    models: [],
    modelFolder: null,
    resolver: null,
    links: [],
    layer: null,
    shared: [],
    hidden: [{ path: '/data', isFolder: true }],
    shown: ['/data/builds/b'],
    masks: [],
    mounts: [{ path: '/data/volumes/v', at: '/models' }],
    devices: ['/dev/nvidia0'],
    folder: '/data/w/work',
    env: { A: 'b' },
    program: '/usr/bin/python3',
    words: ['x'],
  }
  const text = cageOptions(spec).join(' ')

  test('what is hidden lies above what is readable and below what is the own', () => {
    const parts = ['--ro-bind-try /srv/image', '--tmpfs /data', '--ro-bind-try /data/builds/b', '--bind /data/w/home']
    const places = parts.map(part => text.indexOf(part))
    assert.ok(places.every(place => place > 0))
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    )
  })

  test('there are namespaces of its own, no capabilities, and a root that cannot be changed', () => {
    for (const part of ['--unshare-user', '--unshare-pid', '--disable-userns', '--cap-drop ALL', '--remount-ro /']) {
      assert.ok(text.includes(part), part)
    }
    assert.ok(!text.includes('--die-with-parent'))
    assert.ok(text.includes('--bind /data/v /runpod-volume'))
    assert.ok(text.includes('--bind /data/volumes/v /models'))
  })
})

test('a machine without bubblewrap, and one without Linux, say what helps', async () => {
  assert.deepEqual(tryCage('linux', ['/nowhere/bwrap']), {
    problem: 'bubblewrap (bwrap) is not installed',
    action: 'install the package bubblewrap',
  })
  assert.deepEqual(tryCage('darwin'), { problem: 'cages need Linux', action: 'run workers in containers' })
  // As the server finds it while it serves.
  assert.deepEqual(await tryCageAside('linux', ['/nowhere/bwrap']), tryCage('linux', ['/nowhere/bwrap']))
  assert.deepEqual(await tryCageAside('linux', ['/bin/false']), tryCage('linux', ['/bin/false']))
  assert.deepEqual(await tryCageAside(), trial)
})

test('a machine without slirp4netns has networks that lead to the server alone, and says what to install', {
  skip,
}, () => {
  assert.ok('bwrap' in trial)
  assert.equal(tryOwnNetwork(trial.bwrap, false, '/nowhere'), null)
  const lack = tryOwnNetwork(trial.bwrap, true, '/nowhere')
  assert.deepEqual(lack, {
    problem: 'slirp4netns and util-linux and iproute2 are not installed',
    action: 'install the packages slirp4netns and util-linux and iproute2',
  })
})

test('a machine without bubblewrap gets the list of all that its workers need for networks of their own', () => {
  const cage = { problem: NO_BUBBLEWRAP, action: 'install the package bubblewrap' }
  assert.match(lackWithoutCage(cage, 'open').action, /^install the packages? bubblewrap/)
  assert.deepEqual(lackWithoutCage(cage, 'server'), cage)
  const other = { problem: 'cages need Linux', action: 'run workers in containers' }
  assert.deepEqual(lackWithoutCage(other, 'open'), other)
})

/** Runs a command as a user without rights. */
const AS_NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
const module = fileURLToPath(new URL('../../../src/drivers/cage/trial.ts', import.meta.url))
const cannotChange =
  process.geteuid?.() !== 0 || spawnSync('setpriv', [...AS_NOBODY.slice(1), 'cat', module]).status !== 0

test('a server without root finds out whether there are layers, and leaves nothing of the trial', {
  skip: skip || (cannotChange && 'only root can be another user here'),
}, () => {
  assert.ok('bwrap' in trial)
  const folder = temporaryFolder()
  chownSync(folder, 65534, 65534)
  chmodSync(dirname(folder), 0o711)
  const program = `const { tryLayers } = await import(${JSON.stringify(module)})
console.log(tryLayers(${JSON.stringify(trial.bwrap)}, ${JSON.stringify(folder)}, []))`
  const [name = '', ...words] = [...AS_NOBODY, process.execPath, '--input-type=module', '-e', program]
  const { stdout, stderr } = spawnSync(name, words, { encoding: 'utf8', cwd: '/' })
  assert.match(stdout, /true|false/, stderr)
  assert.deepEqual(readdirSync(folder), [])
})

for (const [name, isOwn, lack] of [
  ['the network of the machine', false, false],
  ['a network of its own', true, noNetwork],
] as const) {
  describe(`a worker in a cage, with ${name}`, { skip: skip || lack, timeout: patient(60_000) }, () => {
    let machine: Machine
    let driver: ProcessDriver
    const cages = (diskGb = 0, limits = findLimits(), hiddenFolders = ['workers'], readable: string[] = []): Cage => {
      assert.ok('bwrap' in trial)
      const { bwrap, filter } = trial
      const hidden = hiddenFolders.map(name => ({ path: join(machine.folder, name), isFolder: true }))
      const socket = join(machine.folder, 'workers.sock')
      const functionSocket = join(machine.folder, 'functions.sock')
      const own = { bwrap, nodePath: process.execPath, clock: systemClock, socket, functionSocket, open: true }
      const given = {
        readable,
        writable: [],
        diskGb,
        filter,
        layers: true,
        network: isOwn ? new OwnNetwork(own) : null,
      }
      return new Cage({ bwrap, limits, hidden, ...given })
    }

    before(async () => {
      machine = await openMachine()
      writeFileSync(join(machine.root, 'app', 'caged.mjs'), PROGRAM)
      driver = machine.driver({ cage: cages() })
    })
    after(() => machine.close())

    test(isOwn ? 'listens on the same port as another one' : 'names the one that has its port', async () => {
      writeFileSync(join(machine.root, 'app', 'fixed.mjs'), FIXED)
      const { port } = await new FreePorts(machine.options.firstPort).pick({ port: 80, healthPort: 80 })
      const start = async () => {
        const spec = machine.spec('', { args: `'${process.execPath}' fixed.mjs ${port}` })
        await driver.start(spec)
        return spec
      }
      const says = async (spec: WorkerSpec, text: string) => {
        while (!output(spec).includes(text)) await sleep(20)
      }
      const first = await start()
      await says(first, 'listens')
      const second = await start()
      await says(
        second,
        isOwn ? 'listens' : `is in use by worker ${first.workerId} of the same endpoint: workers of folders share`,
      )
      assert.equal(output(second).includes('runyard:'), !isOwn)
      for (const { workerId } of [first, second]) await driver.kill(workerId)
    })

    const begin = async (words = '', driving = driver): Promise<WorkerSpec> => {
      const args = `'${process.execPath}' caged.mjs ${words}`
      const spec = machine.spec('', { args, env: { SECRET: 'hush', LD_PRELOAD: '/nowhere.so' } })
      await driving.start(spec)
      while (!output(spec).includes('begun hush')) await sleep(20)
      return spec
    }
    const output = ({ workerId }: WorkerSpec) => {
      const file = join(machine.logs.folder(workerId), '0.log')
      return existsSync(file) ? readFileSync(file, 'utf8') : ''
    }
    const exitOf = async (of: ProcessDriver, { workerId }: WorkerSpec): Promise<ObservedExit> => {
      for (;;) {
        const seen = await of.observe(workerId)
        if (seen.state === 'exited') return seen.exit
        await sleep(20)
      }
    }

    test('it receives the stop signal, and ends in its own way', async () => {
      const spec = await begin()
      await driver.terminate(spec.workerId)
      assert.equal((await exitOf(driver, spec)).code, 7)
      assert.match(output(spec), /asked/)
      await driver.release(spec.workerId)
    })

    test('it reads its image also in a hidden part of a folder that it may read, and nothing beside it', async () => {
      writeFileSync(join(machine.root, 'secret'), 'not for workers')
      writeFileSync(join(machine.root, 'app', 'beside.mjs'), BESIDE)
      const hidden = relative(machine.folder, machine.root)
      const next = machine.driver({ cage: cages(0, findLimits(), [hidden], [machine.folder]) })
      const spec = machine.spec('', { args: `'${process.execPath}' beside.mjs ${machine.root}` })
      await next.start(spec)
      assert.equal((await exitOf(next, spec)).code, 0)
      assert.match(output(spec), /beside it: app$/m)
    })

    test('its exit is reported as it was', async () => {
      assert.equal((await exitOf(driver, await begin('code'))).code, 3)
      assert.equal((await exitOf(driver, await begin('crash'))).signal, 'SIGSEGV')
    })

    test('it ends with all that holds it when it is killed', async () => {
      const spec = await begin()
      await driver.kill(spec.workerId)
      assert.equal((await exitOf(driver, spec)).signal, 'SIGKILL')
    })

    test('the next server adopts it and can ask it to end', async () => {
      const spec = await begin()
      const next = machine.driver({ cage: cages() })
      assert.equal(await next.adopt(spec.workerId, null), true)
      await next.terminate(spec.workerId)
      await exitOf(next, spec)
      assert.match(output(spec), /asked/)
    })

    for (const [how, limits] of [
      ['its control group, where it has one', findLimits()],
      ['signals', { ...findLimits(), freezer: null }],
    ] as const) {
      test(`it is frozen by ${how}, also for the next server, and ends in its own way`, async () => {
        const first = machine.driver({ cage: cages(0, limits) })
        const spec = await begin('tick', first)
        const ticks = () => output(spec).length
        const holds = async () => {
          // Its earlier output has to arrive first.
          for (let look = 0; look < 20; look += 1) {
            const before = ticks()
            await sleep(100)
            if (ticks() === before) return true
          }
          return false
        }
        const goesOn = async () => {
          for (const before = ticks(); ticks() === before; ) await sleep(5)
        }
        for (let round = 0; round < 3; round += 1) {
          await first.freeze(spec.workerId)
          assert.equal(await holds(), true)
          await first.thaw(spec.workerId)
          await goesOn()
        }
        await first.freeze(spec.workerId)
        first.close()
        // It is thawed by what it was frozen by, whatever this server has.
        const next = machine.driver({ cage: cages() })
        assert.equal(await next.adopt(spec.workerId, null), true)
        assert.equal(await holds(), true)
        await next.thaw(spec.workerId)
        await goesOn()
        await next.freeze(spec.workerId)
        await next.terminate(spec.workerId)
        await exitOf(next, spec)
        assert.match(output(spec), /asked/)
      })
    }

    for (const [where, workers] of [
      ['beside the image', 'workers'],
      ['in the image', 'root/app/workers'],
    ] as const) {
      test(`what it changes in its image is its own, with the folders of workers ${where}`, async () => {
        const image = join(machine.root, 'app')
        writeFileSync(join(image, 'state.txt'), 'before')
        writeFileSync(join(image, 'changes.mjs'), CHANGES)
        const changing = machine.driver({ cage: cages(), workerDir: join(machine.folder, workers) })
        const spec = machine.spec('', { args: `'${process.execPath}' '${image}/changes.mjs'` })
        await changing.start(spec)
        assert.equal((await exitOf(changing, spec)).code, 0, output(spec))
        assert.equal(output(spec), 'before and after\n')
        assert.equal(readFileSync(join(image, 'state.txt'), 'utf8'), 'before')
        assert.ok(!existsSync(join(image, 'cache')))
        await changing.release(spec.workerId)
        assert.ok(!existsSync(join(machine.folder, workers, spec.workerId)))
        assert.ok(!existsSync(`/var/tmp/runyard-layer-${spec.workerId}`))
      })
    }

    const ownDisk = 'wrote more than the 0.1 GB of its disk (--worker-disk)'
    const sharedCache = 'the cache of its endpoint held more than 0.1 GB (--worker-cache)'
    for (const [how, program, why] of [
      ['a file', FILLS, `it ${ownDisk}`],
      ['a file without a name', FILLS.replace('// unlink', 'unlinkSync(path)'), `it ${ownDisk}`],
      ['a file in the cache of its endpoint', FILLS.replace('HOME', 'XDG_CACHE_HOME'), sharedCache],
    ] as const) {
      test(`it is killed when it fills the disk with ${how}, and how it ended says why`, async () => {
        writeFileSync(join(machine.root, 'app', 'fills.mjs'), program)
        const caches = { ...machine.options.caches, limitGb: 0.1 }
        const watched = machine.driver({ cage: cages(0.1), clock: impatient, caches })
        const spec = machine.spec('', { args: `'${process.execPath}' fills.mjs` })
        await watched.start(spec)
        const exit = await exitOf(watched, spec)
        assert.deepEqual([exit.signal, observedExitText(exit)], ['SIGKILL', `was killed because ${why}`])
        await watched.release(spec.workerId)
        watched.close()
      })
    }

    test('its variables are in no list of processes', async () => {
      const spec = await begin()
      const { pid } = JSON.parse(readFileSync(join(machine.folder, 'workers', spec.workerId, 'process.json'), 'utf8'))
      for (const file of ['cmdline', 'environ'])
        assert.doesNotMatch(readFileSync(`/proc/${pid}/${file}`, 'utf8'), /hush|LD_PRELOAD/)
      await driver.kill(spec.workerId)
      await exitOf(driver, spec)
    })
  })
}
