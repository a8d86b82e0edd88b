import assert from 'node:assert/strict'
import { mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { platform } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { type AssignedGpu, UNPLACED } from '../../../src/core/workers/placement.ts'
import { startFailureText } from '../../../src/core/workers/start-failure.ts'
import { observedExitText } from '../../../src/core/workers/worker-exit.ts'
import type { ProcessIdentity } from '../../../src/drivers/base/process-table.ts'
import { findMarker } from '../../../src/drivers/process/process-marks.ts'
import type { Driver, WorkerSpec } from '../../../src/ports/driver.ts'
import { isRefusal, nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { patient } from '../../support/patience.ts'
import { mountSmallDisk } from '../../support/small-disk.ts'

/** Reason why the driver can never start this, for people; empty if it can. */
async function problemOf(driver: Driver, ...asked: Parameters<Driver['check']>): Promise<string> {
  const failure = await driver.check(...asked)
  return failure === null ? '' : startFailureText(failure)
}

let machine: Machine
beforeEach(async () => {
  machine = await openMachine()
})
afterEach(() => machine.close())

/** Starts a worker that reports its arguments and variables. */
async function report(spec: WorkerSpec, hostEnv = machine.options.hostEnv) {
  await machine.driver({ hostEnv }).start(spec)
  return (await machine.life(spec.workerId, 'report')).report
}

/** A program in the image that ends with the given code, which identifies it. */
async function program(path: string, code: number): Promise<void> {
  const file = join(machine.root, path)
  await mkdir(join(file, '..'), { recursive: true })
  await writeFile(file, `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 })
}

/** The code with which a worker of this image ends. */
async function codeOf(
  image: string,
  args: string,
  hostEnv = machine.options.hostEnv,
  serves: WorkerSpec['serves'] = null,
): Promise<number | null> {
  const spec = machine.spec('', { image, args, serves })
  const driver = machine.driver({ hostEnv })
  await driver.start(spec)
  return (await nextExit(machine.notifier, driver, spec.workerId)).code
}

describe('the environment of a process worker', { timeout: patient(120_000) }, () => {
  test('is exactly the list, whatever the server was started with', async () => {
    const path = '/usr/bin:/bin'
    const secrets = { AWS_SECRET_ACCESS_KEY: 'x', RUNPOD_API_KEY: 'x', RUNYARD_API_KEY: 'x', NODE_OPTIONS: '--inspect' }
    const others = { USER: 'x', SHELL: 'x', PYTHONPATH: 'x', LD_PRELOAD: 'x', XDG_CONFIG_HOME: 'x', UNSET: undefined }
    const listed = { LANG: 'C', LC_ALL: 'C', LC_TIME: 'C', TZ: 'UTC', LD_LIBRARY_PATH: '/nowhere' }
    const cuda = { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', NVIDIA_VISIBLE_DEVICES: 'all' }
    const gpus = { CUDA_VISIBLE_DEVICES: '', ROCR_VISIBLE_DEVICES: '', HIP_VISIBLE_DEVICES: '' }
    const spec = machine.spec('report', { env: { TZ: 'Asia/Tokyo', 'odd.name': 'kept', RUNPOD_LOG_LEVEL: 'TRACE' } })
    const hostEnv = {
      ...secrets,
      ...others,
      ...listed,
      ...cuda,
      CUDA_VISIBLE_DEVICES: '0',
      PATH: path,
      HOME: machine.hostHome,
    }
    const { env } = await report({ ...spec, protocolEnv: { ...spec.protocolEnv, RUNPOD_LOG_LEVEL: 'INFO' } }, hostEnv)
    const folder = join(machine.folder, 'workers', spec.workerId)
    const cache = join(machine.folder, 'caches', spec.endpointId)
    const expected = {
      ...listed,
      ...cuda,
      ...gpus,
      PATH: path,
      TZ: 'Asia/Tokyo',
      'odd.name': 'kept',
      RUNPOD_LOG_LEVEL: 'INFO',
      PYTHONUNBUFFERED: '1',
      RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true',
      XDG_CACHE_HOME: cache,
      HF_HOME: join(cache, 'huggingface'),
      CUDA_CACHE_PATH: join(cache, 'nv'),
      TRITON_CACHE_DIR: join(cache, 'triton'),
      TORCHINDUCTOR_CACHE_DIR: join(cache, 'torchinductor'),
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'tmp'),
      ...spec.protocolEnv,
      ...(platform() === 'linux' ? { PYTHONUSERBASE: join(machine.hostHome, '.local') } : {}),
    }
    const system = Object.entries(env).filter(([name]) => !name.startsWith('__CF_'))
    assert.deepEqual(Object.fromEntries(system), expected)
  })

  test('names the models of a worker, unless it has a cache of its own', async () => {
    const models = [{ folder: 'models--a--b', path: join(machine.folder, 'models--a--b') }]
    for (const part of ['blobs', 'refs', 'snapshots']) await mkdir(join(models[0]!.path, part), { recursive: true })
    const seen = async (env: Record<string, string>) => {
      const spec = machine.spec('report', { models, env })
      return [(await report(spec)).env.HF_HUB_CACHE, join(machine.folder, 'workers', spec.workerId, 'models')]
    }
    const [cache, folder] = await seen({})
    assert.equal(cache, folder)
    assert.equal((await seen({ HF_HOME: '/mine' }))[0], undefined)
    assert.equal((await seen({ HF_HUB_CACHE: '/mine' }))[0], '/mine')
  })

  test('shows a worker the GPUs that it was given, and nothing that its endpoint says changes that', async () => {
    const card = { type: 'NVIDIA L4', memoryGb: 24 }
    const nvidia = [
      { ...card, index: 2, uuid: 'GPU-c' },
      { ...card, index: 0, uuid: null },
    ]
    const amd = [1, 3].map(index => ({ index, uuid: 'x', type: 'AMD Instinct MI300X OAM', memoryGb: 192 }))
    const seen = async (gpus: AssignedGpu[]) => {
      const placement = { ...UNPLACED, gpus }
      const { env } = await report(machine.spec('report', { placement, env: { CUDA_VISIBLE_DEVICES: '7' } }))
      return [env.CUDA_VISIBLE_DEVICES, env.ROCR_VISIBLE_DEVICES, env.HIP_VISIBLE_DEVICES]
    }
    assert.deepEqual(await seen(nvidia), ['GPU-c,0', '', ''])
    assert.deepEqual(await seen(amd), ['0,1', '1,3', '0,1'])
  })

  test('does not lead to the keys in the home of the person who runs the server', async () => {
    await mkdir(join(machine.hostHome, '.runpod'))
    await writeFile(join(machine.hostHome, '.runpod', 'config.toml'), 'api_key = "real"')
    const spec = machine.spec('report', { env: { HOME: machine.hostHome } })
    const { env } = await report(spec)
    assert.equal((await stat(env.HOME as string)).mode & 0o777, 0o700)
    assert.equal((await stat(env.TMPDIR as string)).mode & 0o777, 0o700)
    await assert.rejects(stat(join(env.HOME as string, '.runpod', 'config.toml')), { code: 'ENOENT' })
  })

  test('finds the Python packages where the person has put them, and no cache of the person', async () => {
    const places = { XDG_CACHE_HOME: '/c', HF_HOME: '/h', CUDA_CACHE_PATH: '/n', PYTHONUSERBASE: '/p' }
    const { env } = await report(machine.spec('report'), { ...machine.options.hostEnv, ...places })
    assert.equal(env.PYTHONUSERBASE, '/p')
    assert.doesNotMatch(JSON.stringify(env), /"\/[chn]\b/)
  })

  test('loses its private folder when the worker is released', async () => {
    const driver = machine.driver()
    const spec = machine.spec('')
    await driver.start(spec)
    await machine.life(spec.workerId)
    await driver.kill(spec.workerId)
    await nextExit(machine.notifier, driver, spec.workerId)
    const folder = join(machine.folder, 'workers', spec.workerId)
    await stat(folder)
    await driver.release(spec.workerId)
    await assert.rejects(stat(folder), { code: 'ENOENT' })
  })
})

describe('the folder of a process worker', { timeout: patient(120_000) }, () => {
  const refused = async (image: string, sentence: RegExp, roots = [machine.root]) => {
    const driver = machine.driver({ roots })
    assert.match(await problemOf(driver, image, ''), sentence)
    await assert.rejects(driver.start(machine.spec('', { image, args: '' })), isRefusal)
  }

  test('lies below a process root', async () => {
    const other = join(machine.folder, 'other')
    await mkdir(join(other, 'app'), { recursive: true })
    const driver = machine.driver({ roots: [machine.root, other] })
    for (const image of [
      'dir:app',
      'dir:./app/',
      `dir:${machine.root}/app`,
      'dir:.',
      `dir:${other}/app`,
      'dir:../other/app',
    ]) {
      assert.equal(await driver.check(image, 'true'), null, image)
    }
  })

  test('is refused outside of the roots, by whatever way it is reached', async () => {
    await mkdir(join(machine.folder, 'root-beside'))
    await refused('dir:../host', /outside of the process roots/)
    await refused('dir:app/../../host', /outside of the process roots/)
    await refused('dir:..', /outside of the process roots/)
    await refused('dir:/', /outside of the process roots/)
    await refused(`dir:${machine.root}-beside`, /outside of the process roots/)
    await symlink(machine.hostHome, join(machine.root, 'link'))
    await refused('dir:link', /really .*host.* outside of the process roots/)
  })

  test('is looked at again when the worker starts', async () => {
    const driver = machine.driver()
    await mkdir(join(machine.root, 'swapped'))
    assert.equal(await driver.check('dir:swapped', 'true'), null)
    await rm(join(machine.root, 'swapped'), { recursive: true })
    await symlink(machine.hostHome, join(machine.root, 'swapped'))
    const spec = machine.spec('', { image: 'dir:swapped', args: 'true' })
    await assert.rejects(driver.start(spec), thrown => isRefusal(thrown) && /outside/.test(thrown.message))
  })

  test('may be reached by a link to another place below a root', async () => {
    await symlink(join(machine.root, 'app'), join(machine.root, 'alias'))
    const told = await report(machine.spec('report', { image: 'dir:alias', env: { RUNYARD_WORKING_FOLDER: 'image' } }))
    assert.equal(told.folder, join(machine.root, 'app'))
  })

  test('must exist, and the reason why it cannot run is a message', async () => {
    await writeFile(join(machine.root, 'file'), '')
    await refused('dir:missing', /folder '.*missing' does not exist/)
    await refused('dir:file', /is not a folder/)
    await refused('dir:', /needs the path of a folder/)
    await refused('dir:app', /has no handler.py, .*, app.py or main.py/)
    await refused('dir:app', /no --process-root is set/, [])
    await refused('python:3.12', /image 'python:3.12' needs a container engine, and none is configured/)
    const driver = machine.driver()
    assert.match(await problemOf(driver, 'dir:app', "python 'handler.py"), /quote that is not closed/)
    assert.match(await problemOf(driver, 'dir:app', '{"cmd":"x"}'), /list of strings/)
    assert.match(await problemOf(driver, 'dir:app', '{cmd}'), /is not JSON/)
  })
})

describe('the command of a process worker', { timeout: 120_000 }, () => {
  test('is split into words as a shell does, without one', async () => {
    const told = await report(machine.spec(`'two words' "" "it's" a\\ b $HOME '*' ; "q\\"q"`))
    assert.deepEqual(told.words, ['two words', '', "it's", 'a b', '$HOME', '*', ';', 'q"q'])
  })

  test('may be the JSON that clients write', async () => {
    const args = JSON.stringify({ entrypoint: [process.execPath, 'worker.mjs'], cmd: ['two words', '"'] })
    const told = await report(machine.spec('', { args }))
    assert.deepEqual(told.words, ['two words', '"'])
  })

  test('may be one text in that JSON, unless a program has its name', async () => {
    const text = JSON.stringify({ cmd: [`'${process.execPath}' worker.mjs 'two words' b`] })
    assert.deepEqual((await report(machine.spec('', { args: text }))).words, ['two words', 'b'])
    await program('app/my run', 46)
    assert.equal(await codeOf('dir:app', JSON.stringify({ cmd: ['./my run'] })), 46)
  })

  test('is a handler for this Node where there is no other', async () => {
    await mkdir(join(machine.root, 'node'))
    await writeFile(join(machine.root, 'node', 'handler.mjs'), 'process.exit(41)')
    assert.equal(await codeOf('dir:node', ''), 41)
    await writeFile(join(machine.root, 'node', 'handler.ts'), 'const code: number = 42\nprocess.exit(code)')
    assert.equal(await codeOf('dir:node', ''), 42)
  })

  test("is handler.py first of all, run by the folder's own Python or else by that of the machine", async () => {
    await mkdir(join(machine.root, 'py'))
    await writeFile(join(machine.root, 'py', 'handler.py'), '')
    await writeFile(join(machine.root, 'py', 'handler.mjs'), '')
    await program('programs/python3', 43)
    const hostEnv = { ...machine.options.hostEnv, PATH: join(machine.root, 'programs') }
    assert.equal(await codeOf('dir:py', '', hostEnv), 43)
    await program('py/.venv/bin/python', 44)
    assert.equal(await codeOf('dir:py', '', hostEnv), 44)
    assert.equal(await codeOf('dir:py', 'python handler.py', hostEnv), 44)
  })

  test('is found in the shapes that folders of workers have', async () => {
    await mkdir(join(machine.root, 'shapes', 'src'), { recursive: true })
    await writeFile(join(machine.root, 'shapes', 'src', 'handler.mjs'), 'process.exit(48)')
    assert.equal(await codeOf('dir:shapes', ''), 48)
    await program('shapes/venv/bin/python', 49)
    await writeFile(join(machine.root, 'shapes', 'rp_handler.py'), '')
    assert.equal(await codeOf('dir:shapes', ''), 49, 'a file of the folder comes before one of src')
    await writeFile(join(machine.root, 'shapes', 'app.py'), '')
    assert.equal(await codeOf('dir:shapes', '', undefined, { port: 80, healthPort: 80 }), 49)
  })

  test('is never that of another Python where the environment of the folder is broken', async () => {
    const environment = join(machine.root, 'broken', '.venv')
    await mkdir(join(environment, 'bin'), { recursive: true })
    await writeFile(join(environment, 'pyvenv.cfg'), '')
    await writeFile(join(machine.root, 'broken', 'handler.py'), '')
    await symlink('/nowhere/python3', join(environment, 'bin', 'python'))
    assert.match(
      await problemOf(machine.driver(), 'dir:broken', ''),
      /^the Python of '.*\/broken\/\.venv' does not run, /,
    )
  })

  test('is a server for a serving worker, and the two kinds are never mixed up', async () => {
    await mkdir(join(machine.root, 'both'))
    await writeFile(join(machine.root, 'both', 'handler.mjs'), 'process.exit(46)')
    await writeFile(join(machine.root, 'both', 'server.mjs'), 'process.exit(47)')
    assert.equal(await codeOf('dir:both', ''), 46)
    assert.equal(await codeOf('dir:both', '', undefined, { port: 80, healthPort: 80 }), 47)
    await mkdir(join(machine.root, 'api'))
    await writeFile(join(machine.root, 'api', 'server.js'), '')
    const driver = machine.driver()
    assert.equal(await driver.check('dir:api', ''), null, 'it may be for either')
    assert.equal(await driver.check('dir:api', '', 'LOAD_BALANCER'), null)
    assert.match(
      await problemOf(driver, 'dir:api', '', 'QUEUE'),
      /has no handler.py, .* or rp_handler.py, there or in src.*; its server.js is for a load-balancing endpoint \(--lb\)$/,
    )
    await assert.rejects(
      driver.start(machine.spec('', { image: 'dir:api', args: '' })),
      /has no handler.py, handler.ts, handler.mjs, handler.js or rp_handler.py, there or in src, and no command is given/,
    )
    assert.match(await problemOf(driver, 'dir:app', ''), /has no handler.py, .*, app.py or main.py, there or in src/)
  })

  test('may be a program of the folder', async () => {
    await program('app/bin/run', 45)
    assert.equal(await codeOf('dir:app', 'bin/run'), 45)
    assert.equal(await codeOf('dir:app', './bin/run --quick'), 45)
  })

  test('that is not there is a clear error, and leaves nothing behind', async () => {
    const driver = machine.driver({ hostEnv: { PATH: '/nowhere' } })
    await writeFile(join(machine.root, 'app', 'notes'), '')
    await writeFile(join(machine.root, 'app', 'lost'), '#!/nowhere/python3\n', { mode: 0o755 })
    const secret = { env: { KEY: 'secret\0' } }
    const cases: [args: string, sentence: RegExp, changes?: Partial<WorkerSpec>][] = [
      ['python3 x.py', /^cannot start 'python3': not found in PATH \(\/nowhere\)$/],
      ['cd app && python3 x.py', /not found in PATH .*; args is not a shell script: for one, write sh -c '...'$/],
      ['./missing', /^cannot start '.\/missing': .*app\/missing does not exist$/],
      ['./notes', /app\/notes is not an executable file$/],
      ['./lost', /the program that its #! line names does not exist/],
      ["'' x", /empty word/],
      [machine.spec('').args, /^cannot start '.*': an argument or variable holds a NUL character$/, secret],
    ]
    for (const [args, sentence, changes] of cases) {
      const spec = machine.spec('', { args, ...changes })
      await assert.rejects(driver.start(spec), thrown => isRefusal(thrown) && sentence.test(thrown.message), args)
      await assert.rejects(stat(join(machine.folder, 'workers', spec.workerId)), { code: 'ENOENT' })
    }
    assert.equal((await driver.capacity()).freeWorkers, 8)
    assert.equal((await driver.capacity()).bound, 'the limit of 8 worker processes on this machine (--max-workers)')
  })
})

test('a worker whose private folder cannot be made is not started, and the reason is a message', async () => {
  await writeFile(join(machine.folder, 'full'), '')
  const driver = machine.driver({ workerDir: join(machine.folder, 'full') })
  await assert.rejects(
    driver.start(machine.spec('')),
    thrown => isRefusal(thrown) && /private folder/.test(thrown.message),
  )
})

describe('the end of a process worker', { timeout: patient(120_000) }, () => {
  test('is reported with the signal that ended it', async () => {
    const driver = machine.driver()
    const spec = machine.spec('crashing')
    await driver.start(spec)
    const exit = await nextExit(machine.notifier, driver, spec.workerId)
    assert.deepEqual(exit, { code: null, signal: 'SIGSEGV', cause: { kind: 'ended' } })
  })

  test('reaches what it has started when it is asked to end', async () => {
    const driver = machine.driver()
    const spec = machine.spec('', { args: `sh -c '"${process.execPath}" worker.mjs stubborn; exit 7'` })
    await driver.start(spec)
    await machine.life(spec.workerId)
    await driver.terminate(spec.workerId)
    const { signal } = await nextExit(machine.notifier, driver, spec.workerId)
    assert.equal(signal, 'SIGTERM', 'a shell ends at once and its child would never have heard of it')
    await (await machine.life(spec.workerId)).ended
  })

  const noMarks = 'problem' in findMarker()
  const children = [
    { kind: 'parent', what: 'a child with it that ignores SIGHUP and SIGTERM', skip: false },
    {
      kind: 'runaway',
      what: 'a process with it that has left its session, its parents and its variables',
      skip: noMarks,
    },
  ]
  for (const { kind, what, skip } of children)
    for (const how of ['killed', 'ended by itself'] as const) {
      test(`takes ${what}, when it is ${how}`, { skip }, async () => {
        const driver = machine.driver()
        const spec = machine.spec(kind)
        await driver.start(spec)
        const worker = await machine.life(spec.workerId)
        const child = await machine.life(spec.workerId, 'child')
        if (how === 'killed') await driver.kill(spec.workerId)
        else worker.say('exit')
        await nextExit(machine.notifier, driver, spec.workerId)
        await child.ended
      })
    }

  test('takes a child with it that has left its group', { skip: platform() !== 'linux' }, async () => {
    const driver = machine.driver()
    const spec = machine.spec('daemons')
    await driver.start(spec)
    const child = await machine.life(spec.workerId, 'child')
    await driver.kill(spec.workerId)
    await child.ended
  })

  test('takes such a process with it also when the next server sees its end, or nobody', {
    skip: noMarks,
  }, async () => {
    for (const isSeen of [true, false]) {
      const first = machine.driver()
      const spec = machine.spec('runaway')
      const handle = await first.start(spec)
      const worker = await machine.life(spec.workerId)
      const child = await machine.life(spec.workerId, 'child')
      first.close()
      const next = machine.driver()
      if (isSeen) assert.equal(await next.adopt(spec.workerId, handle), true)
      worker.say('exit')
      await worker.ended
      if (isSeen) await nextExit(machine.notifier, next, spec.workerId)
      else while (await machine.driver().adopt(spec.workerId, null));
      await child.ended
    }
  })

  test('is seen by the next server too, which ends the orphans', async () => {
    const first = machine.driver()
    const spec = machine.spec('parent')
    const handle = await first.start(spec)
    const worker = await machine.life(spec.workerId)
    const child = await machine.life(spec.workerId, 'child')
    first.close()
    const next = machine.driver()
    assert.equal(await next.adopt(spec.workerId, handle), true)
    worker.say('exit')
    const exit = await nextExit(machine.notifier, next, spec.workerId)
    assert.equal(observedExitText(exit), 'ended while or after the server was restarted; its exit code is unknown')
    await child.ended
  })

  test('while no server runs leaves no orphan for long', { skip: platform() !== 'linux' }, async () => {
    const first = machine.driver()
    const spec = machine.spec('parent')
    const handle = await first.start(spec)
    const worker = await machine.life(spec.workerId)
    const child = await machine.life(spec.workerId, 'child')
    first.close()
    worker.say('exit')
    await worker.ended
    // Its connection ends a moment before the process does.
    let adopted = true
    for (let tries = 0; adopted && tries < 10_000; tries += 1) {
      const next = machine.driver()
      adopted = await next.adopt(spec.workerId, handle)
      next.close()
    }
    assert.equal(adopted, false)
    await child.ended
  })
})

describe('the identity of a process worker', { timeout: patient(120_000) }, () => {
  test('is more than its pid: another process with that pid is left alone', async () => {
    const first = machine.driver()
    const spec = machine.spec('stubborn')
    const identity = JSON.parse(await first.start(spec)) as ProcessIdentity
    const bystander = await machine.life(spec.workerId)
    first.close()
    const next = machine.driver()
    const other = 'another-worker' as WorkerId
    for (const change of [
      { startTime: '1' },
      { bootId: 'another boot' },
      { pid: 1 },
      { pid: 0 },
      { pid: -1 },
      { pid: '5' },
    ]) {
      assert.equal(await next.adopt(other, JSON.stringify({ ...identity, ...change })), false, JSON.stringify(change))
    }
    await next.terminate(other)
    await next.kill(other)
    assert.equal(await next.adopt(spec.workerId, JSON.stringify(identity)), true, 'it was not harmed')
    bystander.say('exit')
    await bystander.ended
  })

  test('is found even where the server died before it could write anything', {
    skip: platform() !== 'linux',
  }, async () => {
    const first = machine.driver()
    const spec = machine.spec('parent')
    const handle = await first.start(spec)
    await machine.life(spec.workerId, 'child')
    first.close()
    const file = join(machine.folder, 'workers', spec.workerId, 'process.json')
    assert.equal(await readFile(file, 'utf8'), handle)
    await rm(file)
    const next = machine.driver()
    assert.equal(await next.adopt(spec.workerId, null), true)
    await next.kill(spec.workerId)
    await (await machine.life(spec.workerId)).ended
    await (await machine.life(spec.workerId, 'child')).ended
  })
})

test('a worker that ends by itself while the disk is full has that as its cause; one that was asked to end has not', async t => {
  const disk = mountSmallDisk(4)
  if (disk === null) return t.skip('this user mounts no file system')
  t.after(() => disk.close())
  const driver = machine.driver({ workerDir: join(disk.folder, 'workers') })
  const now = join(machine.folder, 'now')
  const args = `sh -c 'while [ ! -e "${now}" ]; do sleep 0.02; done; exit 1'`
  const [failing, obedient] = [machine.spec('', { args }), machine.spec('obedient')]
  await driver.start(failing)
  await driver.start(obedient)
  await machine.life(obedient.workerId)
  disk.fill()
  await writeFile(now, '')
  const exit = await nextExit(machine.notifier, driver, failing.workerId)
  assert.deepEqual(exit.cause, { kind: 'machine_disk_full' })
  assert.equal(observedExitText(exit), 'exited with code 1 while the disk of this machine was full')
  await driver.terminate(obedient.workerId)
  assert.equal((await nextExit(machine.notifier, driver, obedient.workerId)).cause.kind, 'ended')
})
