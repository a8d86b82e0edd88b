import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSdkOutput } from '../../../src/core/jobs/sdk-output.ts'

const unsent = (why: 'unusable' | 'undelivered', detail: string, over = false) => ({
  kind: 'unsent',
  why,
  reason: `the worker could not send its result: ${detail}`,
  over,
})

const lines: [line: string, expected: ReturnType<typeof unsent> | { kind: string } | null][] = [
  [
    'ERROR Error while returning job result. | Object of type bytes is not JSON serializable',
    unsent('unusable', 'Object of type bytes is not JSON serializable'),
  ],
  [
    'ERROR [batchId=b-1] Error while returning job result. | Object of type generator is not JSON serializable',
    unsent('unusable', 'Object of type generator is not JSON serializable'),
  ],
  ['ERROR Error while returning job result. | Session is closed', unsent('undelivered', 'Session is closed')],
  [
    "ERROR Failed to return job results. | Cannot connect to host 127.0.0.1:8080 ssl:default [Connect call failed ('127.0.0.1', 8080)]",
    unsent(
      'undelivered',
      "Cannot connect to host 127.0.0.1:8080 ssl:default [Connect call failed ('127.0.0.1', 8080)]",
    ),
  ],
  ['ERROR Failed to return job results. | Server disconnected', unsent('undelivered', 'Server disconnected')],
  ['ERROR Failed to return job results. | 503, message=x', unsent('undelivered', '503, message=x')],
  ['ERROR Failed to return job results. | 401, message=x', unsent('undelivered', '401, message=x')],
  ['ERROR Failed to return job results. | 413, message=x', unsent('unusable', '413, message=x')],
  [
    "ERROR Error handling job: 'utf-8' codec can't encode character '\\ud800' in position 12: surrogates not allowed",
    unsent('unusable', "'utf-8' codec can't encode character '\\ud800' in position 12: surrogates not allowed", true),
  ],
  ['ERROR Error handling job: ', unsent('undelivered', 'no answer in time', true)],
  ['INFO Finished.', { kind: 'finished' }],
  ['INFO [batchId=b-1] Finished.', { kind: 'finished' }],
  ['INFO Started.', null],
  ['WARN Failed to return job results. | x', null],
  ['my program prints: ERROR Failed to return job results. | x', null],
  ['INFO Finished. Or not.', null],
]

for (const [line, expected] of lines) {
  test(`${JSON.stringify(line)} says ${expected === null ? 'nothing' : JSON.stringify(expected.kind)}`, () => {
    assert.deepEqual(readSdkOutput(line), expected)
  })
}

test('a reason has a limit', () => {
  const report = readSdkOutput(`ERROR Error while returning job result. | ${'x'.repeat(100_000)}`)
  assert.ok(report?.kind === 'unsent' && report.reason.length < 1_100)
})
