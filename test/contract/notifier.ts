/** Contract of every notifier. A library: the test file of each notifier calls it with a way to make one. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Notifier, Topic } from '../../src/ports/notifier.ts'
import { patient } from '../support/patience.ts'

/** A notifier, or several ends of one: what is published at `sender` arrives at `receiver`. */
export interface NotifierHarness {
  readonly sender: Notifier
  readonly receiver: Notifier
  close(): Promise<void>
}

/** Runs the contract. */
export function notifierContract(name: string, open: () => Promise<NotifierHarness>): void {
  describe(`the ${name} notifier`, { timeout: patient(60_000) }, () => {
    let harness: NotifierHarness
    beforeEach(async () => {
      harness = await open()
    })
    afterEach(() => harness.close())

    /** Publishes a topic of its own after all others, and waits for it: what was to arrive has arrived. */
    const settle = async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const unsubscribe = harness.receiver.subscribe('job:the-last', resolve)
      harness.sender.publish('job:the-last')
      await promise
      unsubscribe()
    }
    const count = (topic: Topic) => {
      const counter = { calls: 0, unsubscribe: () => {} }
      counter.unsubscribe = harness.receiver.subscribe(topic, () => {
        counter.calls += 1
      })
      return counter
    }

    test('a listener is called after a publication, never inside it', async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      let inside = false
      let wasInside = true
      harness.receiver.subscribe('fleet', () => {
        wasInside = inside
        resolve()
      })
      inside = true
      harness.sender.publish('fleet')
      inside = false
      await promise
      assert.equal(wasInside, false)
    })

    test('only the listeners of the same topic are called', async () => {
      const wanted = count('queue:a')
      const others = [count('queue:b'), count('job:a'), count('fleet')]
      harness.sender.publish('queue:a')
      await settle()
      assert.ok(wanted.calls >= 1)
      assert.deepEqual(
        others.map(({ calls }) => calls),
        [0, 0, 0],
      )
    })

    test('every publication after a call leads to another call', async () => {
      const counter = count('endpoints')
      harness.sender.publish('endpoints')
      await settle()
      const before = counter.calls
      harness.sender.publish('endpoints')
      await settle()
      assert.ok(counter.calls > before)
    })

    test('a removed listener is called no more, also not for earlier notifications', async () => {
      const counter = count('fleet')
      harness.sender.publish('fleet')
      counter.unsubscribe()
      counter.unsubscribe()
      harness.sender.publish('fleet')
      await settle()
      assert.equal(counter.calls, 0)
    })

    test('one function that is subscribed twice is taken back once at a time', async () => {
      let calls = 0
      const listener = () => {
        calls += 1
      }
      const first = harness.receiver.subscribe('fleet', listener)
      harness.receiver.subscribe('fleet', listener)
      first()
      first()
      harness.sender.publish('fleet')
      await settle()
      assert.ok(calls >= 1)
    })

    test('a listener that throws does not keep others from being called', async () => {
      harness.receiver.subscribe('fleet', () => {
        throw new Error('thrown by a test')
      })
      const counter = count('fleet')
      harness.sender.publish('fleet')
      await settle()
      assert.ok(counter.calls >= 1)
    })

    test('a listener can take others back and publish again', async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const second = { unsubscribe: () => {}, calls: 0 }
      let rounds = 0
      harness.receiver.subscribe('worker:a', () => {
        second.unsubscribe()
        rounds += 1
        if (rounds === 1) harness.sender.publish('worker:a')
        else resolve()
      })
      second.unsubscribe = harness.receiver.subscribe('worker:a', () => {
        second.calls += 1
      })
      harness.sender.publish('worker:a')
      await promise
      assert.equal(second.calls, 0)
    })

    test('publishing where nobody listens does nothing', async () => {
      harness.sender.publish('queue:nobody')
      await settle()
    })
  })
}
