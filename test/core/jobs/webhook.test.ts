/** The numbers of receivers, by which webhooks take turns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { receiverNumber } from '../../../src/core/jobs/webhook.ts'

test('host and port decide which receiver it is, and nothing else', () => {
  const same = ['https://a.example/x', 'https://A.example:443/y?z', 'https://user:word@a.example./']
  assert.equal(new Set(same.map(receiverNumber)).size, 1)
  const others = ['https://a.example:444/x', 'http://a.example/x', 'https://b.example/x', 'http://127.0.0.1:8080/']
  assert.equal(new Set([same[0]!, ...others].map(receiverNumber)).size, 5)
})

test('numbers of many receivers are spread over 16 bits', () => {
  const numbers = Array.from({ length: 2_000 }, (_, n) => receiverNumber(`http://host-${n % 50}.example:${8_000 + n}/`))
  assert.ok(numbers.every(number => Number.isInteger(number) && number >= 0 && number < 65_536))
  assert.ok(new Set(numbers).size > 1_900)
})
