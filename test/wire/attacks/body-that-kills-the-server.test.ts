/** A body that ends the server, sent by a worker through the relay, which would send it to each next one. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { Relay } from '../../../src/relay/relay.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { playServer, sendTokens } from '../support/played-server.ts'
import { until } from '../support/until.ts'

const POISON = 'poison'.padEnd(65_536, '!')
/** Uptime of a server before it gets a suspect. */
const CALM_MS = 300

/** A relay, and servers that end when they get {@link POISON}; each is followed by another. */
async function openRelay() {
  const setAside = temporaryFolder()
  const options = { folder: temporaryFolder(), setAside, secret: 'secret', onEnd: () => {}, calmMs: CALM_MS }
  const relay = new Relay(options)
  const url = `http://127.0.0.1:${await relay.listen(0)}`
  atEnd(() => relay.close())
  await sendTokens(url, { live: ['evil', 'good'] })
  const seen = {
    deaths: 0,
    bodies: [] as string[],
    /** Notes to the server about bodies that are withheld from it. */
    notes: [] as string[],
    held: [] as ServerResponse[],
    hold: false,
    /** So often it is killed while it has any body. */
    kills: 0,
    /** So often it is killed a moment after its start, whatever it has by then. */
    shortLives: 0,
  }
  let over = false
  const start = async () => {
    const played = await playServer(url, (incoming, response, got) => {
      const { 'x-runyard-dropped': bytes, 'x-runyard-set-aside': file } = incoming.headers
      if (bytes !== undefined) seen.notes.push(`${incoming.url} ${bytes} ${file}`)
      seen.bodies.push(got)
      if (got.includes(POISON)) die()
      else if (got !== '' && seen.kills > 0) {
        seen.kills -= 1
        die()
      } else if (got !== '' && seen.hold) seen.held.push(response)
      else if (got !== '' && seen.shortLives > 0) return
      else response.end('{}')
    })
    let isDead = false
    const die = () => {
      if (over || isDead) return
      isDead = true
      seen.deaths += 1
      seen.hold = false
      played.kill()
      setTimeout(() => void start(), 100)
    }
    if (seen.shortLives > 0) {
      setTimeout(() => {
        seen.shortLives -= 1
        die()
      }, CALM_MS / 2)
    }
  }
  atEnd(() => {
    over = true
  })
  await start()
  const post = (token: string, job: string, content: string, call = 'job-done') =>
    fetch(`${url}/v2/ep/${call}/w/${job}`, { method: 'POST', headers: { authorization: token }, body: content })
  const files = () => readdirSync(setAside).map(name => readFileSync(join(setAside, name), 'utf8').split('\n')[1])
  return { seen, post, files }
}

test('a chunk that kills servers is set aside after three that had it alone, and the server is notified', async () => {
  const { seen, post, files } = await openRelay()
  assert.equal((await post('evil', 'a', POISON, 'job-stream')).status, 200)
  assert.equal(seen.deaths, 4)
  assert.equal(seen.notes.length, 1)
  assert.match(seen.notes[0]!, /^\/v2\/ep\/job-stream\/w\/a 65536 body-[\d-]+$/)
  assert.deepEqual(files(), [POISON])
})

test('results that were under way beside it are delivered, and no other job is blamed', async () => {
  const { seen, post, files } = await openRelay()
  seen.hold = true
  const good = [1, 2, 3].map(n => post('good', `good${n}`, `result ${n}`))
  await until('the good ones', () => seen.held.length === 3)
  const evil = post('evil', 'evil', POISON)
  for (const answer of await Promise.all([...good, evil])) assert.equal(answer.status, 200)
  assert.equal(seen.notes.length, 1)
  assert.deepEqual(files(), [POISON])
})

test('the next body of its worker is set aside after one death', async () => {
  const { seen, post, files } = await openRelay()
  await post('evil', 'a', POISON)
  const before = seen.deaths
  await post('evil', 'b', `${POISON} too`)
  assert.equal(seen.deaths, before + 1)
  assert.equal(seen.notes.length, 2)
  assert.equal((await post('evil', 'c', 'fine')).status, 200)
  assert.equal(files().length, 2)
})

test('a large result is kept however often the server is killed soon after its start', async () => {
  const { seen, post, files } = await openRelay()
  const large = 'result'.padEnd(100_000)
  seen.kills = 1
  seen.shortLives = 5
  assert.equal((await post('good', 'a', large)).status, 200)
  assert.equal(seen.deaths, 6)
  assert.deepEqual([seen.notes, files()], [[], []])
  assert.equal(seen.bodies.filter(body => body === large).length, 2, 'it was not even sent to the servers between')
})

test('a large result survives three kills of a server that has it, and a small one five', async () => {
  const { seen, post, files } = await openRelay()
  for (const [bytes, kills] of [
    [100_000, 3],
    [10, 5],
  ] as const) {
    seen.kills = kills
    assert.equal((await post('good', 'a', 'result'.padEnd(bytes))).status, 200)
    assert.equal(seen.kills, 0)
  }
  assert.deepEqual([seen.notes, files()], [[], []])
})

test('of several results in one call only the one that kills servers is set aside', async () => {
  const { seen, post, files } = await openRelay()
  const ids = ['a', 'b', 'c'].map(name => `${name.repeat(8)}-0000-4000-8000-000000000000-u1`)
  const texts = ['1', POISON, '3']
  const body = ids.map((id, at) => `${id}\n${texts[at]}`).join('\n')
  const answer = await post('evil', '', body, 'job-done-batch')
  assert.deepEqual([answer.status, await answer.json()], [200, [200, 200, 200]])
  assert.deepEqual(files(), [POISON])
  assert.match(seen.notes.join(), new RegExp(`^/v2/ep/job-done/w/${ids[1]} 65536 body-[\\d-]+$`))
  assert.deepEqual(
    ['1', '3'].map(text => seen.bodies.filter(got => got === text).length),
    [1, 1],
  )
})

test('several results in one call go to the next server together when theirs was only killed', async () => {
  const { seen, post } = await openRelay()
  seen.kills = 1
  const ids = ['a', 'b'].map(name => `${name.repeat(8)}-0000-4000-8000-000000000000-u1`)
  const answer = await post('good', '', ids.map(id => `${id}\n1`).join('\n'), 'job-done-batch')
  assert.deepEqual([answer.status, await answer.json()], [200, [200, 200]])
  assert.equal(seen.deaths, 1)
})
