/** A job that waits, seen on a terminal: the messages during the wait, and Ctrl-C. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { atExit, temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { programFile, root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const program = programFile()
let server: Server
let folder: string

before(async () => {
  folder = temporaryFolder()
  writeFileSync(join(folder, 'handler.mjs'), "throw new Error('no weights')\n")
  server = await startServer({ args: ['--worker', folder] })
})

/** A command on a terminal of its own (`script` of util-linux), with what it has shown so far. */
class Terminal {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  text = ''

  constructor(command: string) {
    const env = { ...process.env, RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey, TERM: 'xterm' }
    // `exec`: a shell that waits for the command would take Ctrl-C too, and end with 130 whatever the command says.
    this.#child = spawn('script', ['-qec', `exec '${program}' ${command}`, '/dev/null'], { env })
    atExit(() => this.#child.kill('SIGKILL'))
    this.#child.stdout?.on('data', bytes => (this.text += stripVTControlCharacters(String(bytes))))
    this.#ended = new Promise(resolve => this.#child.on('exit', resolve))
  }

  async shows(pattern: RegExp): Promise<void> {
    await until(`${pattern} on the terminal, which shows ${this.text}`, () => pattern.test(this.text), 30_000)
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  async end(): Promise<unknown> {
    return this.#ended
  }
}

const CTRL_C = '\u0003'

test('a secret is asked for on a terminal, which does not show it', async () => {
  const terminal = new Terminal('secrets create --name typed')
  await terminal.shows(/value of the secret: $/)
  terminal.type('hunter2\r')
  await terminal.shows(/"name": "typed"/)
  assert.equal(await terminal.end(), 0)
  assert.equal(terminal.text.includes('hunter2'), false, terminal.text)
})

test('a backup asks twice for its passphrase, and is not made where the two differ', async () => {
  const file = join(temporaryFolder(), 'typed.backup')
  const making = new Terminal(`backup ${file}`)
  await making.shows(/passphrase of the keys: $/)
  making.type('a passphrase of some length\r')
  await making.shows(/once more: $/)
  making.type('a passphrase of some lenght\r')
  await making.shows(/the two passphrases differ; nothing was done/)
  assert.equal(await making.end(), 64)
  assert.equal(existsSync(file), false)
})

describe('a job of a folder that crashes', () => {
  test('is named at once, its cause is said with the output, and Ctrl-C offers to cancel it', async () => {
    const { json } = await ask(server, '/v2/serverless')
    const terminal = new Terminal(`run ${json.endpoints[0].name} --input '{}'`)
    await terminal.shows(/^job (\S+-u1)/)
    const id = /^job (\S+)/.exec(terminal.text)?.[1] ?? ''
    await terminal.shows(/crash_loop: .*exited with code 1/)
    await terminal.shows(/\| .*no weights/)
    await terminal.shows(/\d s {2}the last worker exited/)
    terminal.type(CTRL_C)
    await terminal.shows(/cancel job .*\? \[y\/N\]/)
    terminal.type('y\r')
    await terminal.shows(/is cancelled/)
    assert.equal(await terminal.end(), 130)
    assert.equal((await ask(server, `/v2/${json.endpoints[0].id}/status/${id}`)).json.status, 'CANCELLED')
  })

  test('is said in plain lines in a pipe, and Ctrl-C ends the wait alone', async () => {
    const { json } = await ask(server, '/v2/serverless')
    const { id: endpoint } = json.endpoints[0]
    const env = { ...process.env, RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
    const child = spawn(program, ['run', endpoint, '--input', '{}'], { env })
    atExit(() => child.kill('SIGKILL'))
    const ended = new Promise(resolve => child.on('exit', resolve))
    let text = ''
    child.stderr.on('data', bytes => (text += String(bytes)))
    await until(`the cause in ${text}`, () => /^job \S+\ncrash_loop: .*\n {2}-> .*\n {2}\| /.test(text), 30_000)
    child.kill('SIGINT')
    assert.equal(await ended, 130)
    const [, id = ''] =
      /job (\S+) goes on; runyard jobs get \S+ shows it, runyard jobs cancel \S+ ends it\n$/.exec(text) ?? []
    assert.equal((await ask(server, `/v2/${endpoint}/status/${id}`)).json.status, 'IN_QUEUE')
  })
})

test('what is deleted is named with what is lost, and asked for, on a terminal', async () => {
  const body = {
    name: 'doomed',
    type: 'QUEUE',
    image: 'image:1',
    cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
    workers: { max: 0 },
  }
  const { json } = await ask(server, '/v2/serverless', {
    body: { ...body, scaling: { type: 'QUEUE_DELAY', queueDelay: 4 } },
  })
  await ask(server, `/v2/${json.id}/run`, { body: { input: {} } })
  const at = `/v2/serverless/${json.id}`
  const question =
    /endpoint doomed \(\S+\) will be deleted with 0 workers, 1 waiting and 0 running jobs; go on\? \[y\/N\]/
  const refused = new Terminal('endpoints delete doomed')
  await refused.shows(question)
  refused.type('n\r')
  await refused.shows(/nothing was changed/)
  assert.deepEqual([await refused.end(), (await ask(server, at)).status], [64, 200])
  const secret = (await ask(server, '/v2/account/secrets', { body: { name: 'token', value: 'hidden' } })).json
  const other = new Terminal(`secrets rm ${secret.id}`)
  await other.shows(/secret token.* will be deleted: its value cannot be read again/)
  other.type('y\r')
  assert.equal(await other.end(), 0)
  const agreed = new Terminal('endpoints delete doomed')
  await agreed.shows(question)
  agreed.type('y\r')
  await agreed.shows(/is deleted/)
  assert.deepEqual([await agreed.end(), (await ask(server, at)).status], [0, 404])
  const { json: template } = await ask(server, '/v2/templates', { body: { name: 't', image: 'i' } })
  const unasked = new Terminal(`templates delete ${template.id} --yes`)
  assert.equal(await unasked.end(), 0)
  assert.doesNotMatch(unasked.text, /go on/)
})

test('a server on a terminal says that a worker crashed, and with --watch what workers print and which jobs fail', async () => {
  const crashing = temporaryFolder()
  writeFileSync(join(crashing, 'handler.mjs'), "throw new Error('no weights')\n")
  const dataDir = temporaryFolder()
  const terminal = new Terminal(`serve --port 0 --data-dir '${dataDir}' --watch --worker '${crashing}'`)
  await terminal.shows(/Runyard is up at \S+.*\/run\s/s)
  const url = /up at (\S+)/.exec(terminal.text)?.[1] ?? ''
  const { port } = new URL(url)
  assert.match(
    terminal.text,
    new RegExp(`^Open the console: http://console\\.localhost:${port}/#link=[\\w-]{43}\\s*$`, 'm'),
  )
  const id = /\/v2\/([a-z0-9]+)\/run\s/.exec(terminal.text)?.[1] ?? ''
  const own = { url, apiKey: readFileSync(join(dataDir, 'api-key'), 'utf8').trim() }
  const submitted = await ask(own, `/v2/${id}/run`, { body: { input: {} } })
  assert.equal(submitted.status, 200)
  await terminal.shows(new RegExp(`warn {2}a worker of ${id} exited with code 1; runyard why ${id} says more`))
  await terminal.shows(/\S+ \| Error: no weights/)
  mkdirSync(join(crashing, 'node_modules', '@runyard'), { recursive: true })
  symlinkSync(`${root}/packages/worker`, join(crashing, 'node_modules', '@runyard', 'worker'))
  const lines = [
    "import { start } from '@runyard/worker'",
    "await start({ handler: () => { console.log('now \\u001b[2J here'); null.missing } })",
  ]
  writeFileSync(join(crashing, 'handler.mjs'), lines.join('\n'))
  await terminal.shows(/handler\.mjs changed in .*: its workers are replaced/)
  await terminal.shows(/\S+ \| INFO now {2}here/)
  const job = submitted.json.id
  await terminal.shows(
    new RegExp(
      `error job ${job} of \\S+ failed: TypeError: Cannot read properties of null .*; runyard jobs get ${job} says`,
    ),
  )
  terminal.type(CTRL_C)
  assert.equal(await terminal.end(), 0)
})
