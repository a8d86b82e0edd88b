import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../../src/core/errors.ts'
import { parseArgs, splitCommandLine } from '../../../src/core/workers/command-line.ts'

const cases: [text: string, words: string[]][] = [
  ['', []],
  [' \t\r\n ', []],
  ['python3 handler.py', ['python3', 'handler.py']],
  [`a '' "" b`, ['a', '', '', 'b']],
  [`'it'"'"'s' it\\'s`, ["it's", "it's"]],
  ['a\\ b "c d"e', ['a b', 'c de']],
  ['a\\\nb c\\\n d "e\\\nf"', ['ab', 'c', 'd', 'ef']],
  [`'\\\\'"x"`, ['\\\\x']],
  ['"\\$HOME \\`x\\` \\" \\\\ \\n"', ['$HOME `x` " \\ \\n']],
  [
    `$HOME $(date) *.py ~ # a; b && c | d > e`,
    ['$HOME', '$(date)', '*.py', '~', '#', 'a;', 'b', '&&', 'c', '|', 'd', '>', 'e'],
  ],
  [`--config '{"a": "b\\"c"}'`, ['--config', '{"a": "b\\"c"}']],
]

for (const [text, words] of cases) {
  test(`${JSON.stringify(text)} is split into ${words.length} words`, () => {
    assert.deepEqual(splitCommandLine(text), words)
  })
}

test('an unfinished line is refused with a message', () => {
  for (const text of [`a 'b`, 'a "b', 'a "b\\"', 'a\\']) {
    assert.throws(() => splitCommandLine(text), { code: 'invalid', message: /^args / })
  }
})

test('a command line is split as the shell of this machine splits it', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\t', "'", '"', '\\'), maxLength: 14 })
  fc.assert(
    fc.property(text, line => {
      assert.deepEqual(attempt(line), splitByShell(line))
    }),
    { numRuns: 400 },
  )
})

test('JSON of clients is an entrypoint and what follows it', () => {
  assert.deepEqual(parseArgs(' {"cmd": ["b", "c d"], "entrypoint": ["a"]} '), ['a', 'b', 'c d'])
  assert.deepEqual(parseArgs('{}'), [])
  for (const text of ['{"cmd": "a"}', '{"cmd": [1]}', '{"command": ["a"]}', '{', '{"cmd": null}']) {
    assert.throws(() => parseArgs(text), { code: 'invalid', message: /^args / })
  }
})

/** The words, or null for a line that is not finished. */
function attempt(line: string): string[] | null {
  try {
    return splitCommandLine(line)
  } catch (thrown) {
    assert.ok(thrown instanceof AppError)
    return null
  }
}

function splitByShell(line: string): string[] | null {
  // A shell takes a backslash at the very end for itself.
  if (/(?<!\\)(?:\\\\)*\\$/.test(line) && attempt(line) === null) return null
  try {
    const out = execFileSync('/bin/sh', ['-c', `for word in ${line}\ndo printf '%s\\0' "$word"; done`], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return out.split('\0').slice(0, -1)
  } catch {
    return null
  }
}
