/** Dev sessions of RunPod's SDK 2.0 against a server that speaks HTTPS with a certificate of its own. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { secureCall } from '../support/https.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const START_MS = 60_000
const PROGRAM = ['-c', 'from runpod.rp_cli.main import run; run()', 'flash', 'dev', 'main.py']
const PATH = `${dirname(sdk2)}${delimiter}${process.env.PATH}`

/** Line that `main.py` prints in each run: the results, and the processes that gave them. */
interface Result {
  readonly sum: number
  readonly functionPid: number
  readonly number: number
  readonly routePid: number
}

describe("a dev session of RunPod's SDK 2.0", { skip: sdk2Skip, timeout: patient(240_000) }, () => {
  let server: Server
  let variables: Record<string, string>
  let ca: string

  before(async () => {
    server = await startServer({ args: ['--tls-self-signed'], env: { PATH } })
    const { stdout } = await runCommand(['sdk', 'env', '--json', '--data-dir', server.dataDir])
    variables = JSON.parse(stdout)
    ca = readFileSync(join(server.dataDir, 'tls', 'certificate.pem'), 'utf8')
  })

  /** The ids of the endpoints that the server has, by their names. */
  async function endpoints(): Promise<Record<string, string>> {
    const { text } = await secureCall(server, '/v2/serverless', { ca })
    const found: { id: string; name: string }[] = JSON.parse(text).endpoints
    return Object.fromEntries(found.map(({ id, name }) => [name.split('-')[2], id]))
  }

  /** A folder with a file of the fixture. */
  function project(name: string): string {
    const folder = temporaryFolder()
    copyFileSync(join(fixture('python-app'), name), join(folder, 'main.py'))
    return folder
  }

  const envOf = (folder: string) => ({ PATH, HOME: folder, PYTHONUNBUFFERED: '1', ...variables })

  /** A session that waits for edits. */
  function open(folder: string) {
    const child = spawn(sdk2, PROGRAM, { cwd: folder, env: envOf(folder), stdio: 'pipe' })
    atEnd(() => void child.kill('SIGKILL'))
    let text = ''
    for (const output of [child.stdout, child.stderr]) output.on('data', part => (text += part))
    const ended = once(child, 'exit')
    const results = (): Result[] =>
      [...text.matchAll(/^result (\d+) (\d+) (\d+) (\d+)$/gm)].map(([, ...numbers]) => {
        const [sum, functionPid, number, routePid] = numbers.map(Number)
        return { sum: sum!, functionPid: functionPid!, number: number!, routePid: routePid! }
      })
    /** The result of the last run, once there are so many. */
    const result = (count: number) =>
      until(
        `result ${count}`,
        () => {
          assert.equal(child.exitCode, null, text)
          return results()[count - 1]
        },
        START_MS,
      )
    return { child, ended, result, text: () => text, enter: () => void child.stdin.write('\n') }
  }

  test('functions, generators, nested calls and routes run on this server, with one line of preparation', async () => {
    const folder = project('main.py')
    const { stdout } = await promisify(execFile)(sdk2, [...PROGRAM, '--once'], { cwd: folder, env: envOf(folder) })
    assert.match(stdout, /sum 3 list \[0, 1, 2\] nested 15/)
    assert.match(stdout, /word \{'word': 'alpha'\}/)
    assert.match(stdout, /own key False/)
    const { OPENAI_BASE_URL = '', OPENAI_API_KEY } = variables
    assert.deepEqual([new URL(OPENAI_BASE_URL).port, OPENAI_API_KEY], [String(server.port), server.apiKey])
    const models = await secureCall(server, `${new URL(OPENAI_BASE_URL).pathname}/models`, { ca })
    assert.equal(models.status, 200, models.text)
    assert.deepEqual(await endpoints(), {})
  })

  test('an edit is run by fresh processes, a new worker has its source, and a killed session is taken over', async () => {
    const folder = project('edited.py')
    const file = join(folder, 'main.py')
    const source = readFileSync(file, 'utf8')
    const first = open(folder)
    let before = await first.result(1)
    assert.deepEqual([before.sum, before.number], [1, 0])
    for (const number of [1, 2]) {
      writeFileSync(file, source.replace('NUMBER = 0', `NUMBER = ${number}`))
      const after = await first.result(1 + number)
      assert.deepEqual([after.sum, after.number], [1 + number, number])
      assert.notEqual(after.functionPid, before.functionPid)
      assert.notEqual(after.routePid, before.routePid)
      before = after
    }

    // A worker that the client never sent its source serves it.
    const ids = await endpoints()
    const own = `/v2/serverless/${ids.words}`
    const headers = { 'content-type': 'application/json' }
    const changed = await secureCall(server, own, {
      ca,
      headers,
      method: 'PATCH',
      body: { workers: { min: 2, max: 3 } },
    })
    assert.equal(changed.status, 200, changed.text)
    await until(
      'two workers of the API',
      async () => JSON.parse((await secureCall(server, `${own}/workers`, { ca })).text).summary.idle >= 2,
      START_MS,
    )
    process.kill(before.routePid, 'SIGKILL')
    first.enter()
    const served = await first.result(4)
    assert.equal(served.number, 2)
    assert.notEqual(served.routePid, before.routePid)
    // A process can have the number 10404.
    assert.doesNotMatch(first.text(), /\b404\b/)

    first.child.kill('SIGKILL')
    await first.ended
    assert.deepEqual(await endpoints(), ids)
    writeFileSync(join(folder, 'slowly'), '')
    const second = open(folder)
    assert.equal((await second.result(1)).number, 2)
    assert.deepEqual(await endpoints(), ids)
    await until('the output of a worker', () => second.text().includes('printed while it works'), START_MS)
    second.child.kill('SIGINT')
    assert.deepEqual(await second.ended, [0, null], second.text())
    assert.match(second.text(), /^calls it was slow$/m)
    assert.doesNotMatch(second.text(), /"requestId"|"level"/)
    assert.deepEqual(await endpoints(), {})
  })
})
