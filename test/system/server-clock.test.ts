import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOCK_STEP_MS, clockDifference, resumedTime } from '../../src/core/server-time.ts'
import { type MachineClocks, ServerClock } from '../../src/system/server-clock.ts'

const START_MS = 1_800_000_000_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS

/** The clocks of a machine on which a test has its hands. */
class Machine implements MachineClocks {
  boot = 'boot-1'
  wallMs = START_MS
  monotonicMs = 5_000
  sinceBootMs: number | null = 60_000

  wall = () => this.wallMs
  monotonic = () => this.monotonicMs
  sinceBoot = () => this.sinceBootMs

  pass(ms: number): void {
    this.wallMs += ms
    this.monotonicMs += ms
    if (this.sinceBootMs !== null) this.sinceBootMs += ms
  }

  sleep(ms: number): void {
    this.wallMs += ms
    if (this.sinceBootMs !== null) this.sinceBootMs += ms
  }
}

function started() {
  const machine = new Machine()
  return { machine, clock: new ServerClock(machine, () => () => {}) }
}

for (const byMs of [-2 * HOUR_MS, HOUR_MS, -YEAR_MS, YEAR_MS, -CLOCK_STEP_MS - 500, CLOCK_STEP_MS + 500]) {
  test(`the server's time goes on at a step by ${byMs} ms, which it notices`, () => {
    const { machine, clock } = started()
    machine.pass(1_000)
    machine.wallMs += byMs
    assert.equal(clock.now(), START_MS + 1_000)
    assert.deepEqual(clock.read().step, { byMs, sinceMs: START_MS + 1_000 })
    machine.pass(10_000)
    assert.equal(clock.now(), START_MS + 11_000)
    assert.equal(clock.read().machineMs, START_MS + 11_000 + byMs)
    machine.wallMs -= byMs
    assert.equal(clock.read().step, null, 'the step is over once the clock is right again')
  })
}

test('a small difference is made up for slowly, and the time never goes back', () => {
  const { machine, clock } = started()
  machine.wallMs -= 1_000
  machine.pass(1_000)
  assert.equal(clock.now(), START_MS + 900)
  let before = clock.now()
  for (let n = 0; n < 20; n += 1) {
    machine.pass(1_000)
    assert.ok(clock.now() >= before)
    before = clock.now()
  }
  assert.equal(clock.now(), machine.wallMs)
  assert.equal(clock.read().step, null)
})

test('a machine that sleeps has no step, and one whose clock is set during sleep has', () => {
  const { machine, clock } = started()
  machine.sleep(8 * HOUR_MS)
  assert.deepEqual([clock.now(), clock.read().step], [START_MS + 8 * HOUR_MS, null])
  machine.sleep(8 * HOUR_MS)
  machine.wallMs -= HOUR_MS
  assert.equal(clock.now(), START_MS + 16 * HOUR_MS)
  assert.equal(clock.read().step?.byMs, -HOUR_MS)
})

test('the time goes on from that of an earlier server, and an old step keeps its instant', () => {
  const { machine, clock } = started()
  machine.wallMs += HOUR_MS
  clock.resume(START_MS + 5, START_MS - 9)
  assert.equal(clock.now(), START_MS + 5)
  assert.deepEqual(clock.read().step, { byMs: HOUR_MS - 5, sinceMs: START_MS - 9 })
  assert.deepEqual(clock.mark(), {
    boot: 'boot-1',
    sinceBootMs: 60_000,
    nowMs: START_MS + 5,
    step: { byMs: HOUR_MS - 5, sinceMs: START_MS - 9 },
  })
})

test('a server that starts again knows how much time has passed, whatever the clock shows', () => {
  const kept = { boot: 'boot-1', sinceBootMs: 60_000, nowMs: START_MS, databaseAgoMs: null }
  const here = { boot: 'boot-1', sinceBootMs: 70_000 }
  for (const machineMs of [START_MS - YEAR_MS, START_MS + 10_000, START_MS + YEAR_MS])
    assert.equal(resumedTime(kept, { ...here, machineMs }), START_MS + 10_000)
})

test('after another start of the machine its clock says what time it is, unless that is before', () => {
  const kept = { boot: 'boot-1', sinceBootMs: 60_000, nowMs: START_MS, databaseAgoMs: null }
  const at = (machineMs: number, boot = 'boot-2') => resumedTime(kept, { boot, sinceBootMs: 9_000, machineMs })
  assert.equal(at(START_MS + 2 * HOUR_MS), START_MS + 2 * HOUR_MS)
  assert.equal(at(START_MS - 2 * HOUR_MS), START_MS)
  assert.equal(at(START_MS + HOUR_MS, ''), START_MS + HOUR_MS)
  assert.equal(at(START_MS + HOUR_MS, 'boot-1'), START_MS + HOUR_MS, 'a container has a time since its own start')
})

test('a server of another machine takes over by the clock of the database', () => {
  const on = (databaseAgoMs: number, machineMs: number) =>
    resumedTime({ boot: 'a', sinceBootMs: 1, nowMs: START_MS, databaseAgoMs }, { boot: 'b', sinceBootMs: 2, machineMs })
  assert.equal(on(8_000, START_MS + YEAR_MS), START_MS + 8_000)
  assert.equal(on(8_000, START_MS - YEAR_MS), START_MS + 8_000)
  assert.equal(on(3 * DAY_MS, START_MS + 3 * DAY_MS - 100), START_MS + 3 * DAY_MS - 100)
  assert.equal(on(400 * DAY_MS, START_MS + 8_000), START_MS + 8_000, 'the clock of the database was set')
  assert.equal(on(-HOUR_MS, START_MS + 8_000), START_MS)
})

test('a difference is said in two units at most', () => {
  const said = [90_000, -7_200_000, 9_000_000, 400 * DAY_MS].map(clockDifference)
  assert.deepEqual(said, ['90 s ahead of', '2 h behind', '2 h 30 min ahead of', '400 days ahead of'])
})
