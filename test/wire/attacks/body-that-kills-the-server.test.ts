/** A body that ends the server, sent by a worker through the relay, which would send it to each next one. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { Relay } from '../../../src/relay/relay.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { playServer, tellTokens } from '../support/played-server.ts'
import { until } from '../support/until.ts'

const POISON = 'poison'.padEnd(65_536, '!')

/** A relay, and servers that end when they get {@link POISON}; each is followed by another. */
async function openRelay() {
  const relay = new Relay({ folder: temporaryFolder(), secret: 'secret', onEnd: () => {} })
  const url = `http://127.0.0.1:${await relay.listen(0)}`
  atEnd(() => relay.close())
  await tellTokens(url, { live: ['evil', 'good'] })
  const seen = {
    deaths: 0,
    bodies: [] as string[],
    dropped: [] as string[],
    held: [] as ServerResponse[],
    hold: false,
    kills: 0,
  }
  let over = false
  const start = async () => {
    const played = await playServer(url, (incoming, response, got) => {
      const dropped = incoming.headers['x-runyard-dropped']
      if (dropped !== undefined) seen.dropped.push(`${incoming.url} ${dropped} ${got.length}`)
      seen.bodies.push(got)
      if (got.startsWith(POISON) || seen.kills-- > 0) die()
      else if (seen.hold) seen.held.push(response)
      else response.end('{}')
    })
    const die = () => {
      if (over) return
      seen.deaths += 1
      seen.hold = false
      played.kill()
      setTimeout(() => void start(), 200)
    }
  }
  atEnd(() => {
    over = true
  })
  await start()
  const post = (token: string, job: string, content: string, call = 'job-done') =>
    fetch(`${url}/v2/ep/${call}/w/${job}`, { method: 'POST', headers: { authorization: token }, body: content })
  return { seen, post }
}

test('a chunk that the server has died of twice is dropped, and the server is told', async () => {
  const { seen, post } = await openRelay()
  assert.equal((await post('evil', 'a', POISON, 'job-stream')).status, 200)
  assert.equal(seen.deaths, 2)
  assert.deepEqual(seen.dropped, ['/v2/ep/job-stream/w/a 65536 0'])
})

test('results that were under way beside it are delivered, and nobody else is blamed', async () => {
  const { seen, post } = await openRelay()
  seen.hold = true
  const good = [1, 2, 3].map(n => post('good', `good${n}`, `result ${n}`))
  await until('the good ones', () => seen.held.length === 3)
  const evil = post('evil', 'evil', POISON)
  for (const answer of await Promise.all([...good, evil])) assert.equal(answer.status, 200)
  assert.equal(seen.deaths, 2)
  assert.deepEqual(seen.dropped, ['/v2/ep/job-done/w/evil 65536 0'])
})

test('a worker of which a body was dropped ends a server once more with its next one, and not twice', async () => {
  const { seen, post } = await openRelay()
  await post('evil', 'a', POISON)
  await post('evil', 'b', `${POISON} too`)
  assert.equal(seen.deaths, 3)
  assert.equal(seen.dropped.length, 2)
  assert.equal((await post('evil', 'c', 'fine')).status, 200)
  assert.equal(seen.dropped.length, 2)
})

test('a small result is kept however often the server is killed while it has it', async () => {
  const { seen, post } = await openRelay()
  seen.kills = 3
  assert.equal((await post('good', 'a', 'result')).status, 200)
  assert.deepEqual([seen.deaths, seen.dropped], [3, []])
})
