/** The output of workers and the failed jobs on the terminal of a server that watches folders. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId, OwnerId, WorkerId } from '../../src/core/ids.ts'
import type { Emit } from '../../src/events.ts'
import { FailedJobLines } from '../../src/main/terminal/failed-job-lines.ts'
import { type ShownOutput, showOutput } from '../../src/main/terminal/terminal-view.ts'
import type { LogBatch } from '../../src/services/observing/log-stream.ts'

const CHAT = { id: 'chat1' as EndpointId, name: 'chat', owner: 'owner' as OwnerId }

/** Lets all code go on that waits only for promises. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}

/** Lines of one worker, as a reading returns them. */
function batch(worker: string, ...lines: string[]): LogBatch {
  const place = { position: 0, historyRead: 0 }
  const workerId = worker as WorkerId
  const events = lines.map(line => ({
    id: '',
    workerId,
    source: 'container' as const,
    tsMs: 0,
    line,
    jobId: null,
    place,
  }))
  return { events, missed: 0 }
}

/**
 * Shows readings, each of some batches, one after the other, and then nothing more. Resolves with the
 * lines and the pauses between.
 */
async function shown(readings: readonly (readonly LogBatch[])[]): Promise<{ lines: string[]; pauses: number[] }> {
  const lines: string[] = []
  const pauses: number[] = []
  let nowMs = 0
  let opened = 0
  const over = Promise.withResolvers<void>()
  const open = async () => {
    const batches = [...(readings[opened] ?? [])]
    opened += 1
    if (opened > readings.length) {
      over.resolve()
      return new Promise<never>(() => {})
    }
    return { next: async () => batches.shift() ?? null, close() {} }
  }
  const close = showOutput({
    logs: { open } as unknown as ShownOutput['logs'],
    endpoints: [CHAT],
    write: text => void lines.push(text),
    now: () => nowMs,
    async pause(ms) {
      pauses.push(ms)
      nowMs += ms
    },
  })
  await over.promise
  close()
  return { lines, pauses }
}

test('a line names its endpoint, and its worker while several print; control characters are left out', async () => {
  const { lines } = await shown([
    [batch('w1', 'one', '\u001b[31mred\u001b[0m\u0007 \u009b2Jx'), batch('w2', 'two'), batch('w1', 'x'.repeat(5_000))],
  ])
  assert.deepEqual(lines.slice(0, 3), ['chat | one\n', 'chat | red x\n', 'chat w2 | two\n'])
  assert.equal(lines[3], `chat w1 | ${'x'.repeat(2_000)}...\n`)
})

test('a flood shows a hundred lines in a second and says that the rest is left out, each second', async () => {
  const flood = Array.from({ length: 5_000 }, (_, n) => `line ${n}`)
  const { lines, pauses } = await shown([[batch('w1', ...flood)], [batch('w1', ...flood), batch('w1', ...flood)], []])
  assert.equal(lines.length, 2 * 101)
  assert.deepEqual(
    [lines[99], lines[100]],
    ['chat | line 99\n', 'chat | more than 100 lines in a second are left out here: runyard logs chat\n'],
  )
  // The last reading ends by itself, as that of a deleted endpoint does: it is not opened again at once.
  assert.deepEqual(pauses, [1_000, 1_000, 1_000])
})

test('a failed job is named with its error on one line, five in a second, and further ones are counted', async () => {
  const said: [string, object][] = []
  let second = () => {}
  const errors: Record<string, string | null> = {
    j1: JSON.stringify({
      error_type: 'TypeError',
      error_message: 'x is \u001b[2Jnull\nat all',
      error_traceback: 'many',
    }),
    j2: null,
  }
  const lines = new FailedJobLines([CHAT], {
    readError: async (_, job) => (job in errors ? errors[job]! : Promise.reject(new Error('gone'))),
    log: { error: (fields, name) => void said.push([name, fields]) },
    after: (_, callback) => {
      second = callback
    },
  })
  const emit = lines.emit as (...given: [string, object]) => ReturnType<Emit>
  const moved = (jobId: string, to: string, endpointId: string = CHAT.id) =>
    emit('job.moved', { endpointId, jobId, to })
  moved('j1', 'FAILED')
  moved('j9', 'FAILED', 'other')
  moved('j9', 'COMPLETED')
  moved('j2', 'TIMED_OUT')
  emit('job.expired', { endpointId: CHAT.id, jobId: 'j3', undone: {} })
  emit('job.expired', { endpointId: CHAT.id, jobId: 'j9' })
  for (let n = 0; n < 9; n += 1) moved(`j${4 + n}` as JobId, 'FAILED')
  await turns()
  const problem = (text: string, jobId: string) => ['job.failed', { jobId, endpoint: 'chat', problem: text }]
  assert.deepEqual(said.slice(0, 3), [
    problem('TypeError: x is null', 'j1'),
    problem('it took longer than its execution timeout', 'j2'),
    problem('it was not done within its ttl', 'j3'),
  ])
  assert.equal(said.length, 5)
  second()
  assert.deepEqual(said[5], ['jobs.failed', { count: 7 }])
  moved('j1', 'FAILED')
  await turns()
  assert.equal(said.length, 7)
})
