/** Output of workers and servers, which must not control the terminal of a reader. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { textForStream } from '../../../src/cli/terminal/terminal-text.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { programFile } from '../support/server.ts'

const TERMINAL = { isTTY: true }
const EVIL = '\u001b]0;title\u0007\u001b[2Jcleared\u001b]52;c;cm0gLXJm\u0007\u009b31m\r\u0008end\tof\nit\u007f'

test('on a terminal nothing is left that could steer it; texts, line ends and tabs stay', () => {
  const shown = textForStream(EVIL, TERMINAL)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(shown), JSON.stringify(shown))
  assert.match(shown, /cleared/)
  assert.match(shown, /end\tof\nit/)
  assert.equal(textForStream('grüße, 世界 🎉\n', TERMINAL), 'grüße, 世界 🎉\n')
})

test('a file or a pipe gets every byte', () => {
  assert.equal(textForStream(EVIL, {}), EVIL)
})

/** A server of somebody who means harm: whatever it is asked, it answers with escapes. */
const evil = createServer((request, response) => {
  const isRefusal = request.url?.startsWith('/v2/refused') === true
  const job = { id: EVIL, status: 'FAILED', error: EVIL, output: EVIL }
  response.writeHead(isRefusal ? 404 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(isRefusal ? { error: EVIL } : job))
})
before(() => new Promise<void>(resolve => evil.listen(0, '127.0.0.1', resolve)))
after(() => void evil.close())

/** Output of a command on a terminal, which `script` makes for it. */
function onTerminal(command: string): Promise<string> {
  const { port } = evil.address() as AddressInfo
  const words = `${programFile()} ${command} --url http://127.0.0.1:${port} --api-key x`
  const terminal = spawn('script', ['-qefc', words, '/dev/null'], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  terminal.stdout.setEncoding('utf8').on('data', text => (printed += text))
  return new Promise(resolve => terminal.once('close', () => resolve(printed)))
}

test('a refusal of a server and the id of a job steer no terminal', async () => {
  for (const command of ["run refused -i '{}'", "run other -i '{}' --detach"]) {
    const printed = await onTerminal(command)
    assert.match(printed, /cleared/, command)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    assert.doesNotMatch(printed, /\u001b\]0|\u001b\]52|\u001b\[2J|[\u0007\u0008\u0080-\u009f]/, command)
  }
})

test('the test of a worker that prints and fails with escapes steers no terminal', async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, '.runpod'))
  writeFileSync(join(folder, '.runpod', 'tests.json'), JSON.stringify({ tests: [{ name: EVIL, input: {} }] }))
  for (const form of ['', ' --json']) {
    const printed = await onTerminal(`test ${folder} -e other${form}`)
    assert.match(printed, /cleared/, printed)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    assert.doesNotMatch(printed, /\u001b\]0|\u001b\]52|\u001b\[2J|[\u0007\u0008\u0080-\u009f]/, form)
  }
})
