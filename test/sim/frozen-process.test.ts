/** Events and times in a frozen process of the simulator. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '../../sim/clock.ts'
import { Life } from '../../sim/life.ts'
import { Network, type Reply } from '../../sim/network.ts'
import { settle } from '../../sim/run.ts'
import { World } from '../../sim/world.ts'

const LIMIT_MS = 1_000

test('timers and arrivals wait for a frozen process, and timers come first', async () => {
  const clock = new VirtualClock()
  const life = new Life(clock)
  const seen: string[] = []
  life.after(10, () => seen.push('timer'))
  life.freeze()
  void life.guard(Promise.resolve()).then(() => seen.push('answer'))
  life.deliver(() => seen.push('arrival'))
  while (clock.advance(50));
  await settle(() => 0)
  assert.equal(seen.length, 0)
  life.thaw()
  await settle(() => 0)
  assert.deepEqual(seen, ['timer', 'arrival', 'answer'])
  life.after(10, () => seen.push('next'))
  while (clock.advance(100));
  assert.equal(seen.at(-1), 'next')
})

test('a timer that is taken back as another fires at the thaw does not fire', () => {
  const clock = new VirtualClock()
  const life = new Life(clock)
  const seen: string[] = []
  life.after(10, () => {
    seen.push('first')
    cancel()
  })
  const cancel = life.after(20, () => seen.push('second'))
  life.freeze()
  while (clock.advance(50));
  life.thaw()
  assert.deepEqual(seen, ['first'])
})

test('a frozen process that is killed sees nothing more', async () => {
  const clock = new VirtualClock()
  const life = new Life(clock)
  const seen: string[] = []
  life.freeze()
  life.after(10, () => seen.push('timer'))
  life.deliver(() => seen.push('arrival'))
  void life.guard(Promise.resolve()).then(() => seen.push('answer'))
  while (clock.advance(50));
  life.end()
  life.thaw()
  await settle(() => 0)
  assert.deepEqual(seen, [])
})

for (const [frozenForMs, expected] of [
  [LIMIT_MS - 500, '204'],
  [LIMIT_MS + 500, 'timeout'],
] as const) {
  test(`a poll that is answered while its caller is frozen counts as delivered, and the caller sees ${expected} after ${frozenForMs} ms`, async () => {
    const { clock, life, network, delivered } = openNetwork()
    const call = { who: 'worker', method: 'GET', url: 'http://server.sim/poll', headers: {}, life } as const
    const replies: Reply[] = []
    void network.send({ ...call, timeoutMs: LIMIT_MS }).then(reply => replies.push(reply))
    while (clock.advance(30)) await settle(() => 0)
    life.freeze()
    await pass(clock, frozenForMs)
    assert.deepEqual([delivered, replies], [[true], []])
    life.thaw()
    await settle(() => 0)
    const [reply] = replies
    assert.equal(reply?.ok === true ? String(reply.status) : reply?.why, expected)
  })
}

async function pass(clock: VirtualClock, ms: number): Promise<void> {
  const until = clock.monotonic() + ms
  await settle(() => 0)
  while (clock.advance(until)) await settle(() => 0)
}

/** A server that answers each poll with 204 after 100 ms. */
function openNetwork() {
  const world = new World(1)
  const { clock } = world
  const network = new Network(world, { arrived() {}, answered() {} })
  const delivered: boolean[] = []
  const surface: Parameters<Network['connect']>[0] = async (_request, env) => {
    env?.delivery?.onSettled(was => void delivered.push(was))
    await new Promise<void>(resolve => clock.after(100, resolve))
    return new Response(null, { status: 204 })
  }
  network.connect(surface, new Life(clock))
  return { clock, network, delivered, life: new Life(clock) }
}
