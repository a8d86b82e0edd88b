/** The walks of ARCHITECTURE.md: their stations exist, are few, and those of a take are on its stack. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { openRig } from '../../support/rig.ts'

const root = join(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')

/** Maximum number of stations of each walk. */
const LIMITS = { 'A run': 15, 'A take': 12, 'A done': 12, 'A load-balanced request': 13, 'A save': 14 }

interface Station {
  readonly number: number
  /** The path below `src/`, and the function, as the table has them. */
  readonly where: string
}

/** Stations of a walk, in their order. */
function readStations(walk: string): Station[] {
  const [, after = ''] = page.split(`### ${walk}\n`)
  const [table = ''] = after.split(/^##/m)
  const rows = table.matchAll(/^\| (\d+) \| ([^|]+) \|/gm)
  return [...rows].map(([, number, where]) => ({ number: Number(number), where: where! }))
}

/** Files of `src` on a stack, the outermost first, each once in a row. */
function filesOn(stack: string): string[] {
  const files: string[] = []
  for (const [, file] of stack.matchAll(/\/src\/([\w/.-]+\.ts):/g)) if (files.at(-1) !== file) files.push(file!)
  return files.reverse()
}

for (const [walk, limit] of Object.entries(LIMITS)) {
  test(`the walk of ${walk.toLowerCase()} has at most ${limit} stations`, () => {
    const numbers = readStations(walk).map(({ number }) => number)
    assert.ok(numbers.length > 0 && numbers.length <= limit, `${numbers.length} stations`)
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    )
  })
}

for (const walk of Object.keys(LIMITS)) {
  test(`each station of the walk of ${walk.toLowerCase()} is one function in one file`, () => {
    for (const { where } of readStations(walk)) {
      const [, file, name] = /^`([\w/.-]+\.ts)` (\w+)$/.exec(where) ?? []
      assert.ok(file !== undefined && name !== undefined, where)
      assert.match(readFileSync(join(root, 'src', file), 'utf8'), new RegExp(`\\b${name}\\b`), where)
    }
  })
}

test('a take goes from station to station and never returns to an earlier one', async t => {
  const stacks: string[][] = []
  const store = await openSqliteStore({ file: ':memory:', host: 'inline' })
  const { claim } = store.jobs
  const watched = {
    ...store,
    jobs: Object.assign(Object.create(store.jobs) as typeof store.jobs, {
      claim: (...args: Parameters<typeof claim>) => {
        const { stackTraceLimit } = Error
        Error.stackTraceLimit = 100
        stacks.push(filesOn(new Error('here').stack ?? ''))
        Error.stackTraceLimit = stackTraceLimit
        return claim(...args)
      },
    }),
    close: () => store.close(),
  }
  const rig = await openRig(t, { sealPayloads: true, openStore: async () => watched })
  const endpoint = await rig.endpoint({ workersMin: 1, workersMax: 1 })
  await rig.clock.advance(100)
  const worker = rig.worker(0)
  const waiting = worker.take()
  await rig.clock.settle()
  const id = await rig.submit(endpoint)
  assert.equal((await waiting).json.id, id)
  await worker.done(id)
  const next = await rig.submit(endpoint)
  assert.equal((await worker.take()).json.id, next)
  const files = readStations('A take').map(({ where }) => /`(.+)`/.exec(where)?.[1] ?? '')
  // The claim after a wait in the poll queue, and the one of a take that finds a job.
  assert.equal(stacks.length, 2)
  for (const stack of stacks) {
    assert.deepEqual(new Set(stack).size, stack.length, `comes back: ${stack.join(', ')}`)
    assert.deepEqual(
      stack,
      files.filter(file => stack.includes(file)),
    )
    for (const file of ['api/worker/routes.ts', 'services/workers/takes.ts', 'services/jobs/jobs.ts']) {
      assert.ok(stack.includes(file), `not on the stack: ${file}`)
    }
  }
})
