/** Workers of RunPod's SDK 2.0 as processes: their Python, their folder and their variables. */
import assert from 'node:assert/strict'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { placedMounts } from '../../../src/core/endpoints/mounts.ts'
import { startFailureText } from '../../../src/core/workers/start-failure.ts'
import { RuntimeCommands } from '../../../src/drivers/process/runtime-command.ts'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { patient } from '../../support/patience.ts'

let machine: Machine
let folder: string
let programs: string
beforeEach(async () => {
  machine = await openMachine()
  folder = join(machine.root, 'apps')
  programs = join(folder, 'bin')
  await mkdir(programs, { recursive: true })
})
afterEach(() => machine.close())

/**
 * A Python that says its version, makes environments of itself, and as a worker writes its variables to a file and
 * ends with 7.
 * @param has false for one without the packages of live workers
 */
async function python(version: string, path: string, has = true): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  const text = `#!/bin/sh
case "$*" in
  *sys.version_info*) echo ${version} ;;
  '-c '*util.find_spec*) ;; # It finds packages that the worker does not see.
  *util.find_spec*) test ${has} = true || test -e "$(dirname "$0")/installed" ;;
  '-m venv '*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  '-m pip '*) echo installed >>${folder}/pip && test -z "$PIP_NO_INDEX" || { echo 'no index'; exit 1; }
    touch "$(dirname "$0")/installed" ;;
  '-m runpod_sdk_runtime.bootstrap') echo "$0" >${folder}/program; pwd >${folder}/cwd; ls >${folder}/files
    env >${folder}/env; exit 7 ;;
  *) exit 3 ;;
esac
`
  await writeFile(path, text, { mode: 0o755 })
}

function driver(hostEnv: Record<string, string> = {}) {
  return machine.driver({
    hostEnv: { ...machine.options.hostEnv, PATH: `${programs}:/usr/bin:/bin`, ...hostEnv },
    runtime: { runtime: '/opt/runtime', environments: join(folder, 'environments') },
  })
}

function spec(changes: Partial<WorkerSpec>): WorkerSpec {
  return machine.spec('', { image: 'runpod/queue:py3.11-latest', args: '', ...changes })
}

/** The variables of a worker that has ended. */
async function variablesOf(changes: Partial<WorkerSpec>, hostEnv = {}): Promise<Record<string, string>> {
  const worker = spec(changes)
  const workers = driver(hostEnv)
  await workers.start(worker)
  assert.equal((await nextExit(machine.notifier, workers, worker.workerId)).code, 7)
  const lines = (await readFile(join(folder, 'env'), 'utf8')).split('\n')
  return Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

/** An unpacked build that nobody may change. */
async function build(): Promise<string> {
  const path = join(folder, 'build')
  await mkdir(path)
  await writeFile(join(path, 'main.py'), '')
  await chmod(path, 0o555)
  return path
}

describe('a worker of an app', { timeout: patient(60_000) }, () => {
  test('of a deployment starts its version of Python with the runtime and its build', async () => {
    await python('3.11', join(programs, 'python3.11'), false)
    const path = await build()
    const mounts = [
      { kind: 'network', reference: 'data', id: 'v1', path: '/runpod-volume' },
      { kind: 'global', reference: 'all', id: 'g1', path: '/all' },
    ]
    const volume = { id: 'v1' as never, path: join(folder, 'volume') }
    await mkdir(volume.path)
    const variables = await variablesOf({
      build: { id: 'b1', folder: path },
      volume,
      env: { PYTHONPATH: '/mine', RUNPOD_RUNTIME_KIND: 'api', RUNPOD_MOUNTS: JSON.stringify(mounts) },
    })
    assert.equal(variables.RUNPOD_RUNTIME_KIND, 'queue')
    assert.equal(variables.RUNPOD_APP_DIR, path)
    assert.equal(variables.RUNPOD_PREBUILT_APP_DIR, path)
    assert.equal(variables.PYTHONPATH, '/opt/runtime:/mine')
    assert.equal(JSON.parse(variables.RUNPOD_MOUNTS!)[0].path, volume.path)
    assert.equal(JSON.parse(variables.RUNPOD_MOUNTS!)[1].path, '/all')
    assert.match(variables.PYTHONPYCACHEPREFIX!, /caches\/endpoint\/pycache$/)
    assert.equal(await readFile(join(folder, 'files'), 'utf8'), 'main.py\n')
    assert.deepEqual(await readdir(path), ['main.py'])
    assert.equal(await readFile(join(folder, 'program'), 'utf8'), `${join(programs, 'python3.11')}\n`)
  })

  test('of a build that is compiled reads its compiled files, and writes none', async () => {
    await python('3.11', join(programs, 'python3.11'), false)
    const path = await build()
    await chmod(path, 0o755)
    await writeFile(join(path, '.runyard-compiled'), '')
    const variables = await variablesOf({ build: { id: 'b1', folder: path } })
    assert.deepEqual([variables.PYTHONDONTWRITEBYTECODE, variables.PYTHONPYCACHEPREFIX], ['1', undefined])
    const chosen = await variablesOf({ build: { id: 'b1', folder: path }, env: { PYTHONPYCACHEPREFIX: '/mine' } })
    assert.deepEqual([chosen.PYTHONDONTWRITEBYTECODE, chosen.PYTHONPYCACHEPREFIX], [undefined, '/mine'])
  })

  test('in a folder of its user finds the runtime, the packages of its build and their place', async () => {
    const hostEnv = { ...machine.options.hostEnv, PATH: programs }
    const runtime = { runtime: '/opt/runtime', environments: folder }
    const commands = new RuntimeCommands({ runtime, hostEnv, clock: machine.options.clock })
    const path = await build()
    const env = { FLASH_RESOURCE_NAME: 'hello', PYTHONPATH: '/mine' }
    const own = machine.spec('', { build: { id: 'b1', folder: path }, env })
    const parts = await commands.partsFor(own)
    assert.deepEqual(parts?.readable, ['/opt/runtime', path])
    const variables = parts?.variables('/cache')
    assert.equal(variables?.PYTHONPATH, `/opt/runtime:${path}/env:/mine`)
    assert.equal(variables?.RUNPOD_PREBUILT_APP_DIR, path)
    assert.equal(await commands.partsFor(machine.spec('', { env: {} })), null, 'a worker of no app')
  })

  test('reads the certificates of the server in a cage, which shows nothing else of the data directory', async () => {
    await python('3.11', join(programs, 'python3.11'))
    const hostEnv = { ...machine.options.hostEnv, PATH: programs }
    const runtime = { runtime: '/opt/runtime', environments: folder, trustFile: '/data/tls/trust.pem' }
    const commands = new RuntimeCommands({ runtime, hostEnv, clock: machine.options.clock })
    const command = await commands.commandFor(spec({ build: { id: 'b1', folder: await build() } }), folder)
    assert.deepEqual(command?.readable, ['/opt/runtime', '/data/tls/trust.pem'])
  })

  test('of a dev session starts in an empty folder of its own, with the SDK that was installed once', async () => {
    await python('3.11', join(programs, 'python3.11'), false)
    const worker = spec({})
    const workers = driver()
    const progress: string[] = []
    const watch = { pulling: () => progress.push('installing'), pulled: () => progress.push('installed') }
    await workers.start(worker, watch)
    assert.deepEqual(progress, ['installing', 'installed'])
    await nextExit(machine.notifier, workers, worker.workerId)
    const environment = join(folder, 'environments/python3.11')
    assert.equal(await readFile(join(folder, 'program'), 'utf8'), `${join(environment, 'bin/python')}\n`)
    assert.equal(await readFile(join(folder, 'files'), 'utf8'), '')
    const variables = await variablesOf({})
    assert.equal('RUNPOD_PREBUILT_APP_DIR' in variables, false)
    // Its packages are compiled where they are.
    assert.equal('PYTHONPYCACHEPREFIX' in variables, false)
    assert.equal(await readFile(join(folder, 'pip'), 'utf8'), 'installed\n')
  })

  test('of a dev session runs the interpreter itself where it has the SDK', async () => {
    await python('3.11', join(programs, 'python3.11'))
    await variablesOf({})
    assert.equal(await readFile(join(folder, 'program'), 'utf8'), `${join(programs, 'python3.11')}\n`)
  })

  test('reports the end of an installation that failed, and the next start tries again', async () => {
    await python('3.11', join(programs, 'python3.11'), false)
    const failing = driver({ PIP_NO_INDEX: '1' })
    const told = /RunPod's SDK could not be installed for Python 3\.11: no index/
    await assert.rejects(failing.start(spec({})), told)
    await assert.rejects(failing.start(spec({})), told)
    await variablesOf({})
  })

  test('finds the interpreters of uv and pyenv, and never one of another version', async () => {
    const home = join(folder, 'home')
    await python('3.12', join(home, '.local/share/uv/python/cpython-3.12.9-linux-x86_64-gnu/bin/python3.12'))
    await python('3.12', join(home, '.local/share/uv/python/cpython-3.12.10-linux-x86_64-gnu/bin/python3.12'))
    await python('3.13', join(home, '.pyenv/versions/3.13.1/bin/python3.13'))
    await python('3.9', join(programs, 'python3.10'))
    const workers = driver({ HOME: home, PATH: programs })
    assert.equal(await workers.check('runpod/api:py3.13-latest', ''), null)
    const failure = await workers.check('runpod/queue:py3.10-latest', '')
    assert.equal(startFailureText(failure!), 'the app needs Python 3.10, which this machine lacks; it has 3.12, 3.13')
    await variablesOf({ image: 'runpod/queue:py3.12-latest' }, { HOME: home, PATH: `${programs}:/usr/bin:/bin` })
    assert.match(await readFile(join(folder, 'program'), 'utf8'), /cpython-3\.12\.10-/)
  })
})

test('mounts that are none stay as they are, for the worker to complain', () => {
  assert.equal(
    placedMounts(undefined, () => '/v'),
    null,
  )
  assert.equal(
    placedMounts('{"a":1}', () => '/v'),
    null,
  )
  assert.equal(
    placedMounts('[1]', () => undefined),
    '[1]',
  )
})
