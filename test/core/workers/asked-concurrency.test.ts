import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ASKED_WINDOW_MS,
  type AskedConcurrency,
  afterAsking,
  concurrencyAsked,
} from '../../../src/core/workers/asked-concurrency.ts'

/** The concurrency after takes, each as how many jobs and when, of a worker of which `noted` was kept. */
function after(noted: number, takes: readonly [asked: number, atMs: number][]): number {
  let known: AskedConcurrency | null = null
  for (const [asked, atMs] of takes) known = afterAsking(known, asked, atMs)
  return concurrencyAsked(known!, noted)
}

test('the concurrency of a worker is the most that it asked for', () => {
  assert.equal(after(1, [[4, 0]]), 4)
  assert.equal(
    after(1, [
      [2, 0],
      [5, 10],
      [3, 20],
    ]),
    5,
  )
})

test('what a worker once asked for is forgotten when it asks for less for two windows', () => {
  const once: [number, number][] = [
    [50, 0],
    [1, ASKED_WINDOW_MS - 1],
  ]
  assert.equal(after(1, once), 50)
  assert.equal(after(1, [...once, [1, ASKED_WINDOW_MS]]), 50)
  assert.equal(after(1, [...once, [1, ASKED_WINDOW_MS], [1, 2 * ASKED_WINDOW_MS]]), 1)
})

test('what was noted before a restart of the server holds until the worker was watched for a window', () => {
  assert.equal(after(8, [[1, 0]]), 8)
  assert.equal(
    after(8, [
      [1, 0],
      [1, ASKED_WINDOW_MS],
    ]),
    1,
  )
})
