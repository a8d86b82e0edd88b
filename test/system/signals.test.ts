import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import type { OutboundRequest, OutboundResult } from '../../src/ports/outbound.ts'
import { joinSignals } from '../../src/ports/signals.ts'
import { callOutbound } from '../../src/services/outbound-call.ts'
import { collect } from '../support/collect.ts'

const listeners = (...signals: AbortSignal[]) => signals.map(signal => getEventListeners(signal, 'abort').length)

describe('a signal that joins others', () => {
  test('aborts with the first of them, for its reason', () => {
    const [one, other] = [new AbortController(), new AbortController()]
    using joined = joinSignals(one.signal, other.signal)
    assert.equal(joined.signal.aborted, false)
    other.abort('late')
    one.abort('stopped')
    assert.deepEqual([joined.signal.aborted, joined.signal.reason], [true, 'late'])
    assert.deepEqual(listeners(one.signal, other.signal), [0, 0])
  })

  test('is aborted if one of them is', () => {
    const one = new AbortController()
    using joined = joinSignals(one.signal, AbortSignal.abort('before'))
    assert.deepEqual([joined.signal.aborted, joined.signal.reason], [true, 'before'])
    assert.deepEqual(listeners(one.signal), [0])
  })

  test('leaves no listener behind when its call ends', () => {
    const [one, other] = [new AbortController(), new AbortController()]
    {
      using joined = joinSignals(one.signal, other.signal)
      assert.equal(joined.signal.aborted, false)
      assert.deepEqual(listeners(one.signal, other.signal), [1, 1])
    }
    assert.deepEqual(listeners(one.signal, other.signal), [0, 0])
  })
})

test('a call to a webhook that has ended is freed, while the server that made it goes on', async () => {
  const stopping = new AbortController()
  const signals: WeakRef<AbortSignal>[] = []
  const parts = {
    clock: { after: () => () => {} },
    outbound: {
      async post({ signal }: OutboundRequest): Promise<OutboundResult> {
        signals.push(new WeakRef(signal))
        return { status: 200 }
      },
    },
  }
  const request = { url: 'https://hook.example/', headers: {}, body: '{}', rules: [] }
  for (let n = 0; n < 3; n += 1)
    await callOutbound(parts as never, request as never, { timeoutMs: 1_000, signal: stopping.signal })
  await collect()
  assert.deepEqual(
    signals.map(signal => signal.deref()),
    [undefined, undefined, undefined],
  )
  assert.deepEqual(listeners(stopping.signal), [0])
})
