/** `runyard top` on a terminal, which `script` makes for it, against a server that comes and goes. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { programFile } from '../support/server.ts'
import { until } from '../support/until.ts'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'

/** An answer of the server with one endpoint of this name. */
function answer(name: string): string {
  const none = { running: 0, idle: 0, initializing: 0, throttled: 0, unhealthy: 0, total: 0, ready: 0 }
  const jobs = { inQueue: 2, lowPriority: 0, inProgress: 0, headQueuedAtMs: Date.now() - 5_000 }
  const endpoint = { id: 'e1', name, type: 'QUEUE', workersMin: 0, workersMax: 0, finished: 3, jobs, summary: none }
  const explanation = {
    cause: 'paused',
    summary: 'workersMax is 0',
    action: 'raise it',
    sinceMs: 0,
    evidence: [],
    commands: [],
    notes: [],
  }
  return JSON.stringify({ atMs: Date.now(), endpoints: [{ ...endpoint, explanation, workers: [] }], more: false })
}

function serve(name: string, port = 0): Promise<Server> {
  const server = createServer((_, response) => response.setHeader('content-type', 'application/json').end(answer(name)))
  atEnd(() => void server.close())
  return new Promise(resolve => server.listen(port, '127.0.0.1', () => resolve(server)))
}

interface Terminal {
  readonly process: ChildProcess
  /** All that was written to it. */
  text(): string
  readonly exit: Promise<number | null>
}

function openTerminal(url: string): Terminal {
  const words = `'${programFile()}' top --url ${url} --api-key rpa_x --interval 0.2; echo "left with $?"`
  const env = { PATH: process.env.PATH ?? '', TERM: 'xterm', COLUMNS: '100', LINES: '24' }
  const terminal = spawn('script', ['-qefc', words, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  atEnd(() => void terminal.kill('SIGKILL'))
  let text = ''
  terminal.stdout.on('data', (data: Buffer) => {
    text += data.toString()
  })
  const exit = new Promise<number | null>(resolve => terminal.once('close', resolve))
  return { process: terminal, text: () => text, exit }
}

test('top keeps running while its server is unavailable, and restores the terminal at Ctrl-C', async () => {
  const first = await serve('before')
  const { port } = first.address() as AddressInfo
  const { process: terminal, text, exit } = openTerminal(`http://127.0.0.1:${port}`)
  await until('the endpoint', () => text().includes('before (e1)'))
  assert.ok(text().startsWith(ENTER))
  assert.match(text(), /paused: workersMax is 0/)
  first.close()
  first.closeAllConnections()
  await until('the problem', () => text().includes('trying again'))
  await serve('after', port)
  await until('the server again', () => text().includes('after (e1)'))
  assert.ok(!text().includes(LEAVE))
  terminal.stdin!.write('\u0003')
  await exit
  assert.match(text().slice(text().indexOf(LEAVE)), /left with 0/)
})

test('top says what is wrong with an address before it takes the terminal', async () => {
  const { text, exit } = openTerminal('http://127.0.0.1:1')
  await exit
  assert.ok(!text().includes(ENTER))
  assert.match(text(), /no server answers at http:\/\/127\.0\.0\.1:1.*left with 69/s)
})
