import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '../../sim/clock.ts'
import { Life } from '../../sim/life.ts'
import { SeededRandom } from '../../sim/random.ts'
import { settle } from '../../sim/run.ts'
import { createSimVault } from '../../sim/vault.ts'

test('timers fire in the order of their times, then of their setting, and not when taken back', () => {
  const clock = new VirtualClock()
  const fired: string[] = []
  clock.after(20, () => fired.push('d'))
  clock.after(10, () => fired.push('a'))
  const cancel = clock.after(10, () => fired.push('b'))
  clock.after(10, () => fired.push('c'))
  cancel()
  while (clock.advance(15));
  assert.deepEqual([fired.join(''), clock.monotonic()], ['ac', 15])
  while (clock.advance(30));
  assert.deepEqual([fired.join(''), clock.monotonic()], ['acd', 30])
})

test('what a process waits for when it ends never comes', async () => {
  const clock = new VirtualClock()
  const life = new Life(clock)
  const came: string[] = []
  void life.sleep(5).then(() => came.push('slept'))
  void life.guard(Promise.resolve()).then(() => came.push('answered'))
  life.end()
  while (clock.advance(10));
  await settle(() => 0)
  assert.deepEqual(came, [])
})

test('an actor has the same random sequence whatever other actors there are, and ids of the right form', () => {
  const of = (name: string) => new SeededRandom(7, name)
  assert.deepEqual(of('a').bytes(8), of('a').bytes(8))
  assert.notDeepEqual(of('a').bytes(8), of('b').bytes(8))
  assert.match(of('a').uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const random = of('c')
  const drawn = Array.from({ length: 2_000 }, () => random.int(1, 4))
  assert.deepEqual([...new Set(drawn)].sort(), [1, 2, 3, 4])
})

test('the vault of the simulation keeps the promises of a vault', () => {
  const vault = createSimVault()
  const here = { kind: 'secrets', row: 'me/a' }
  const [one, two] = [vault.seal('a.b.c', here), vault.seal('a.b.c', here)]
  assert.notEqual(one, two)
  assert.deepEqual([vault.open(one, here), vault.open(two, here)], ['a.b.c', 'a.b.c'])
  assert.throws(() => vault.open(`${one}x`, here))
  assert.throws(() => vault.open(one, { ...here, row: 'me/b' }))
  assert.equal(vault.hash('key'), vault.hash('key'))
  assert.notEqual(vault.hash('key'), vault.hash('kez'))
})
