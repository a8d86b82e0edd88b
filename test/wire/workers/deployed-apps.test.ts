/** Apps that RunPod's SDK 2.0 deploys: packed by its own command line with wheels of this test, and called. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { BuildCompiler, isCompiled } from '../../../src/drivers/process/build-compiler.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { secureCall } from '../support/https.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, runCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

/** Packages that the SDK puts beside a function. */
const RUNTIME = ['aiohttp', 'aiohttp-retry', 'backoff', 'cloudpickle', 'py-cpuinfo', 'requests', 'tomli', 'tomlkit']
const PACKAGES = [...RUNTIME, 'tqdm-loggable', 'fastapi', 'uvicorn']

test('a build is compiled once, whatever its files are', { skip: sdk2Skip }, async () => {
  const folder = temporaryFolder()
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  const { stdout } = await run(sdk2, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])
  for (const name of ['env', 'env/odd', 'env/__pycache__']) mkdirSync(join(folder, name))
  write('runpod_manifest.json', JSON.stringify({ pythonVersion: stdout.trim() }))
  write('main.py', 'x = 1')
  write('env/good.py', 'x = 1')
  write('env/broken.py', 'def (')
  write('env/deep.py', `${'('.repeat(5_000)}${')'.repeat(5_000)}`)
  write('env/odd/__pycache__', 'a file')
  write('env/odd/module.py', 'x = 1')
  write('env/__pycache__/evil.py', 'x = 1')
  for (const name of ['env/odd', 'env/__pycache__', 'env', '.']) chmodSync(join(folder, name), 0o555)
  await new BuildCompiler({ PATH: dirname(sdk2) }, systemClock).compile(folder, '/final')
  assert.ok(await isCompiled(folder))
  const cache = join(folder, 'env', '__pycache__')
  assert.deepEqual(
    readdirSync(cache)
      .filter(name => name.endsWith('.pyc'))
      .map(name => name.split('.')[0]),
    ['good'],
  )
  const [compiled] = readdirSync(join(folder, '__pycache__'))
  assert.ok(readFileSync(join(folder, '__pycache__', compiled!)).includes('/final/main.py'))
  const modes = [folder, cache, join(folder, '__pycache__', compiled!)].map(path => statSync(path).mode & 0o777)
  assert.deepEqual(modes, [0o555, 0o555, 0o444])
})

test('functions and APIs are deployed, called, deployed again and deleted', {
  skip: sdk2Skip,
  timeout: patient(240_000),
}, async t => {
  const path = `${dirname(sdk2)}${delimiter}${process.env.PATH}`
  const [project, wheels] = [temporaryFolder(), temporaryFolder()]
  const source = join(project, 'main.py')
  cpSync(join(fixture('python-deployed'), 'main.py'), source)
  const [server] = await Promise.all([
    startServer({ args: ['--tls-self-signed'], env: { PATH: path } }),
    run(sdk2, [fixture('python-wheels.py'), wheels, ...PACKAGES]),
  ])
  const { stdout: variables } = await runCommand(['sdk', 'env', '--json', '--data-dir', server.dataDir])
  const offline = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: wheels, PIP_NO_COMPILE: '1' }
  const env = { PATH: path, HOME: project, ...offline, ...JSON.parse(variables) }
  const rp = async (...words: string[]) => {
    const begun = Date.now()
    const program = 'from runpod.rp_cli.main import run; run()'
    const { stdout } = await run(sdk2, ['-c', program, ...words], { cwd: project, env })
    t.diagnostic(`rp ${words.join(' ')}: ${Date.now() - begun} ms`)
    return stdout
  }
  const calls = async () => {
    const { stdout } = await run(sdk2, [join(fixture('python-deployed'), 'calls.py')], { cwd: wheels, env })
    const { found, seconds } = JSON.parse(stdout.trim().split('\n').at(-1)!)
    t.diagnostic(JSON.stringify(seconds))
    return found
  }
  const ca = readFileSync(join(server.dataDir, 'tls', 'certificate.pem'), 'utf8')
  const rest = async (at: string) => JSON.parse((await secureCall(server, at, { ca })).text)

  const made = await secureCall(server, '/v2/account/secrets', {
    ca,
    headers: { 'content-type': 'application/json' },
    body: { name: 'token', value: 'said in secret' },
  })
  assert.equal(made.status, 201, made.text)
  await rp('flash', 'deploy', '.')
  const { broken, raises, elsewhere, ...found } = await calls()
  assert.deepEqual(found, {
    adder: ['first', 3, 'SAID IN SECRET'],
    counter: [0, 1, 2],
    nested: ['first', 15, 'SAID IN SECRET'],
    words: { word: 'alpha', of: 'first' },
    plain: 'in parts',
    spawned: ['first', 4, 'SAID IN SECRET'],
  })
  const builds = join(server.dataDir, 'apps', 'builds')
  const [build = ''] = readdirSync(builds).filter(name => !name.startsWith('.'))
  assert.ok(await isCompiled(join(builds, build)), 'its workers compile nothing')
  assert.match(broken, /500/)
  assert.match(raises, /b is missing/)
  assert.match(elsewhere, /EndpointNotFound|not found/)

  const [app] = (await rest('/v2/account/apps?name=shop')).apps
  const shown = async () => (await rest(`/v2/account/apps/${app.id}`)).environments[0].endpoints
  const before = await shown()
  assert.deepEqual(
    before.map(({ name }: { name: string }) => name),
    ['adder', 'counter', 'nested', 'plain', 'words'],
  )
  const text = readFileSync(source, 'utf8').replace("'first'", "'second'").replace('"first"', '"second"')
  writeFileSync(source, text.replace(/@app\.queue\(name="counter"[\s\S]*?\n\n\n/, ''))
  await rp('flash', 'deploy', '.')
  const after = await shown()
  const left = before.filter(({ name }: { name: string }) => name !== 'counter')
  const ids = (endpoints: { id: string }[]) => endpoints.map(({ id }) => id)
  assert.deepEqual(ids(after), ids(left), 'the others stay, with their ids')
  assert.notEqual(after[0].buildId, before[0].buildId)
  // A worker of the older release may take a job of that moment.
  const again = 'import runpod; print(runpod.Queue(app="shop", name="adder").remote(a=1, b=2)[0])'
  await until('the new release', async () => {
    return (await run(sdk2, ['-c', again], { cwd: wheels, env })).stdout === 'second\n'
  })

  await rp('flash', 'app', 'delete', 'shop', '--yes')
  assert.deepEqual((await rest('/v2/account/apps')).apps, [])
  assert.deepEqual((await rest('/v2/serverless')).endpoints, [])
  assert.deepEqual(readdirSync(join(server.dataDir, 'apps', 'artifacts')).length, 2, 'archives go a day later')
})
