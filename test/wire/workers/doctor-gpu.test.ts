/** `runyard doctor --gpu` with cards of the driver library for tests. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { GpuCheck } from '../../../src/core/observing/gpu-check.ts'
import { FakeGpus, noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { runCommand } from '../support/server.ts'

async function doctor(gpus: FakeGpus) {
  const { code, stdout, stderr } = await runCommand(['doctor', '--gpu', '--json'], gpus.env as Record<string, string>)
  assert.equal(stderr, '')
  const lines = stdout.trim().split('\n')
  const checks = lines.map(line => JSON.parse(line) as GpuCheck)
  return { code, checks, of: (check: string) => checks.find(each => each.check === check)! }
}

describe('runyard doctor --gpu', { skip: noFakeGpus, timeout: patient(120_000) }, () => {
  test('on a card that suspends, all works, and it says how fast', async t => {
    const gpus = new FakeGpus(t, { gbps: 20 })
    const { code, checks, of } = await doctor(gpus)
    const failing = checks.filter(({ result, check }) => result !== 'works' && check !== 'group')
    assert.deepEqual(failing, [])
    assert.equal(code, 0)
    assert.equal(of('memory').figures.contextMib, 512)
    const { checkpointGbPerS, otherMib } = of('suspend').figures
    assert.ok((checkpointGbPerS as number) > 0 && (otherMib as number) > 20_000)
    const { launches, pausedAfter } = of('pause').figures
    assert.ok((pausedAfter as number) < (launches as number))
    const { cards } = await gpus.meter.measure(new Set())
    assert.equal(cards[0]?.usedBytes, 0)
  })

  test('with a driver that is too old the rest is tried, and nothing fails', async t => {
    const { code, of } = await doctor(new FakeGpus(t, { driver: '550.54.15' }))
    assert.equal(code, 0)
    assert.deepEqual([of('driver').result, of('suspend').result, of('pause').result], Array(3).fill('untested'))
    assert.match(of('driver').message, /driver 550.54.15 is too old/)
    assert.deepEqual([of('memory').result, of('signals').result, of('share').result], Array(3).fill('works'))
  })

  test('a card that somebody uses is left alone, and named', async t => {
    const gpus = new FakeGpus(t)
    const { pid } = await gpus.worker(100)
    const { code, checks } = await doctor(gpus)
    assert.equal(code, 0)
    const [, card, ...rest] = checks
    assert.deepEqual(
      [card?.result, card?.message, rest],
      ['untested', `not free: 0.6 GiB are in use by pid ${pid}`, []],
    )
  })

  test('without kernels it says which part of the driver lacks', async t => {
    const { code, of } = await doctor(new FakeGpus(t, { quirks: 'no-kernels' }))
    assert.equal(code, 1)
    const { result, message } = of('assigned')
    assert.deepEqual(
      [result, message],
      ['fails', 'the card is seen, and no kernel runs: CUDA_ERROR_JIT_COMPILER_NOT_FOUND of cuModuleLoadData'],
    )
    assert.equal(of('suspend').result, 'works')
  })
})
