/** Streams through a load-balancing endpoint: events at once and in order, and large bodies in little memory. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { answerOf, type Balanced, balancedEndpoint, call, inNode, open, whole } from '../support/balanced.ts'
import { memoryOf } from '../support/flood.ts'
import { type Server, startServer } from '../support/server.ts'
import { sleep } from '../support/until.ts'

const EVENTS = 10_000
const STEPS = 200
const UPLOAD_BYTES = 30_000_000
const DOWNLOAD_BYTES = 800_000_000
/** Allowed growth of the server's memory, in megabytes, which includes uncollected garbage. */
const MOST_MB = 160

describe('streams', { timeout: patient(200_000) }, () => {
  let server: Server
  let node: Balanced
  before(async () => {
    server = await startServer()
    node = await balancedEndpoint(server, { ...inNode, workers: { max: 1, idleTimeout: 600 } })
    await call(node, '/')
  })

  test('ten thousand events arrive in order, and no event waits for the next', async t => {
    const gaps: number[] = []
    const opened = open(node, `/events?n=${EVENTS}`)
    opened.end()
    for await (const data of eventsOf(await answerOf(opened))) {
      const { n, sentAt } = JSON.parse(data)
      assert.equal(n, gaps.length)
      gaps.push(Date.now() - sentAt)
    }
    assert.equal(gaps.length, EVENTS)
    gaps.sort((a, b) => a - b)
    const at = (part: number) => gaps[Math.floor((EVENTS - 1) * part)]
    t.diagnostic(`between sent and received: median ${at(0.5)} ms, 99% ${at(0.99)} ms, most ${at(1)} ms`)
  })

  test('each event arrives although the next one is only sent once it was seen', async () => {
    const opened = open(node, `/steps?n=${STEPS}`)
    opened.end()
    let n = 0
    for await (const data of eventsOf(await answerOf(opened))) {
      assert.equal(data, String(n))
      n += 1
      assert.equal((await call(node, '/step', { method: 'POST' })).status, 204)
    }
    assert.equal(n, STEPS)
  })

  test('uploads of 30 MB arrive whole, also without a length, and the server holds little of them', async t => {
    const piece = Buffer.alloc(UPLOAD_BYTES / 300, 'abcdefg')
    const hash = createHash('sha256')
    for (let n = 0; n < 300; n += 1) hash.update(piece)
    const sha256 = hash.digest('hex')
    const watched = await watching(async () => {
      for (const length of [UPLOAD_BYTES, null, UPLOAD_BYTES, null]) {
        const opened = open(node, '/upload', { method: 'POST' })
        if (length !== null) opened.setHeader('content-length', length)
        const answer = answerOf(opened).then(whole)
        for (let n = 0; n < 300; n += 1) {
          if (!opened.write(piece)) await new Promise(resolve => opened.once('drain', resolve))
        }
        opened.end()
        assert.deepEqual((await answer).json, { bytes: UPLOAD_BYTES, sha256 })
      }
    })
    t.diagnostic(`the server grew by ${watched} MB`)
    assert.ok(watched < MOST_MB, `it grew by ${watched} MB`)
  })

  test('a download of 800 MB arrives whole, and the server holds little of it', async t => {
    let bytes = 0
    const watched = await watching(async () => {
      const opened = open(node, `/download?bytes=${DOWNLOAD_BYTES}`)
      opened.end()
      const answer = await answerOf(opened)
      assert.equal(answer.headers['content-length'], String(DOWNLOAD_BYTES))
      answer.on('data', piece => {
        bytes += piece.length
      })
      await new Promise((resolve, reject) => answer.on('end', resolve).on('error', reject))
    })
    assert.equal(bytes, DOWNLOAD_BYTES)
    t.diagnostic(`the server grew by ${watched} MB`)
    assert.ok(watched < MOST_MB, `it grew by ${watched} MB`)
  })

  /** Greatest growth of the server's memory during a run, in megabytes. */
  async function watching(run: () => Promise<void>): Promise<number> {
    const before = memoryOf(server.pid)
    let most = before
    let isOver = false
    const done = run().finally(() => {
      isOver = true
    })
    while (!isOver) {
      most = Math.max(most, memoryOf(server.pid))
      await sleep(50)
    }
    await done
    return Math.round(most - before)
  }
})

/** Data of a stream of events, as soon as it arrives. */
async function* eventsOf(answer: IncomingMessage): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of answer.setEncoding('utf8')) {
    const parts = `${rest}${piece}`.split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) yield part.replace(/^data: /, '')
  }
  assert.equal(rest, '')
}
