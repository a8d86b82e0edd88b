import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { LANES, planTasks, type Queues, type Task } from '../../scripts/test/lanes.ts'
import { type Processors, untilFreeProcessor } from '../../scripts/test/processors.ts'
import type { FileResult } from '../../scripts/test/run-file.ts'
import { type LaneHost, resultOf, runLanes, sumCounts } from '../../scripts/test/run-lanes.ts'

/** Lanes that take files of servers at any time, and those for the time that the others leave. */
const STEADY = LANES.filter(lane => lane.isLow !== true && lane.needsProcessor !== true).length
const FOR_GAPS = LANES.filter(lane => lane.needsProcessor === true).length

const READY = Promise.resolve()

function plan(files: readonly string[]): Queues {
  const options = { isWhole: false, onlyContainers: false, grep: [], list: false, watch: false }
  return planTasks({ files: [...files].sort(), ...options }).queues
}

function passed(task: Task, tests = 1): FileResult {
  const counts = { tests, passed: tests, skipped: 0, todo: 0 }
  return { task, name: task.file, counts, hasPassed: true, skips: [], ms: 1, output: '' }
}

/** A machine on which a file runs until the test ends it. */
class Machine implements LaneHost {
  isFree = false
  /** Files in the order in which they began. */
  readonly begun: string[] = []
  readonly running = new Map<string, () => void>()
  readonly shown: string[] = []
  /** Waits of a lane for a processor that found one. */
  waits = 0

  async run(task: Task) {
    this.begun.push(task.file)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.running.set(task.file, resolve)
    await promise
    this.running.delete(task.file)
    return passed(task)
  }

  async untilFree(isOver: () => boolean) {
    while (!this.isFree && !isOver()) await turn()
    if (!isOver()) this.waits += 1
  }

  show({ name }: FileResult) {
    this.shown.push(name)
  }

  /** Ends files, by default all of them, and those that begin meanwhile. */
  async end(wanted: (file: string) => boolean = () => true) {
    for (let found = true; found; ) {
      const ends = [...this.running].filter(([file]) => wanted(file))
      for (const [, end] of ends) end()
      await turns()
      found = ends.length > 0
    }
  }
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Lets lanes do what they can do now. */
async function turns(): Promise<void> {
  for (let n = 0; n < 10; n += 1) await turn()
}

const wire = (count: number) => Array.from({ length: count }, (_, n) => `test/wire/workers/file-${n}.test.ts`)

describe('the lanes of a run', () => {
  test('run each task once, and never more at once than there are lanes', async () => {
    const kinds = ['docker', 'gateway', 'workers', 'kubernetes'].map(name => `test/wire/${name}`)
    const folders = [...kinds, 'test/browser', 'test/core', 'test/sim', 'test/drivers', 'test/contract']
    const files = fc.uniqueArray(fc.tuple(fc.constantFrom(...folders), fc.nat(30)), {
      selector: pair => pair.join(' '),
      maxLength: 40,
    })
    await fc.assert(
      fc.asyncProperty(files, fc.infiniteStream(fc.nat(4)), fc.infiniteStream(fc.boolean()), async (made, ms, free) => {
        const queues = plan(made.map(([folder, n]) => `${folder}/file-${n}.test.ts`))
        const tasks = Object.values(queues).flat()
        let running = 0
        let most = 0
        const results = await runLanes({ queues, lanes: LANES }, READY, {
          async run(task) {
            running += 1
            most = Math.max(most, running)
            for (let left = ms.next().value; left >= 0; left -= 1) await turn()
            running -= 1
            return passed(task)
          },
          async untilFree(isOver) {
            while (!isOver() && !free.next().value) await turn()
          },
          show() {},
        })
        assert.ok(most <= LANES.length)
        assert.deepEqual(results.map(({ name }) => name).sort(), tasks.map(({ file }) => file).sort())
      }),
      { numRuns: 50 },
    )
  })

  test('take one file more only while a processor is free, and look again before each', async () => {
    const machine = new Machine()
    const whole = runLanes({ queues: plan(wire(12)), lanes: LANES }, READY, machine)
    await turns()
    assert.equal(machine.running.size, STEADY)
    machine.isFree = true
    await turns()
    assert.equal(machine.running.size, STEADY + FOR_GAPS)
    assert.equal(machine.waits, FOR_GAPS)
    machine.isFree = false
    const [, , , , further] = machine.begun
    await machine.end(file => file === further)
    assert.equal(machine.running.size, STEADY, 'it takes no file while they are busy')
    await machine.end()
    assert.equal((await whole).length, 12, 'it ends with the others, also when nothing was ever free again')
    assert.equal(machine.waits, FOR_GAPS)
  })

  test('begin with the slowest files, in whatever order they are found', async () => {
    const slow = ['clients/schemathesis', 'workers/deployed-apps', 'faults/floods', 'faults/restart']
    const slowest = slow.map(name => `test/wire/${name}.test.ts`)
    const machine = new Machine()
    const whole = runLanes({ queues: plan(['test/wire/attacks/a.test.ts', ...slowest]), lanes: LANES }, READY, machine)
    await turns()
    assert.deepEqual(machine.begun, slowest)
    await machine.end()
    assert.equal((await whole).length, 5)
  })

  test('keep all results when files cannot be run, and go on', async () => {
    const machine = new Machine()
    const files = wire(10)
    const broken = (file: string) => /-[147]\./.test(file)
    const run = async (task: Task) => (broken(task.file) ? Promise.reject(new Error('no memory')) : machine.run(task))
    const host: LaneHost = { run, untilFree: over => machine.untilFree(over), show: result => machine.show(result) }
    const whole = runLanes({ queues: plan(files), lanes: LANES }, READY, host)
    await turns()
    await machine.end()
    const results = await whole
    assert.deepEqual(results.map(({ name }) => name).sort(), files)
    assert.deepEqual(machine.shown.toSorted(), files)
    const failed = results.filter(({ hasPassed }) => !hasPassed)
    assert.deepEqual(failed.map(({ name }) => name).sort(), files.filter(broken))
    for (const { output } of failed) assert.match(output, /cannot be run: Error: no memory/)
    assert.deepEqual(sumCounts(results), { tests: 10, passed: 7, skipped: 0, todo: 0, failed: 3 })
  })

  for (const how of ['run', 'cannot be run'])
    test(`let files that use an engine wait for those that stop it, which ${how}`, async () => {
      const [stops, uses] = ['test/wire/docker/docker.test.ts', 'test/wire/workers/worker-models.test.ts']
      const machine = new Machine()
      const { promise: refusal, resolve } = Promise.withResolvers<void>()
      const refuse = () => refusal.then(() => Promise.reject(new Error('no engine')))
      const run = (task: Task) => (how !== 'run' && task.file === stops ? refuse() : machine.run(task))
      const host: LaneHost = { run, untilFree: over => machine.untilFree(over), show() {} }
      const whole = runLanes({ queues: plan([stops, uses]), lanes: LANES }, READY, host)
      await turns()
      assert.equal(machine.begun.includes(uses), false)
      resolve()
      await machine.end(file => file === stops)
      assert.deepEqual([...machine.running.keys()], [uses])
      await machine.end()
      assert.equal((await whole).length, 2)
    })

  test('run only what needs no programs until these are there', async () => {
    const pure = ['test/sim/a.test.ts', 'test/model/b.test.ts']
    const machine = new Machine()
    const programs = Promise.withResolvers<void>()
    const queues = plan([...pure, 'test/drivers/a.test.ts', ...wire(1)])
    const whole = runLanes({ queues, lanes: LANES }, programs.promise, machine)
    await turns()
    await machine.end()
    assert.deepEqual(machine.begun.toSorted(), pure.toSorted())
    programs.resolve()
    await turns()
    await machine.end()
    assert.equal((await whole).length, 4)
  })

  test('end with an error when no programs will come', async () => {
    const programs = Promise.reject(new Error('given up'))
    await assert.rejects(runLanes({ queues: plan(wire(3)), lanes: LANES }, programs, new Machine()), /given up/)
  })
})

test('the count of a run is the sum of its results', () => {
  const [task] = plan(wire(1)).wire
  const counts = [
    { tests: 5, passed: 3, skipped: 1, todo: 0 },
    { tests: 4, passed: 3, skipped: 0, todo: 1 },
  ]
  const results = counts.map(some => ({ ...passed(task!), counts: some }))
  assert.deepEqual(sumCounts(results), { tests: 9, passed: 6, skipped: 1, todo: 1, failed: 1 })
  assert.deepEqual(sumCounts([]), { tests: 0, passed: 0, skipped: 0, todo: 0, failed: 0 })
})

test('files that share a process and cannot be run are all named', async () => {
  const task: Task = { file: 'test/app/a.test.ts', others: ['test/app/b.test.ts'], containers: 'none' }
  const { name, counts } = await resultOf(task, () => Promise.reject('no process'))
  assert.equal(name, 'test/app/a.test.ts, test/app/b.test.ts')
  assert.equal(counts.tests - counts.passed, 1)
})

/** A machine of two processors whose free time, in processors, is given for each second. */
function processors(free: readonly number[]): Processors & { seconds(): number } {
  let ms = 0
  let freeMs = 0
  return {
    now: () => ms,
    freeTime: () => freeMs,
    async sleep(time) {
      freeMs += time * (free[Math.floor(ms / 1_000)] ?? 0)
      ms += time
    },
    seconds: () => ms / 1_000,
  }
}

describe('a free processor', () => {
  const cases: [what: string, free: readonly number[], seconds: number][] = [
    ['is found after three seconds on a machine that does nothing', [2, 2, 2], 3],
    ['is most of one for three seconds together', [0.8, 0.8, 0.8], 3],
    ['is none while a file starts in the gap of another one', [0, 0, 2, 0, 0, 0, 1, 1, 1], 9],
    ['is none where less than most of one is left', [0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.8, 0.8, 0.8], 9],
  ]
  for (const [what, free, seconds] of cases)
    test(what, async () => {
      const machine = processors(free)
      await untilFreeProcessor(() => false, machine)
      assert.equal(machine.seconds(), seconds)
    })

  test('is not waited for when nobody needs one any more', async () => {
    const machine = processors([])
    await untilFreeProcessor(() => machine.seconds() >= 7, machine)
    assert.equal(machine.seconds(), 7)
    await untilFreeProcessor(() => true, machine)
    assert.equal(machine.seconds(), 7)
  })
})
