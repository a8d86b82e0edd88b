/** Lines of output, and the messages of the official SDK in it, wherever they stand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineAssembler, MAX_LINE_BYTES } from '../../src/system/worker-logs/worker-log-lines.ts'

/** A message as the Python SDK prints it, without its newline. */
const sdk = (message: string, job: string | null = 'job-1', level = 'ERROR') =>
  `{"requestId": ${JSON.stringify(job)}, "message": ${JSON.stringify(message)}, "level": "${level}"}`

/** The lines of a whole output that arrives in blocks of `size` bytes. */
function assembleLines(output: string | Buffer, size = Number.POSITIVE_INFINITY) {
  const bytes = Buffer.from(output)
  const assembler = new LineAssembler()
  const lines = []
  for (let from = 0; from < bytes.length; from += size)
    lines.push(...assembler.push(bytes.subarray(from, from + size), from))
  return [...lines, ...assembler.finish(bytes.length)]
}

const shown = (output: string, size?: number) =>
  assembleLines(output, size).map(({ line, jobId, isMidLine }) => [
    line,
    jobId,
    ...(isMidLine === true ? ['mid-line'] : []),
  ])

const BAR = '\r 40%|████      | 4/10 [00:04<00:06,  1.00s/it]'
const VISIBLE = BAR.slice(1)
const M = sdk('Failed.')

for (const [what, output, expected] of [
  ['alone in its line', `${M}\n`, [['ERROR Failed.', 'job-1']]],
  [
    'behind a progress bar',
    `${BAR}${M}\n`,
    [
      [VISIBLE, null],
      ['ERROR Failed.', 'job-1', 'mid-line'],
    ],
  ],
  ['behind a progress bar that was wiped', `${BAR}\r          \r${M}\n`, [['ERROR Failed.', 'job-1']]],
  ['behind a colour', `\x1b[31m\x1b[0m${M}\n`, [['ERROR Failed.', 'job-1']]],
  [
    'before a progress bar',
    `${M}${BAR}\n`,
    [
      ['ERROR Failed.', 'job-1'],
      [VISIBLE, null],
    ],
  ],
  [
    'between text',
    `one${M}two\n\n`,
    [
      ['one', null],
      ['ERROR Failed.', 'job-1', 'mid-line'],
      ['two', null],
      ['', null],
    ],
  ],
  [
    'two in a line',
    `${M}${sdk('Finished.', 'job-2', 'INFO')}\n\n`,
    [
      ['ERROR Failed.', 'job-1'],
      ['INFO Finished.', 'job-2'],
      ['', null],
    ],
  ],
  [
    'two behind text',
    `x${M}${sdk('Finished.')}\n`,
    [
      ['x', null],
      ['ERROR Failed.', 'job-1', 'mid-line'],
      ['ERROR Finished.', 'job-1', 'mid-line'],
    ],
  ],
  [
    'two of which the first breaks off',
    `${M.slice(0, 40)}${M}\n`,
    [
      [M.slice(0, 40), null],
      ['ERROR Failed.', 'job-1', 'mid-line'],
    ],
  ],
  [
    'of several lines',
    `x${sdk('a\nb')}\n`,
    [
      ['x', null],
      ['ERROR a', 'job-1', 'mid-line'],
      ['b', 'job-1', 'mid-line'],
    ],
  ],
  [
    'without a job',
    `x${sdk('ready', null, 'INFO')}\n`,
    [
      ['x', null],
      ['INFO ready', null, 'mid-line'],
    ],
  ],
  [
    'with quotes and braces in it',
    `x${sdk('{"requestId": "\\"}"}')}\n`,
    [
      ['x', null],
      ['ERROR {"requestId": "\\"}"}', 'job-1', 'mid-line'],
    ],
  ],
  [
    'without spaces, as our SDK prints it',
    `x${JSON.stringify(JSON.parse(M))}\n`,
    [
      ['x', null],
      ['ERROR Failed.', 'job-1', 'mid-line'],
    ],
  ],
  [
    'without a newline at the end of the output',
    `x${M}`,
    [
      ['x', null],
      ['ERROR Failed.', 'job-1', 'mid-line'],
    ],
  ],
] as const)
  test(`a message of the SDK is found ${what}, in whatever blocks it comes`, () => {
    for (const size of [1, 2, 7, 40, Number.POSITIVE_INFINITY]) assert.deepEqual(shown(output, size), expected)
  })

test('what only looks like a message is text', () => {
  for (const text of [
    'got {"requestId": "a", "message": "b"}',
    'got {"requestId": "a", "message": "b", "level": "INFO", "more": 1}',
    'got {"requestId": 7, "message": "b", "level": "INFO"}',
    'got {\\"requestId\\": \\"a\\", \\"message\\": \\"b\\", \\"level\\": \\"INFO\\"}',
    'got {"message": "b", "requestId": "a", "level": "INFO"}',
    'got {"requestId": "a", "message": "b\tc", "level": "INFO"}',
  ])
    assert.deepEqual(shown(`${text}\n`), [[text, null]])
})

test('a message is found behind more text than is shown of a line, and nothing more of that is kept', () => {
  const bars = Array.from({ length: 200_000 }, (_, n) => `\r ${n}/200000 [00:04<00:06]`).join('')
  assert.ok(bars.length > 50 * MAX_LINE_BYTES)
  const lines = assembleLines(`${bars}${M}\nnext\n`, 64 * 1024)
  assert.deepEqual(
    lines.slice(1).map(({ line }) => line),
    ['ERROR Failed.', 'next'],
  )
  assert.ok(Buffer.byteLength(lines[0]!.line) <= MAX_LINE_BYTES)
})

test('a message that is larger than a line may be is cut like a line, and the next one is found', () => {
  const huge = sdk('x'.repeat(2 * MAX_LINE_BYTES))
  for (const size of [30_000, Number.POSITIVE_INFINITY]) {
    const lines = assembleLines(`${huge}${M}\n`, size)
    assert.equal(lines.length, 2)
    assert.equal(Buffer.byteLength(lines[0]!.line), MAX_LINE_BYTES)
    assert.equal(lines[1]!.line, 'ERROR Failed.')
  }
})

test('positions grow and are unique, and lines are the same however the output is cut into blocks', () => {
  const part = fc.oneof(
    fc.constantFrom(
      M,
      sdk('a\nb', 'job-2'),
      BAR,
      '\n',
      '\r',
      '{',
      '"',
      '{"requestId"',
      '{"requestId": "a',
      ' ',
      '\x1b[1m',
      'text',
    ),
    fc.string({ maxLength: 5 }),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), fc.integer({ min: 1, max: 50 }), (parts, size) => {
      const output = parts.join('')
      const whole = assembleLines(output)
      assert.deepEqual(assembleLines(output, size), whole)
      for (const [index, { position }] of whole.entries()) assert.ok(position > (whole[index - 1]?.position ?? 0))
    }),
  )
})
