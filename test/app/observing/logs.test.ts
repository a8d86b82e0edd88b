import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { OwnerId } from '../../../src/core/ids.ts'
import { EventReader } from '../../support/event-stream.ts'
import { type Asking, openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const EVENTS = { accept: 'text/event-stream' }

/** An endpoint with one worker that has printed, and ways to read it. */
async function reading(t: TestContext, ...lines: string[]) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.print(worker.id, ...lines)
  const path = `/v2/serverless/${endpoint}/workers/${worker.id}/logs`
  const read = async (query = '', lastId?: string, asking: Asking = {}) => {
    const headers = { ...asking.headers, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) }
    return opened(rig, `${path}${query}`, { ...asking, headers })
  }
  const ops = (id: string, query = '', lastId?: string) =>
    opened(rig, `/ops/logs/${id}${query}`, {
      headers: { ...EVENTS, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
    })
  return { rig, endpoint, worker, path, read, ops }
}

async function opened(rig: Rig, path: string, asking: Asking): Promise<EventReader> {
  const answer = await rig.open(path, asking)
  assert.equal(answer.status, 200, answer.status === 200 ? '' : await answer.text())
  const reader = new EventReader(answer)
  await rig.clock.settle()
  return reader
}

async function end(rig: Rig, worker: RigWorker): Promise<void> {
  rig.fleet.exit(worker.id)
  await rig.clock.advance(100)
}

test('a stream begins with the last lines of both sources in the order of time, in one burst, and continues live', async t => {
  const { rig, worker, read } = await reading(t, 'one', 'two')
  const stream = await read()
  const lines = () => stream.events.map(({ data }) => `${data.source} ${data.line}`)
  const before = lines()
  assert.deepEqual(before.slice(-2), ['container one', 'container two'])
  assert.match(before[0]!, /^system created for version 1 of endpoint /)
  assert.match(before[1]!, /^system started after /)
  assert.equal(stream.parts, 1)
  rig.print(worker.id, 'three')
  await rig.clock.settle()
  assert.deepEqual(lines().slice(before.length), ['container three'])
  void worker.take()
  await rig.clock.advance(1_000)
  assert.match(lines().at(-1)!, /^system asked for its first job /)
  const { id, data } = stream.events.at(-1)!
  assert.match(id, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\/\d{12}$/)
  assert.deepEqual([Object.keys(data), id.split('/')[0]], [['ts', 'source', 'line'], data.ts])
})

test('the response has its content type, and a comment every 15 s when there is nothing new', async t => {
  const { rig, path } = await reading(t, 'one')
  const answer = await rig.open(`${path}?tail=0`)
  const headers = ['content-type', 'cache-control', 'connection', 'x-accel-buffering', 'ratelimit']
  assert.deepEqual(
    headers.map(name => answer.headers.get(name)?.split(';')[0]),
    ['text/event-stream', 'no-cache', 'keep-alive', 'no', answer.headers.get('ratelimit')!.split(';')[0]],
  )
  const stream = new EventReader(answer)
  await rig.clock.settle()
  assert.equal(stream.comments.length, 1, 'it is seen at once that it is open')
  await rig.clock.advance(30_000)
  assert.deepEqual([stream.comments.length, stream.events.length], [3, 0])
  const head = await rig.open(path, {}, 'HEAD')
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('tail, since and source select the old lines', async t => {
  const { rig, worker, read } = await reading(t, 'one')
  await rig.clock.advance(60_000)
  const since = new Date(rig.clock.now()).toISOString()
  rig.print(worker.id, 'two', 'three')
  assert.deepEqual((await read('?tail=1')).lines, ['three'])
  assert.deepEqual((await read('?tail=0')).lines, [])
  assert.deepEqual((await read('?source=container')).lines, ['one', 'two', 'three'])
  assert.deepEqual((await read(`?since=${since}`)).lines, ['two', 'three'])
  assert.deepEqual((await read(`?since=${since}&tail=1`)).lines, ['three'])
  const systemLines = await read('?source=system')
  assert.deepEqual(
    systemLines.events.map(({ data }) => data.source),
    ['system', 'system'],
  )
  assert.deepEqual((await read('?source=container&tail=0', new Date(rig.clock.now() - 1).toISOString())).lines, [
    'two',
    'three',
  ])
})

test('a reader that resumes after an event gets each later line once, also after a restart of the server', async () => {
  const step = fc.oneof(
    fc.record({ print: fc.integer({ min: 1, max: 3 }) }),
    fc.constantFrom('reconnect', 'restart', 'take', 'wait', 'sdk' as const),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.nat(8), async (steps, tail) => {
      const cleanups: (() => unknown)[] = []
      const t = { after: (fn: () => unknown) => cleanups.push(fn) } as unknown as TestContext
      const { rig, worker, path, endpoint } = await reading(t, 'p0', 'p1')
      const seen = { rest: [] as string[], ops: [] as string[] }
      const last = { rest: '', ops: '' }
      let open: Partial<Record<'rest' | 'ops', EventReader>> = {}
      const connect = async () => {
        for (const kind of ['rest', 'ops'] as const) {
          const where = kind === 'rest' ? `${path}?tail=${tail}` : `/ops/logs/${endpoint}?follow=1&tail=${tail}`
          const id = last[kind]
          open[kind] = await opened(rig, where, {
            headers: { ...EVENTS, ...(id === '' ? {} : { 'last-event-id': id }) },
          })
        }
      }
      const leave = async () => {
        await rig.clock.settle()
        for (const [kind, stream] of Object.entries(open) as ['rest' | 'ops', EventReader][]) {
          // Of what came some may not have been read.
          const read = stream.events.slice(
            0,
            stream.events.length - (steps.length % 2 && stream.events.length > 2 ? 1 : 0),
          )
          seen[kind].push(...read.map(({ data }) => data.line))
          last[kind] = read.at(-1)?.id ?? last[kind]
          await stream.leave()
        }
        open = {}
      }
      let printed = 2
      await connect()
      for (const one of steps) {
        // Lines of one instant have no order.
        await rig.clock.advance(1)
        if (typeof one === 'object') {
          for (let n = 0; n < one.print; n += 1) rig.print(worker.id, `p${printed++}`)
        } else if (one === 'sdk') {
          rig.print(worker.id, JSON.stringify({ requestId: 'j', message: `p${printed++}\np${printed++}`, level: 'X' }))
        } else if (one === 'take') void worker.take()
        else if (one === 'wait') await rig.clock.advance(1_500)
        else {
          await leave()
          if (one === 'restart') {
            await rig.crash()
            await rig.start()
          }
          await connect()
        }
      }
      await rig.clock.advance(2_000)
      const whole = await opened(rig, `${path}?tail=5000`, {})
      await leave()
      await connect()
      await leave()
      const all = whole.lines
      for (const lines of Object.values(seen)) {
        assert.deepEqual([...lines].sort(), all.slice(all.length - lines.length).sort())
        const own = lines.filter(line => /p\d+$/.test(line)).map(line => Number(/\d+$/.exec(line)![0]))
        assert.deepEqual(
          own,
          [...own].sort((a, b) => a - b),
        )
        assert.ok(lines.length >= tail || lines.length === all.length)
      }
      await whole.leave()
      for (const cleanup of cleanups) await cleanup()
    }),
    { numRuns: 25 },
  )
})

test('lines that are no longer kept are reported by a comment', async t => {
  const { rig, worker, read } = await reading(t, 'one', 'two', 'three', 'four')
  const first = await read('?source=container')
  rig.logs.cut(worker.id, 1)
  const stream = await read('?source=container', first.events[0]!.id)
  assert.deepEqual([stream.lines, stream.comments], [['four'], ['2 bytes in front of this are no longer kept']])
})

test('a worker that has ended is read to its end, and the stream ends after a silence that clients need', async t => {
  const { rig, worker, read } = await reading(t, 'one')
  const live = await read()
  await end(rig, worker)
  const last = live.events.at(-1)!.data
  assert.deepEqual([last.source, last.line], ['system', 'exited with code 0, after 0 finished jobs'])
  assert.equal(last.ts, new Date((await worker.record()).exitedAtMs!).toISOString())
  await rig.clock.advance(10_000)
  const late = await read('?source=container')
  assert.deepEqual([late.lines, live.over, late.over], [['one'], false, false])
  await rig.clock.advance(15_000)
  assert.deepEqual([live.over, late.over], [true, true])
  await rig.clock.leap(23 * 3_600_000)
  assert.equal((await read()).lines.includes('one'), true)
  await rig.clock.leap(2 * 3_600_000)
  await rig.clock.advance(5_000)
  const gone = await rig.ask('GET', `/v2/serverless/${worker.spec.endpointId}/workers/${worker.id}/logs`)
  assert.equal(gone.status, 404)
})

test('all mistakes of a request are reported at once, before the stream begins', async t => {
  const { rig, endpoint, worker, path } = await reading(t)
  const problem = async (where: string, asking: Asking = {}) => {
    const { status, json, headers } = await rig.ask('GET', where, asking)
    assert.equal(headers.get('content-type'), 'application/problem+json')
    return { status, json }
  }
  const bad = await problem(`${path}?source=x&tail=5001&since=yesterday`, { headers: { 'last-event-id': 'x' } })
  assert.equal(bad.status, 400)
  assert.deepEqual(
    bad.json.errors.map((failure: string) => failure.split(':')[0]),
    ['query.source', 'query.tail', 'query.since', 'header.Last-Event-ID'],
  )
  const several = await problem(path, { headers: { 'last-event-id': '2026-06-01T12:05:04Z/a.1' } })
  assert.equal(several.status, 400)
  const other = await rig.endpoint()
  for (const where of [
    `/v2/serverless/${other}/workers/${worker.id}/logs`,
    `/v2/serverless/nothing/workers/${worker.id}/logs`,
    `/v2/serverless/${endpoint}/workers/nothing/logs`,
  ]) {
    assert.equal((await problem(where)).status, 404, where)
  }
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  assert.equal((await problem(path, { key: stranger })).status, 404)
  assert.equal((await problem(path, { key: null })).status, 401)
  const jobs = await rig.addKey('rpa_jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  assert.equal((await problem(path, { key: jobs })).status, 403)
})

test('an account has at most 100 readings open, and one that ends makes room', async t => {
  const { rig, path, read } = await reading(t, 'one')
  const streams = await Promise.all(Array.from({ length: 100 }, () => read()))
  const refused = await rig.ask('GET', path)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '5'])
  assert.ok(rig.logs.watching() >= 100)
  await Promise.all(streams.map(stream => stream.leave()))
  await rig.clock.settle()
  assert.equal(rig.logs.watching(), 0, 'nobody watches for readers that have left')
  const gone = new AbortController()
  await read('', undefined, { signal: gone.signal })
  gone.abort()
  await rig.clock.settle()
  assert.equal(rig.logs.watching(), 0)
})

test('a reader that reads nothing holds one part of the lines in memory', async t => {
  const { rig, worker, path } = await reading(t)
  const stream = new EventReader(await rig.open(`${path}?tail=5000&source=container`), true)
  rig.print(worker.id, ...Array.from({ length: 3_000 }, (_, n) => `line ${n}`))
  await rig.clock.advance(60_000)
  assert.equal(stream.parts, 0)
  void stream.readOn()
  await rig.clock.settle()
  await rig.clock.advance(100)
  assert.deepEqual([stream.lines.length, stream.lines.at(-1)], [3_000, 'line 2999'])
  assert.ok(stream.parts >= 30, 'it is read page by page')
  await stream.leave()
})

test('a server that stops ends its streams, also those of readers that resumed', async t => {
  const { rig, read, ops, worker } = await reading(t, 'one')
  const streams = [await read(), await ops(worker.id, '?follow=1')]
  void rig.stop()
  await rig.clock.settle()
  assert.deepEqual(
    streams.map(stream => [stream.over, stream.events.some(({ event }) => event === 'end')]),
    [
      [true, false],
      [true, false],
    ],
  )
})

test('the logs of an endpoint are those of all its workers, also of new ones, in the order of time', async t => {
  const { rig, endpoint, worker, ops } = await reading(t, 'first')
  const stream = await ops(endpoint, '?follow=1&source=container')
  await rig.change(endpoint, { workersMin: 2 })
  await rig.clock.advance(2_000)
  const second = rig.worker(-1)
  assert.notEqual(second.id, worker.id)
  rig.print(second.id, 'second')
  await rig.clock.advance(1_000)
  rig.print(worker.id, 'third')
  await rig.clock.advance(1_000)
  const seen = stream.events.map(({ data }) => [data.workerId, data.line])
  const all = [
    [worker.id, 'first'],
    [second.id, 'second'],
    [worker.id, 'third'],
  ]
  assert.deepEqual(seen, all)
  const again = await ops(endpoint, '?source=container')
  assert.deepEqual(
    [again.events.filter(({ event }) => event === '').map(({ data }) => [data.workerId, data.line]), again.over],
    [all, true],
  )
  assert.equal(again.events.at(-1)!.event, 'end')
  const { text } = await rig.ask('GET', `/ops/logs/${endpoint}?source=container&tail=1`)
  assert.deepEqual(JSON.parse(text), {
    workerId: worker.id,
    jobId: null,
    source: 'container',
    line: 'third',
    ts: new Date(rig.clock.now() - 1_000).toISOString(),
  })
})

test('the logs of a job are the lines that say so, of all workers that held it, until it has ended', async t => {
  const { rig, endpoint, worker, ops } = await reading(t)
  const id = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), id)
  worker.print(id, 'Started.', 'INFO')
  rig.print(worker.id, 'of nobody')
  const stream = await ops(id, '?follow=1')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(5_000)
  const next = rig.worker(-1)
  assert.equal(await next.takeJob(), id)
  next.print(id, 'again', 'INFO')
  await next.done(id)
  next.print(id, 'Finished.', 'INFO')
  await rig.clock.advance(1_000)
  assert.equal(stream.over, false)
  await rig.clock.advance(5_000)
  assert.deepEqual([stream.lines, stream.over], [['INFO Started.', 'INFO again', 'INFO Finished.'], true])
  assert.deepEqual((await ops(id, '?tail=1')).lines, ['INFO Finished.'])
})

test('the output of a worker during its only job belongs to the job, and output before and after does not', async t => {
  const { rig, endpoint, worker, ops } = await reading(t, 'loading')
  await rig.clock.advance(10)
  const [first, second] = [await rig.submit(endpoint), await rig.submit(endpoint)]
  for (const job of [first, second]) {
    assert.equal(await worker.takeJob(), job)
    await rig.clock.advance(10)
    rig.print(worker.id, `working on ${job}`)
    await rig.clock.advance(10)
    await worker.done(job)
    await rig.clock.advance(10)
    rig.print(worker.id, 'between jobs')
    await rig.clock.advance(10)
  }
  assert.deepEqual((await ops(first)).lines, [`working on ${first}`])
  assert.deepEqual((await ops(second)).lines, [`working on ${second}`])
  assert.deepEqual((await ops(second, '?text=between')).lines, [])
})

test('the output of a worker with concurrent jobs belongs to no job, and the reader receives a note', async t => {
  const { rig, endpoint, worker, ops } = await reading(t)
  const job = await rig.submit(endpoint)
  await worker.take({ batch: 4 })
  await rig.clock.advance(10)
  rig.print(worker.id, 'of some job')
  const stream = await ops(job)
  assert.deepEqual(stream.lines, [])
  const [note] = stream.events.filter(({ event }) => event === 'note')
  assert.match(note?.data.text, /^worker \w+ runs up to 4 jobs at once: only lines that name this job are shown$/)
})

test('a reader that had seen nothing yet resumes where it began', async t => {
  const { rig, worker, endpoint, ops } = await reading(t, 'old')
  for (const id of [worker.id, endpoint]) {
    const answer = await rig.open(`/ops/logs/${id}?follow=1&tail=0`, { headers: EVENTS })
    const parts = answer.body!.getReader()
    const first = /^id: (.*)$/m.exec(new TextDecoder().decode((await parts.read()).value))![1]!
    await parts.cancel()
    rig.print(worker.id, 'missed')
    const lines = (await ops(id, '?follow=1&tail=0', first)).lines
    assert.deepEqual(lines.at(-1), 'missed')
    assert.equal(lines.length, 1)
  }
})

test('lines are searched by their text, in upper and lower case, and the tail is of those that are found', async t => {
  const { rig, endpoint, worker, ops } = await reading(t, 'Loading model', 'ready', 'loading weights', 'done')
  for (const id of [worker.id, endpoint]) {
    assert.deepEqual((await ops(id, '?text=LOADING')).lines, ['Loading model', 'loading weights'])
    assert.deepEqual((await ops(id, '?text=loading&tail=1')).lines, ['loading weights'])
  }
  assert.match((await ops(worker.id, '?text=created for version')).lines[0]!, /^created/)
  const stream = await ops(worker.id, '?text=loading&follow=1&tail=0')
  rig.print(worker.id, 'nothing', 'reloading', 'nothing')
  await rig.clock.advance(100)
  assert.deepEqual(stream.lines, ['reloading'])
  const { status, json } = await rig.ask('GET', `/ops/logs/${worker.id}?tail=-1&since=x&source=y`)
  assert.deepEqual([status, json.error.split('; ').length], [400, 3])
})
