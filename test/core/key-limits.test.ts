import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  countKeyRequest,
  isLimitedAsMuch,
  type KeyCounts,
  KeyLimitError,
  requireWithin,
} from '../../src/core/key-limits.ts'

const DAY = 1_700_006_400_000
const AT = DAY + 3_600_000 + 15_000
const NAMES = ['limit', 'remaining', 'reset'].flatMap(part =>
  ['requests', 'tokens'].map(kind => `x-ratelimit-${part}-${kind}`),
)

function fieldsOf(headers: readonly string[]): Record<string, string> {
  const pairs = Array.from({ length: headers.length / 2 }, (_, at) => headers.slice(2 * at, 2 * at + 2))
  return Object.fromEntries(pairs)
}

test('requests pass up to the limit of a minute, and again in the next one', () => {
  let counts: KeyCounts | null = null
  const left: string[] = []
  for (let n = 0; n < 4; n += 1) {
    const decision = countKeyRequest({ requestsPerMinute: 3 }, counts, AT + n)
    counts = decision.counts
    left.push(fieldsOf(decision.headers)['x-ratelimit-remaining-requests']!)
    assert.equal(decision.refusal === null, n < 3)
  }
  assert.deepEqual(left, ['2', '1', '0', '0'])
  const refused = countKeyRequest({ requestsPerMinute: 3 }, counts, AT)
  assert.equal(refused.refusal?.retryAfterSeconds, 45)
  assert.throws(
    () => requireWithin(refused),
    (error: unknown) => error instanceof KeyLimitError && error.status === 429,
  )
  assert.equal(countKeyRequest({ requestsPerMinute: 3 }, counts, AT + 45_000).refusal, null)
})

test('tokens are refused once a minute or a day has used them, with the time of the window that is longest', () => {
  const counts = { minuteMs: AT - 15_000, requests: 1, minuteTokens: 100, dayMs: DAY, dayTokens: 900 }
  const limits = { tokensPerMinute: 100, tokensPerDay: 900 }
  const both = countKeyRequest(limits, counts, AT)
  assert.match(both.refusal?.message ?? '', /900 tokens a day; the next day begins in 22h59m45s/)
  const minute = countKeyRequest({ ...limits, tokensPerDay: 1_000 }, counts, AT)
  assert.deepEqual([minute.refusal?.kind, minute.refusal?.retryAfterSeconds], ['tokens', 45])
  const fields = fieldsOf(
    countKeyRequest({ requestsPerMinute: 9, ...limits, tokensPerDay: 1_000 }, { ...counts, minuteTokens: 40 }, AT)
      .headers,
  )
  assert.deepEqual(
    NAMES.map(name => fields[name]),
    ['9', '100', '7', '60', '45s', '45s'],
  )
  assert.equal(countKeyRequest(limits, counts, DAY + 86_400_000).refusal, null, 'the next day')
  assert.deepEqual(countKeyRequest({}, counts, AT).headers, [])
})

test('limits of a key are no higher than those of the key that gives them', () => {
  assert.equal(isLimitedAsMuch({}, {}), true)
  assert.equal(isLimitedAsMuch({ tokensPerDay: 5 }, {}), true)
  assert.equal(isLimitedAsMuch({ tokensPerDay: 5, requestsPerMinute: 1 }, { tokensPerDay: 5 }), true)
  assert.equal(isLimitedAsMuch({ tokensPerDay: 6 }, { tokensPerDay: 5 }), false)
  assert.equal(isLimitedAsMuch({}, { tokensPerDay: 5 }), false)
})
