/** The commands of the documentation, page by page, as a reader pastes them. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { atExit, temporaryFolder } from '../support/cleanup.ts'
import { ask, runJob, submit } from '../support/client.ts'
import { programFile, root, type Server, startServer } from '../support/server.ts'
import { UNRUN } from './unrun-commands.ts'

const PAGES = ['README.md', 'docs/start.md', 'docs/guides/*.md', 'docs/reference/*.md']

/** The commands in the fenced blocks of a page, continued lines joined. Lines that begin with `{` show a response. */
function commandsOf(page: string): string[] {
  const blocks = [...readFileSync(join(root, page), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block!)
  return blocks
    .flatMap(block => block.replaceAll('\\\n', ' ').split('\n'))
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#') && !line.startsWith('{'))
}

function pages(): string[] {
  return PAGES.flatMap(pattern => globSync(pattern, { cwd: root }).sort())
}

/** It answers each path, its health check too. */
const SERVER = `import { createServer } from 'node:http'
createServer((_, response) => response.end('{"message":"Hello, Ada!"}')).listen(process.env.PORT)
`

/** A folder as readers have it: a handler in `my-model`, a server in `my-api`. */
function readersFolder(): string {
  const folder = temporaryFolder()
  for (const name of ['my-model', 'chat']) {
    mkdirSync(join(folder, name, '.runpod'), { recursive: true })
    cpSync(join(root, 'examples/hello-node/handler.mjs'), join(folder, name, 'handler.mjs'))
    const tests = { tests: [{ name: 'ada', input: { name: 'Ada' } }] }
    writeFileSync(join(folder, name, '.runpod/tests.json'), JSON.stringify(tests))
  }
  mkdirSync(join(folder, 'my-api'))
  writeFileSync(join(folder, 'my-api/server.mjs'), SERVER)
  return folder
}

describe('the documentation', () => {
  let folder: string
  let server: Server
  let words: Readonly<Record<string, string>>
  before(async () => {
    folder = readersFolder()
    const folders = ['--sample', '--worker', join(folder, 'my-model'), '--lb', join(folder, 'my-api')]
    server = await startServer({
      dataDir: join(folder, '.runyard'),
      args: [...folders, '--process-root', folder],
    })
    await runJob(server, 'mymodel', {})
    const account = (await ask(server, '/v2/account/accounts', { body: { name: 'another' } })).json.id
    const [worker] = (await ask(server, '/v2/serverless/mymodel/workers')).json.workers
    const job = await submit(server, 'mymodel', {})
    words = { '<endpoint>': 'mymodel', '<worker>': worker.id, '<job>': job, '<account>': account }
  })

  /** A command with what the reader puts in: ids, and the address of the server. */
  const filled = (command: string) => {
    const named = command.replaceAll(/<\w+>/g, word => words[word] ?? word)
    return named.replaceAll('127.0.0.1:8080', `127.0.0.1:${server.port}`)
  }

  for (const page of pages()) {
    const commands = commandsOf(page).filter(command => !Object.hasOwn(UNRUN, command))
    if (commands.length === 0) continue
    test(`${page}: ${commands.length} commands`, async () => {
      const script = commands.map(command => `page_command ${quoted(filled(command))}\n`).join('')
      const prelude = readFileSync(new URL('prelude.sh', import.meta.url), 'utf8')
      const { code, printed } = await bash(`${prelude}\n${script}`, folder)
      assert.equal(code, 0, printed)
    })
  }

  test('each exception is on a page', () => {
    const all = new Set(pages().flatMap(commandsOf))
    assert.deepEqual(
      Object.keys(UNRUN).filter(command => !all.has(command)),
      [],
    )
  })
})

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

const program = programFile()

function bash(script: string, cwd: string): Promise<{ code: number | null; printed: string }> {
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, RUNYARD_PROGRAM: program }
  const child = spawn('bash', ['-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const takeBack = atExit(() => child.kill('SIGKILL'))
  const parts: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => void parts.push(text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      takeBack()
      resolve({ code, printed: parts.join('') })
    })
  })
}
