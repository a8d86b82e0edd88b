/** The first hour of somebody whose handler needs packages: where they come from, and how they are installed. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { root, rootUrl, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A program of the test's own in a folder for the PATH, which notes its arguments. */
function program(folder: string, name: string, script: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), `#!/bin/sh\necho "${name} $*" >> '${folder}/calls'\n${script}\n`)
  chmodSync(join(folder, name), 0o755)
}

function callsOf(folder: string): string[] {
  return readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')
}

/** A folder with a handler in JavaScript, which the packages of Python do not matter to. */
function makeFolder(files: Record<string, string>): string {
  const folder = join(temporaryFolder(), 'my-model')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'handler.mjs'), `import { start } from '${rootUrl}/packages/worker/src/index.ts'\n`)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

const UV = `if [ "$1" = venv ]; then mkdir -p "$2/bin"; printf '#!/bin/sh\\n' > "$2/bin/python"; chmod +x "$2/bin/python"; touch "$2/pyvenv.cfg"; fi`

describe('a folder with a list of packages', () => {
  test('says that they are missing, and how they are installed', async () => {
    const folder = makeFolder({ 'requirements.txt': 'requests\n' })
    const server = await startServer({ args: ['--worker', folder] })
    assert.deepEqual(
      server.events('folder.not_set_up').map(({ file }) => file),
      ['requirements.txt'],
    )
    assert.equal(existsSync(join(folder, '.venv')), false)
    assert.deepEqual(server.events('folder.no_packages'), [])
  })

  test('a folder without one is named, since --setup installs nothing for it', async () => {
    const folder = makeFolder({})
    const server = await startServer({ args: ['--worker', folder, '--setup'] })
    assert.deepEqual(
      server.events('folder.no_packages').map(event => event.folder),
      [folder],
    )
  })

  test('gets them with --setup: with uv where it is there, again when the list has changed, and with --watch at once', async () => {
    const bin = join(temporaryFolder(), 'bin')
    program(bin, 'uv', `${UV}\n! grep -qs reqests requirements.txt || { echo 'no such package: reqests' >&2; exit 3; }`)
    program(bin, 'npm', "mkdir -p node_modules; echo '{}' > package-lock.json")
    const folder = makeFolder({ 'requirements.txt': 'requests\n' })
    const page = (version: string) => JSON.stringify({ dependencies: { sharp: version } })
    const other = makeFolder({ 'package.json': page('1') })
    const environment = join(folder, '.venv')
    const start = (...args: string[]) => {
      const env = { PATH: `${bin}:${process.env.PATH}` }
      return startServer({ args: ['--worker', folder, '--worker', other, '--setup', ...args], env })
    }
    const install = `uv pip install --python ${environment}/bin/python -r ${folder}/requirements.txt`
    const first = [`uv venv ${environment}`, install, `npm install --prefix ${other}`]
    await (await start()).stop()
    assert.deepEqual(callsOf(bin), first)
    writeFileSync(join(folder, 'requirements.txt'), 'requests\nnumpy\n')
    const server = await start('--watch')
    // The lock file that npm has written is no other list of packages.
    assert.deepEqual(callsOf(bin).slice(3), [install])
    const changes = () => server.events('folder.changed').map(({ files }) => files)
    writeFileSync(join(folder, 'requirements.txt'), 'reqests\n')
    await until('the failure', () => server.events('folder.setup_failed').length > 0)
    assert.match(server.lines.join(), /no such package: reqests/)
    assert.match(String(server.events('folder.setup_failed')[0]?.problem), /--setup could not run "uv pip .*code 3$/)
    assert.deepEqual(changes(), [])
    writeFileSync(join(folder, 'requirements.txt'), 'requests\n')
    await until('the workers', () => changes().length === 1)
    writeFileSync(join(other, 'package.json'), page('2'))
    await until('the other workers', () => changes().length === 2)
    assert.deepEqual(changes(), ['requirements.txt', 'package.json'])
    assert.deepEqual(callsOf(bin).slice(4), [install, install, `npm ci --prefix ${other}`])
    assert.deepEqual(server.events('folder.packages_changed'), [])
    await server.stop()
  })

  test('installs them without the settings and keys of the server, which packages could read', async () => {
    const bin = join(temporaryFolder(), 'bin')
    program(bin, 'uv', `${UV}\nenv >> '${bin}/environment'`)
    const folder = makeFolder({ 'requirements.txt': 'requests\n' })
    const secrets = { RUNYARD_BACKUP_PASSPHRASE: 'planted-passphrase', OTEL_EXPORTER_OTLP_HEADERS: 'token=planted' }
    const env = { PATH: `${bin}:${process.env.PATH}`, ...secrets }
    const server = await startServer({ args: ['--worker', folder, '--setup'], env })
    await server.stop()
    const environment = readFileSync(join(bin, 'environment'), 'utf8')
    assert.match(environment, /^PATH=/m)
    assert.doesNotMatch(environment, /planted|^(?:RUNYARD|OTEL)_/m)
  })

  test('gets them also when nobody reads what the server and the installer print', async () => {
    const bin = join(temporaryFolder(), 'bin')
    program(bin, 'uv', `${UV}\nsleep 0.2; echo installed; touch '${bin}/whole'`)
    const folder = makeFolder({ 'requirements.txt': 'requests\n' })
    const dataDir = temporaryFolder()
    const serve = `exec '${root}/bin/runyard' serve --port 0 --docker off --data-dir ${dataDir} --worker ${folder} --setup`
    const env = { PATH: `${bin}:${process.env.PATH}` }
    const child = spawn('bash', ['-c', `(${serve}) 2>&1 | true`], { env, stdio: 'ignore', detached: true })
    const end = () => process.kill(-child.pid!, 'SIGINT')
    await until('the server', () => existsSync(join(dataDir, 'server.json'))).finally(end)
    assert.ok(existsSync(join(bin, 'whole')))
    await until('its end', () => !existsSync(join(dataDir, 'server.json')))
  })

  test('keeps the server from starting when the installation fails, and tries again at the next start', async () => {
    const bin = join(temporaryFolder(), 'bin')
    program(bin, 'uv', `${UV}\n[ "$1" = venv ] || { echo 'no such package: reqests' >&2; exit 3; }`)
    const folder = makeFolder({ 'pyproject.toml': '[project]\nname = "x"\nversion = "1"\n' })
    const started = startServer({ args: ['--worker', folder, '--setup'], env: { PATH: `${bin}:${process.env.PATH}` } })
    await assert.rejects(started, (error: Error) => {
      assert.match(error.message, /no such package: reqests/)
      assert.match(error.message, /--setup could not run "uv pip install .*": it ended with code 3/)
      return true
    })
    assert.equal(existsSync(join(folder, '.venv', 'runyard-setup')), false)
  })

  test('gets the worker package, which no registry has, by whatever name package.json gives it', async () => {
    const folder = makeFolder({})
    const handler = "import { start } from '@runyard/worker'\nstart({ handler: () => 'given' })\n"
    writeFileSync(join(folder, 'handler.mjs'), handler)
    const offline = { npm_config_registry: 'http://127.0.0.1:9', npm_config_fetch_retries: '0' }
    for (const wanted of ['^0.1.0', 'file:vendor/runyard-worker.tgz']) {
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies: { '@runyard/worker': wanted } }))
      rmSync(join(folder, 'node_modules'), { recursive: true, force: true })
      const server = await startServer({ args: ['--worker', folder, '--setup'], env: offline })
      assert.ok(existsSync(join(folder, 'node_modules/@runyard/worker/dist/index.js')), wanted)
      const { json } = await ask(server, '/v2/mymodel/runsync?wait=20000', { body: { input: {} } })
      assert.equal(json.output, 'given', JSON.stringify(json))
      await server.stop()
      assert.equal(existsSync(join(folder, 'vendor')), wanted.startsWith('file:'), wanted)
    }
    const again = await startServer({ args: ['--worker', folder, '--setup'], env: offline })
    assert.deepEqual(again.events('folder.setting_up'), [], 'the lock file of the first installation changes nothing')
  })

  test('runs with the environment of conda that its file names', async () => {
    const home = temporaryFolder()
    const environment = join(home, 'miniconda3', 'envs', 'my-env')
    mkdirSync(join(home, '.conda'))
    writeFileSync(join(home, '.conda', 'environments.txt'), `${home}/miniconda3\n${environment}\n`)
    const script = `import('${rootUrl}/packages/worker/src/index.ts').then(({ start }) => start({ handler: () => 'conda' }))`
    program(join(environment, 'bin'), 'python', `exec '${process.execPath}' -e "${script}"`)
    const folder = makeFolder({ 'environment.yml': 'name: my-env\ndependencies: [python]\n', 'handler.py': '' })
    const server = await startServer({ args: ['--worker', folder], env: { HOME: home } })
    const { json } = await ask(server, '/v2/mymodel/runsync?wait=20000', { body: { input: {} } })
    assert.equal(json.output, 'conda', JSON.stringify(json))
  })
})
