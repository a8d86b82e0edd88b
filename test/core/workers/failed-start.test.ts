import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPrestartOutput, readStartReport } from '../../../src/core/workers/failed-start.ts'
import { problemText } from '../../../src/core/workers/worker-problem.ts'

const FAILED = {
  event: 'prestart_failed',
  error_type: 'RuntimeError',
  error_message: 'no weights\nat /models',
  error_traceback: 'Traceback ...',
  worker_id: 'w1',
  runpod_version: '2.0.0rc2',
  hook: 'load',
}
const spaced = (value: unknown) => JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "')

test('a failed hook is read with its name and message, as Python writes it and without spaces', () => {
  for (const text of [JSON.stringify(FAILED), spaced(FAILED)]) {
    const report = readStartReport(text)
    assert.equal(report?.workerId, 'w1')
    assert.equal(problemText(report!.failure!), 'its prestart hook load failed: RuntimeError: no weights at /models')
  }
})

test('a runtime that could not load its program is read, and a worker that was asked to end before it was ready', () => {
  const bootstrap = readStartReport(
    '{"error_type":"BootstrapError","error_message":"worker bootstrap failed during \'attach\': no manifest"}',
  )
  assert.equal(
    problemText(bootstrap!.failure!),
    "its runtime could not load its program: worker bootstrap failed during 'attach': no manifest",
  )
  const cancelled = readStartReport(
    '{"event": "prestart_cancelled", "error_type": "PrestartCancelled", "worker_id": "w1"}',
  )
  assert.deepEqual(cancelled, { failure: null, workerId: 'w1' })
})

test('an error of a handler is not a failed start, whatever its text', () => {
  for (const text of [
    'prestart_failed',
    '{"error_type": "<class \'ValueError\'>", "error_message": "prestart_failed"}',
    '{"error_message": "x", "event": "prestart_failed"}',
    '{"event": "prestart_failed"',
    '{"event": "prestart_other", "error_message": "x"}',
    '["{\\"event\\": \\"prestart_failed\\"}"]',
    `{"event": "prestart_failed", "error_message": "${'x'.repeat(600_000)}"}`,
    `{"event": "prestart_failed", "a": ${'['.repeat(100_000)}`,
  ])
    assert.equal(readStartReport(text), null, text.slice(0, 80))
})

test('of a report of any length only what is shown is read, whatever escapes are where it is cut', () => {
  const long = { ...FAILED, error_traceback: '\\"'.repeat(16_384), logs: '{"'.repeat(8_192) }
  for (const filler of ['m', '"', '\\', '\n', '\u{1f600}', '\u0007']) {
    const text = JSON.stringify({ ...long, worker_id: null, error_message: `${filler.repeat(16_000)}end` })
    const ascii = text.replace(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    for (const json of [text, ascii]) {
      const report = readStartReport(json)
      assert.ok(report?.failure?.kind === 'prestart_failed' && report.failure.hook === 'load', filler)
      assert.equal(report.workerId, null)
    }
  }
  const members = Array.from({ length: 50_000 }, () => '"hook": "h"')
  assert.equal(readStartReport(`{"event": "prestart_failed", ${members.join(', ')}}`), null)
})

test('texts of the worker are cut and made printable', () => {
  const { failure } = readStartReport(
    JSON.stringify({ ...FAILED, hook: 'h'.repeat(300), error_message: `${'m'.repeat(30_000)}` }),
  )!
  assert.ok(failure?.kind === 'prestart_failed' && failure.hook.length === 100 && failure.message.length === 500)
})

test('the output of a worker says when its hooks begin, which one runs, and how they end', () => {
  assert.deepEqual(readPrestartOutput('INFO Prestart | phase started'), { kind: 'started' })
  assert.deepEqual(readPrestartOutput('INFO Prestart | running hook: load'), { kind: 'hook', hook: 'load' })
  assert.deepEqual(readPrestartOutput('INFO Prestart | ready'), { kind: 'ready' })
  const failed = readPrestartOutput(`ERROR prestart_failed | ${spaced(FAILED)}`)
  assert.ok(failed?.kind === 'failed' && failed.failure.kind === 'prestart_failed' && failed.failure.hook === 'load')
  for (const line of [
    'Prestart | ready',
    'INFO Prestart | ready now',
    'ERROR prestart_failed | no',
    'ERROR prestart_failed | {}',
  ])
    assert.equal(readPrestartOutput(line), null)
})
