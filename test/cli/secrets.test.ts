/** Secrets that commands ask for. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { type SecretStreams, secretText } from '../../src/cli/client/hidden-input.ts'

/** A terminal or a pipe, with its output. */
function streams(isTTY: boolean) {
  const modes: boolean[] = []
  let written = ''
  let shownBeforeRaw = ''
  const input = Object.assign(new PassThrough(), {
    isTTY,
    setRawMode: (mode: boolean) => {
      if (modes.length === 0) shownBeforeRaw = written
      modes.push(mode)
    },
  })
  const output = {
    write: (text: string) => {
      written += text
    },
  }
  const given = { input, output } as unknown as SecretStreams
  return { input, given, written: () => written, shownBeforeRaw: () => shownBeforeRaw, modes }
}

test('a secret that is typed is not echoed, by the terminal or by the command', async () => {
  const { input, given, written, shownBeforeRaw, modes } = streams(true)
  const asked = secretText('value of the secret', given)
  input.write('hunt')
  input.write('er3\u007f2\r')
  assert.equal(await asked, 'hunter2')
  // A user may type as soon as the question appears.
  assert.equal(shownBeforeRaw(), '')
  // In raw mode the terminal itself shows nothing; afterwards it is as before.
  assert.deepEqual(modes, [true, false])
  assert.equal(written(), 'value of the secret: \n')
})

test('a secret of several lines that is pasted is refused as a whole, and Ctrl-C and Ctrl-D change nothing', async () => {
  const pasted = streams(true)
  const asked = secretText('key', pasted.given)
  pasted.input.write('-----BEGIN\rabc\r-----END')
  await assert.rejects(asked, /more than one line; keep it in a file/)
  for (const key of ['\u0003', '\u0004']) {
    const ended = streams(true)
    const given = secretText('key', ended.given)
    ended.input.write(key)
    await assert.rejects(given, /nothing was changed/)
    assert.deepEqual(ended.modes.at(-1), false)
  }
})

test('standard input is read where nobody types, in pieces, without its last line end', async () => {
  for (const [text, secret] of [
    ['hunter2\n', 'hunter2'],
    ['a\nb\r\n', 'a\nb'],
    ['ü', 'ü'],
  ] as const) {
    const { input, given, written } = streams(false)
    const asked = secretText('value', given)
    for (const byte of Buffer.from(text)) input.write(Buffer.of(byte))
    input.end()
    assert.equal(await asked, secret)
    assert.equal(written(), '')
  }
})
