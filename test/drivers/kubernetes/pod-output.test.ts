/** That the output of a pod is copied once and whole through the API, whatever is cut off and whoever goes on. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../../src/core/ids.ts'
import type { ByteStream, KubernetesCall } from '../../../src/drivers/kubernetes/api.ts'
import { askPauseMs, createPodOutputs, OutputLines } from '../../../src/drivers/kubernetes/pod-output.ts'
import type { WorkerPod } from '../../../src/drivers/kubernetes/worker-pod.ts'
import type { WorkerLogs } from '../../../src/ports/worker-logs.ts'
import { systemClock } from '../../../src/system/clock.ts'

const START_MS = Date.parse('2026-11-26T06:00:00Z')
const timed = (lines: readonly string[]) =>
  lines.map((line, n) => `${new Date(START_MS + n * 400).toISOString().slice(0, -1)}000000Z ${line}`)

test('lines are the same, wherever the stream is cut', () => {
  const text = Buffer.from(timed(['one', '', 'ä'.repeat(70_000), `x ${'y'.repeat(65_533)}`, 'no end']).join('\n'))
  const read = (cuts: readonly number[]) => {
    const lines = new OutputLines()
    const ends = [...cuts, text.length].sort((a, b) => a - b)
    let from = 0
    const entries = ends.flatMap(end => {
      const piece = text.subarray(from, end)
      from = end
      return lines.push(piece)
    })
    return [...entries, ...lines.rest()].map(({ at, text: line }) => `${at} ${line.toString('latin1')}`)
  }
  const whole = read([])
  assert.equal(whole.length, 7)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 20 }), cuts => {
      assert.deepEqual(read(cuts), whole)
    }),
    { numRuns: 60 },
  )
})

interface Server {
  /** Copies what a pod has written until then; the stream breaks off behind so many bytes. */
  copy(written: readonly string[], most?: number): Promise<void>
  text(): string
}

function serverOf(context: TestContext): Server {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-output-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const stateDir = join(folder, 'state')
  mkdirSync(stateDir)
  const logs = { folder: (worker: string) => join(folder, worker) } as unknown as WorkerLogs
  return {
    async copy(written, most = Number.POSITIVE_INFINITY) {
      let breaks = Number.isFinite(most)
      const stream = async ({ query }: KubernetesCall): Promise<ByteStream> => {
        const since = Date.parse(query?.sinceTime ?? '1970-01-01T00:00:00Z')
        const lines = timed(written).filter((_, n) => START_MS + n * 400 >= since)
        const bytes = Buffer.from(`${lines.join('\n')}\n`)
        async function* pieces() {
          for (let at = 0; at < bytes.length; at += 50) {
            if (breaks && at >= most) {
              breaks = false
              throw new Error('the connection was reset')
            }
            yield bytes.subarray(at, at + 50)
          }
        }
        return Object.assign(pieces(), { destroy: () => {} })
      }
      const api = { stream, call: () => assert.fail() }
      const outputs = createPodOutputs({ api, namespace: 'n', clock: systemClock, logs, stateDir })
      const pod = { worker: 'w1' as WorkerId, name: 'runyard-w1', isEnding: true } as WorkerPod
      const copy = outputs.copy(pod)
      // The copy that was broken off asks again by itself.
      await copy.finish(breaks ? 20_000 : 5_000)
    },
    text: () => readFileSync(join(folder, 'w1', '0.log'), 'utf8'),
  }
}

const LINES = Array.from({ length: 60 }, (_, n) => `line ${n}`)
const whole = (to: number) => `${LINES.slice(0, to).join('\n')}\n`

test('a server goes on where the one before it stopped, and another one has it all', async context => {
  const first = serverOf(context)
  for (const count of [10, 10, 35, 60]) await first.copy(LINES.slice(0, count))
  assert.equal(first.text(), whole(60))
  const second = serverOf(context)
  await second.copy(LINES)
  assert.equal(second.text(), whole(60))
})

test('what was written after a note is not written again when a stream breaks off', async context => {
  const server = serverOf(context)
  await server.copy(LINES.slice(0, 30), 700)
  await server.copy(LINES)
  assert.equal(server.text(), whole(60))
})

test('outputs of thousands of pods are asked for less often than those of a few, so that all together are no burden', () => {
  assert.deepEqual([1, 100, 744, 9_744].map(askPauseMs), [5_000, 5_000, 29_760, 389_760])
})
