/** Apps that RunPod's SDK 2.0 deploys: packed by its own command line with wheels of this test, and called. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { RUNTIME_PYTHONS } from '../../../src/core/endpoints/runtime-image.ts'
import { cagedWords } from '../../../src/drivers/cage/caged-tool.ts'
import { BuildCompiler, type Caging, isCompiled } from '../../../src/drivers/process/build-compiler.ts'
import { PythonInterpreters } from '../../../src/drivers/process/python-interpreters.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { patient } from '../../support/patience.ts'
import { caged, cageSkip, cageTrial } from '../support/cages.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { secureCall } from '../support/https.ts'
import { killAll } from '../support/processes.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, root, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

const PASSPHRASE = { RUNYARD_BACKUP_PASSPHRASE: 'a passphrase of tests' }

/** Packages that the SDK puts beside a function. */
const RUNTIME = ['aiohttp', 'aiohttp-retry', 'backoff', 'cloudpickle', 'py-cpuinfo', 'requests', 'tomli', 'tomlkit']
const PACKAGES = [...RUNTIME, 'tqdm-loggable', 'fastapi', 'uvicorn', 'prettytable']

/** Functions of the app, each of which is called from zero. */
const FUNCTIONS = ['adder', 'counter', 'keeper', 'nested', 'own', 'plain', 'words']

const skip = sdk2Skip || cageSkip

/** A release with a place in its rollout, as REST has it. */
interface Place {
  readonly id: string
  readonly name: string
  readonly buildId: string
}

for (const [how, isCaged] of [
  ['as the user of the server', false],
  ['in a cage', true],
] as const)
  test(`a build is compiled once, whatever its files are, ${how}`, { skip: isCaged ? skip : sdk2Skip }, async () => {
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
    let seen: readonly string[] = []
    const caging: Caging = async (program, words, only) => {
      assert.ok('bwrap' in cageTrial)
      seen = await cagedWords(cageTrial.bwrap, { program, words, folder: only })
      return seen
    }
    await new BuildCompiler({ PATH: dirname(sdk2) }, systemClock, isCaged ? caging : null).compile(folder, '/final')
    assert.equal(seen.includes('--unshare-net'), isCaged)
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

/** A receiver of webhooks, and what it got. */
async function openReceiver() {
  const messages: { headers: IncomingHttpHeaders; body: string }[] = []
  const receiver = createServer(async (request, response) => {
    messages.push({ headers: request.headers, body: await readText(request) })
    response.end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  atEnd(() => void receiver.close())
  return { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`, messages }
}

/** A place of this machine that no worker may reach, and how many did. */
async function openForbidden() {
  const reached: unknown[] = []
  const forbidden = createSocketServer(socket => {
    reached.push(socket.remotePort)
    socket.destroy()
  })
  forbidden.listen(0)
  await once(forbidden, 'listening')
  atEnd(() => void forbidden.close())
  return { place: `127.0.0.1:${(forbidden.address() as AddressInfo).port}`, reached }
}

/** A server with the SDK beside it, and wheels for pip; its workers are in cages with a network of their own. */
class Deployer {
  readonly project = temporaryFolder()
  readonly wheels = temporaryFolder()
  readonly #packages = join(temporaryFolder(), 'packages')
  readonly #t
  #env: Record<string, string> = {}
  ca = ''
  server!: Server

  constructor(t: TestContext) {
    this.#t = t
  }

  async open(): Promise<void> {
    await Promise.all([this.start(), run(sdk2, [fixture('python-wheels.py'), this.wheels, ...PACKAGES])])
    await this.#setUp()
  }

  /** Sets the client up as its user does. */
  async #setUp(): Promise<void> {
    const { stdout: variables } = await runCommand(['sdk', 'env', '--json', '--data-dir', this.server.dataDir])
    const offline = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: this.wheels, PIP_NO_COMPILE: '1' }
    const folders = { HOME: this.project, TMPDIR: temporaryFolder(), PACKAGES: this.#packages }
    const path = `${dirname(sdk2)}${delimiter}${process.env.PATH}`
    this.#env = { PATH: path, PYTHONPATH: '', ...folders, ...offline, ...JSON.parse(variables) }
    this.ca = readFileSync(join(this.server.dataDir, 'tls', 'certificate.pem'), 'utf8')
  }

  /** Starts the server, also again at its address. */
  async start(place: Partial<Pick<Server, 'dataDir' | 'port'>> = this.server ?? {}): Promise<void> {
    // An interpreter without packages: those of a build have to do.
    const path = `${dirname(realpathSync(sdk2))}${delimiter}${process.env.PATH}`
    const args = ['--tls-self-signed', ...caged(`${root}/packages`)]
    const { dataDir = temporaryFolder(), port = 0 } = place
    this.server = await startServer({ args, env: { PATH: path }, dataDir, port })
  }

  /** Backs the server up. @returns the file */
  async backUp(): Promise<string> {
    const file = join(temporaryFolder(), 'shop.backup')
    const { code, stderr } = await runCommand(['backup', file, '--data-dir', this.server.dataDir], PASSPHRASE)
    assert.equal(code, 0, stderr)
    return file
  }

  /** Loses the server with its data, and starts it with what a backup has. */
  async restore(file: string): Promise<void> {
    const { port, dataDir: lost } = this.server
    await this.server.kill9()
    killAll(lost)
    const dataDir = join(temporaryFolder(), 'restored')
    const { code, stderr } = await runCommand(['restore', file, '--data-dir', dataDir], PASSPHRASE)
    assert.equal(code, 0, stderr)
    await this.start({ dataDir, port })
    await this.#setUp()
  }

  /** Runs a program of the fixture, and gives what it prints. */
  async python(name: string, words: readonly string[] = [], folder = this.wheels, more = {}): Promise<string> {
    const begun = Date.now()
    const file = join(fixture('python-deployed'), name)
    try {
      return (await run(sdk2, [file, ...words], { cwd: folder, env: { ...this.#env, ...more } })).stdout
    } finally {
      this.#t.diagnostic(`${name} ${words.join(' ')}: ${Date.now() - begun} ms`)
    }
  }

  rp(...words: string[]): Promise<string> {
    return this.python('rp.py', words, this.project)
  }

  write(source: string): void {
    writeFileSync(join(this.project, 'main.py'), source)
  }

  /** Runs a step of a deploy and kills the server behind it. */
  async breakOff(step: string): Promise<void> {
    const file = join(fixture('python-deployed'), 'broken_off.py')
    const child = spawn(sdk2, [file, step], { cwd: this.wheels, env: this.#env, stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = once(child, 'exit')
    if (step === 'put') await once(child.stdout, 'data')
    else assert.deepEqual(await ended, [0, null], step)
    await this.server.kill9()
    child.kill('SIGKILL')
    await this.start()
  }

  async rest(path: string) {
    return JSON.parse((await secureCall(this.server, path, { ca: this.ca })).text)
  }

  async post(path: string, body: object) {
    const headers = { 'content-type': 'application/json' }
    const answer = await secureCall(this.server, path, { ca: this.ca, headers, body })
    assert.ok(answer.status < 300, answer.text)
    return JSON.parse(answer.text)
  }

  /** Runs a job at a place of the app. */
  async adder(environment: string) {
    const headers = { 'x-flash-app': 'shop', 'x-flash-environment': environment, 'x-flash-endpoint': 'adder' }
    const body = { input: { a: 1, b: 2 } }
    const answer = await secureCall(this.server, '/v2/flash/runsync?wait=60000', { ca: this.ca, headers, body })
    return JSON.parse(answer.text)
  }

  async environments(): Promise<{ name: string; endpoints: Place[] }[]> {
    const [app] = (await this.rest('/v2/account/apps?name=shop')).apps
    return (await this.rest(`/v2/account/apps/${app.id}`)).environments
  }

  async endpoints(name = 'default'): Promise<Place[]> {
    return (await this.environments()).find(environment => environment.name === name)?.endpoints ?? []
  }
}

test('an app is deployed, called, broken off, deployed again and deleted by the client of the SDK', {
  skip,
  timeout: patient(240_000),
}, async t => {
  const [deployer, receiver, forbidden] = [new Deployer(t), await openReceiver(), await openForbidden()]
  await deployer.open()
  const source = readFileSync(join(fixture('python-deployed'), 'main.py'), 'utf8')
  const second = source.replace('WORD = "first"', 'WORD = "second"')
  deployer.write(source)
  await deployer.post('/v2/account/secrets', { name: 'token', value: 'said in secret' })
  await deployer.rp('flash', 'deploy', '.')

  const outside = [forbidden.place, '192.0.2.1:443']
  const { found, seconds } = JSON.parse(await deployer.python('calls.py', [receiver.url, ...outside]))
  t.diagnostic(JSON.stringify(seconds))
  const limitMs = await firstAnswerLimitMs()
  for (const name of FUNCTIONS) assert.ok(seconds[name] * 1_000 < limitMs, `${name} answered after ${seconds[name]} s`)
  const { broken, refused, raises, elsewhere, late, ...results } = found
  assert.deepEqual(results, {
    adder: ['first', 3, 'SAID IN SECRET'],
    counter: [0, 1, 2],
    nested: [
      ['first', 15, 'SAID IN SECRET'],
      ['not reached', 'not reached'],
    ],
    keeper: ['kept by a function', 'prettytable', 'env'],
    own: ['first', true],
    words: { word: 'alpha', of: 'first' },
    plain: 'in parts',
    spawned: ['first', 4, 'SAID IN SECRET'],
    hooked: ['first', 6, 'SAID IN SECRET'],
    cancelled: ['CANCELLED', 'CANCELLED'],
    retried: ['FAILED', true, true, 'FAILED'],
  })
  assert.deepEqual(forbidden.reached, [])
  assert.match(broken, /500/)
  assert.match(refused, /422/)
  assert.match(raises, /b is missing/)
  assert.match(elsewhere, /EndpointNotFound/)
  assert.match(late, /RemoteExecutionError.*timeout/i)
  const builds = join(deployer.server.dataDir, 'apps', 'builds')
  const [build = ''] = readdirSync(builds).filter(name => !name.startsWith('.'))
  assert.ok(await isCompiled(join(builds, build)), 'its workers compile nothing')
  const [volume] = (await deployer.rest('/v2/network-volumes')).networkVolumes
  const kept = readFileSync(join(deployer.server.dataDir, 'volumes', volume.id, 'kept'), 'utf8')
  assert.equal(kept, 'kept by a function')

  const before = await deployer.endpoints()
  const ids = Object.fromEntries(before.map(({ name, id }) => [name, id]))
  const names = [...FUNCTIONS, 'sleeper'].sort()
  assert.deepEqual(Object.keys(ids), names)

  // A webhook of a call by headers is signed with the key of its endpoint.
  const [message] = await until('the webhook', () => receiver.messages.length > 0 && receiver.messages)
  const { key } = await deployer.rest(`/v2/${ids.adder}/webhook-key`)
  const { headers, body } = message!
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const secret = Buffer.from(key.replace('whsec_', ''), 'base64')
  assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
  assert.deepEqual(JSON.parse(body).output, ['first', 6, 'SAID IN SECRET'])

  // Errors reach a client that reads them, those of an API as it sent them.
  const place = { 'x-flash-app': 'shop', 'x-flash-environment': 'default', 'x-flash-endpoint': 'plain' }
  const asked = (wanted: object, path: string) =>
    secureCall(deployer.server, path, { ca: deployer.ca, host: 'flash.localhost', headers: { ...place, ...wanted } })
  const own = await asked({}, '/refused')
  assert.deepEqual([own.status, own.text], [422, '{"detail": "no such letter"}'])
  const absent = await asked({ 'x-flash-endpoint': 'absent' }, '/')
  assert.equal(absent.status, 404)
  assert.match(JSON.parse(absent.text).error, /endpoint 'absent' not found/)

  // A server that is killed in the middle of a deploy has nothing half of it.
  for (const step of ['prepare', 'put', 'finalize', 'activate']) await deployer.breakOff(step)
  assert.deepEqual((await deployer.adder('default')).output, ['first', 3, 'SAID IN SECRET'])
  assert.deepEqual(
    (await deployer.endpoints()).map(({ buildId }) => buildId),
    before.map(({ buildId }) => buildId),
  )

  deployer.write(second.replace(/@app\.queue\(name="counter"[\s\S]*?\n\n\n/, ''))
  await deployer.rp('flash', 'deploy', '.')
  const after = await deployer.endpoints()
  const left = before.filter(({ name }) => name !== 'counter')
  const idsOf = (endpoints: Place[]) => endpoints.map(({ id }) => id)
  assert.deepEqual(idsOf(after), idsOf(left), 'the others stay, with their ids')
  assert.notEqual(after[0]!.buildId, before[0]!.buildId)
  // A worker of the older release may take a job of that moment.
  await until('the new release', async () => (await deployer.adder('default')).output[0] === 'second')
  // Its folder has the older source under the same name.
  const ownRun = await deployer.post(`/v2/${ids.own}/runsync?wait=60000`, { input: { __empty: true } })
  assert.deepEqual(ownRun.output, ['second', true])

  const fails = 'if "RUNPOD_ENDPOINT_ID" in os.environ:\n    raise RuntimeError("the model is missing")\n'
  deployer.write(second.replace('WORD = "second"\n', `WORD = "third"\n${fails}`))
  await deployer.rp('flash', 'deploy', '.')
  await until('the rollout to stop', async () => {
    assert.deepEqual((await deployer.adder('default')).output, ['second', 3, 'SAID IN SECRET'])
    return (await deployer.rest(`/v2/serverless/${ids.adder}/releases`)).rollout.state === 'STOPPED'
  })
  const why = JSON.stringify(await deployer.rest(`/v2/${ids.adder}/explain`))
  assert.match(why, /the model is missing/)

  deployer.write(source.replace('WORD = "first"', 'WORD = "staged"'))
  await deployer.rp('flash', 'deploy', '.', '--env', 'staging')
  assert.deepEqual(
    (await deployer.endpoints('staging')).map(({ name }) => name),
    names,
  )
  const places = async () => JSON.parse(await deployer.python('places.py', ['staging', 'default']))
  const both = { staging: ['staged', 3, 'SAID IN SECRET'], default: ['second', 3, 'SAID IN SECRET'] }
  assert.deepEqual(await places(), both)

  // A server that is lost after it was backed up comes back with what was removed meanwhile.
  const backup = await deployer.backUp()
  await deployer.rp('flash', 'undeploy', '--app', 'shop', '--env', 'staging', '--yes')
  assert.deepEqual(
    (await deployer.environments()).map(({ name }) => name),
    ['default'],
  )
  await deployer.restore(backup)
  assert.deepEqual(await places(), both)
  await deployer.rp('flash', 'env', 'delete', 'staging', '--app', 'shop', '--yes')
  const kinds = (await deployer.endpoints()).map(({ name }) => name)
  assert.deepEqual([kinds, await deployer.endpoints('staging')], [names, []])

  const hostile = JSON.parse(await deployer.python('hostile.py'))
  assert.match(hostile.leaves, /"\.\.\/x" leads out of the artifact/)
  assert.match(hostile.absolute, /is an absolute path/)
  assert.match(hostile.link, /"a" is a SymbolicLink/)
  assert.match(hostile.device, /"a" is a CharacterDevice/)
  assert.match(hostile.zeros, /more than \d+ bytes when it is unpacked/)
  assert.match(hostile.size, /400 .*were announced/)

  await deployer.rp('flash', 'app', 'delete', 'shop', '--yes')
  assert.deepEqual((await deployer.rest('/v2/account/apps')).apps, [])
  assert.deepEqual((await deployer.rest('/v2/serverless')).endpoints, [])

  await refusedDeploys(deployer)
})

/**
 * Longest time from zero to the first answer of a function, most of which Python takes to start: 3 s, or ten times
 * what a machine takes for the client alone.
 */
async function firstAnswerLimitMs(): Promise<number> {
  const beganMs = performance.now()
  await run(sdk2, ['-c', 'import runpod'])
  return Math.max(patient(3_000), 10 * (performance.now() - beganMs))
}

/** Deploys of apps that lack something: one sentence each, and no endpoint. */
async function refusedDeploys(deployer: Deployer): Promise<void> {
  const empty = temporaryFolder()
  const deploy = async (options: string, ...words: string[]) => {
    const folder = temporaryFolder()
    const text = `import runpod\napp = runpod.App("lacks")\n\n@app.queue(name="one", cpu="cpu3c-1-2", ${options})\ndef one():\n    pass\n`
    writeFileSync(join(folder, 'main.py'), text)
    return deployer.python('rp.py', ['flash', 'deploy', '.', ...words], folder, { PACKAGES: empty }).then(
      () => 'it was not refused',
      error => `${error.stdout}${error.stderr}`.replaceAll(/\s+/g, ' '),
    )
  }
  assert.match(await deploy('env={"A": runpod.Secret("absent")}'), /absent/)
  assert.deepEqual((await deployer.rest('/v2/account/apps')).apps, [])
  const absent = 'runpod.NetworkVolume("absent", create=False)'
  assert.match(await deploy(`mounts={"/runpod-volume": ${absent}}`), /volume 'absent' not found and create=False/)
  const { PATH, HOME } = process.env
  const interpreters = new PythonInterpreters({ PATH, HOME }, systemClock)
  const here = await interpreters.versions()
  const missing = RUNTIME_PYTHONS.find(version => !here.includes(version))
  if (missing !== undefined) {
    const said = await deploy('', '--python-version', missing)
    assert.match(said, new RegExp(`[Pp]ython ${missing.replace('.', '\\.')}`))
  }
  assert.deepEqual((await deployer.rest('/v2/serverless')).endpoints, [])
}
