/** What a worker prints must not steer the terminal of whoever reads it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forStream } from '../../../src/cli/terminal-text.ts'

const TERMINAL = { isTTY: true }
const EVIL = '\u001b]0;title\u0007\u001b[2Jcleared\u001b]52;c;cm0gLXJm\u0007\u009b31m\r\u0008end\tof\nit\u007f'

test('on a terminal nothing is left that could steer it; texts, line ends and tabs stay', () => {
  const shown = forStream(EVIL, TERMINAL)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(shown), JSON.stringify(shown))
  assert.match(shown, /cleared/)
  assert.match(shown, /end\tof\nit/)
  assert.equal(forStream('grüße, 世界 🎉\n', TERMINAL), 'grüße, 世界 🎉\n')
})

test('a file or a pipe gets every byte', () => {
  assert.equal(forStream(EVIL, {}), EVIL)
})
