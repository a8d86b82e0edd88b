/** Invariants of queues, whatever happens to requests and workers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../../src/core/ids.ts'
import type { TargetState } from '../../../src/core/workers/socket-address.ts'
import type { RequestOutcome } from '../../../src/gateway/queue/reservation.ts'
import { randomSeed } from '../../support/random-seed.ts'
import { type Asked, aTarget, RequestQueuesRig } from '../../support/request-queues.ts'

const NAMES = ['a', 'b', 'c'] as const
type Name = (typeof NAMES)[number]
type Step =
  | { readonly kind: 'ask'; readonly named: Name | null; readonly how: 'soft' | 'strict'; readonly avoid: boolean }
  | { readonly kind: 'release'; readonly which: number; readonly outcome: RequestOutcome }
  | { readonly kind: 'abort'; readonly which: number }
  | { readonly kind: 'keep'; readonly states: readonly (TargetState | null)[] }
  | { readonly kind: 'pass'; readonly ms: number }

const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      named: fc.option(fc.constantFrom(...NAMES), { freq: 2 }),
      how: fc.constantFrom('soft', 'strict'),
      avoid: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('release' as const),
      which: fc.nat(),
      outcome: fc.constantFrom<RequestOutcome>('answered', 'answered', 'answered', 'aborted', 'broken', 'refused'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), which: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('keep' as const),
      states: fc.tuple(
        ...NAMES.map(() => fc.constantFrom<TargetState | null>('ready', 'ready', 'starting', 'draining', null)),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1, 500, 5_000) }) },
)

/** One run of steps, with what is known from outside. */
class Run {
  readonly rig: RequestQueuesRig
  readonly max: number | null
  readonly asked: { readonly asked: Asked; readonly named: Name | null; readonly plain: boolean; over: boolean }[] = []
  states = new Map<string, TargetState>()
  /** Workers of which some request has failed, and those that refused one. */
  readonly doubtful = new Set<string>()
  readonly refusing = new Set<string>()

  constructor(max: number | null, threads: number) {
    this.max = max
    this.rig = new RequestQueuesRig({ limits: { perEndpoint: 20 } }, threads)
  }

  async step(step: Step): Promise<void> {
    const open = this.asked.filter(({ asked, over }) => asked.reservation !== null && !over)
    if (step.kind === 'ask') this.#ask(step)
    if (step.kind === 'keep') await this.keep(step.states)
    if (step.kind === 'pass') await this.rig.clock.advance(step.ms)
    if (step.kind === 'abort') this.asked[step.which % Math.max(1, this.asked.length)]?.asked.abort()
    const one = step.kind === 'release' ? open[step.which % Math.max(1, open.length)] : undefined
    if (one !== undefined && step.kind === 'release') {
      one.over = true
      const { workerId } = one.asked.reservation!
      if (step.outcome === 'broken' || step.outcome === 'refused') this.doubtful.add(workerId)
      if (step.outcome === 'refused') this.refusing.add(workerId)
      one.asked.reservation!.release(step.outcome)
    }
    const before = new Set(open.map(({ asked }) => asked))
    await this.rig.clock.settle()
    for (const { asked, named } of this.asked) {
      if (asked.reservation === null || before.has(asked) || asked === one?.asked) continue
      if (this.#isNew(asked)) this.#checkServed(asked, named)
    }
    this.#checkWaiting()
  }

  async keep(states: readonly (TargetState | null)[]): Promise<void> {
    this.states = new Map(NAMES.flatMap((name, index) => (states[index] == null ? [] : [[name, states[index]]])))
    const targets = [...this.states].map(([name, state]) => aTarget(name, { state }))
    await this.rig.keep({ maxConcurrency: this.max }, ...targets)
  }

  readonly #seen = new Set<Asked>()

  #isNew(asked: Asked): boolean {
    if (this.#seen.has(asked)) return false
    this.#seen.add(asked)
    return true
  }

  #ask({ named, how, avoid }: Extract<Step, { kind: 'ask' }>): void {
    const affinity = named === null ? null : { kind: how, workerId: named as unknown as WorkerId }
    const asked = this.rig.ask({ affinity, avoid: avoid ? [aTarget('a').workerId] : [] })
    const isNamed = named !== null && how === 'strict'
    this.asked.push({ asked, named: isNamed ? named : null, plain: affinity === null && !avoid, over: false })
  }

  #checkServed(asked: Asked, named: Name | null): void {
    const worker = asked.reservation!.workerId
    assert.equal(this.states.get(worker), 'ready', `${asked.name} got ${worker}`)
    if (named !== null) assert.equal(worker, named)
  }

  #checkWaiting(): void {
    const waiting = this.asked.filter(({ asked }) => asked.reservation === null && asked.error === null)
    assert.equal(this.rig.queues.waiting, waiting.length)
    assert.ok(waiting.length <= 20)
    const counts = new Map<string, number>()
    for (const { asked, over } of this.asked) {
      const worker = asked.reservation?.workerId
      if (worker !== undefined && !over) counts.set(worker, (counts.get(worker) ?? 0) + 1)
    }
    for (const [name, count] of Object.entries(this.rig.inFlight)) assert.equal(count, counts.get(name) ?? 0, name)
    const isFree = (name: string) =>
      this.states.get(name) === 'ready' && (counts.get(name) ?? 0) < (this.max ?? Number.POSITIVE_INFINITY)
    for (const count of counts.values()) assert.ok(count <= (this.max ?? Number.POSITIVE_INFINITY))
    const isUnfair = waiting.find(({ named, plain }) =>
      named === null
        ? plain && NAMES.some(name => isFree(name) && !this.doubtful.has(name))
        : isFree(named) && !this.refusing.has(named),
    )
    assert.equal(isUnfair?.asked.name, undefined, 'it waits although it need not')
  }
}

test('requests go only to ready workers below their limit, wait only while they must, and are served in their order', async () => {
  const property = fc.asyncProperty(
    fc.option(fc.integer({ min: 1, max: 3 }), { freq: 4 }),
    fc.integer({ min: 1, max: 3 }),
    fc.array(STEP, { maxLength: 60, size: 'max' }),
    async (max, threads, steps) => {
      const run = new Run(max, threads)
      for (const step of steps) await run.step(step)
      const plain = new Set(run.asked.filter(one => one.plain).map(({ asked }) => asked.name))
      const served = run.rig.served.filter(name => plain.has(name)).map(name => Number(name.slice(1)))
      assert.deepEqual(
        served,
        served.toSorted((a, b) => a - b),
      )
      await run.rig.clock.advance(300_000)
      assert.deepEqual(
        run.asked.filter(({ asked }) => asked.reservation === null && asked.error === null),
        [],
      )
      assert.equal(run.rig.queues.waiting, 0)
    },
  )
  await fc.assert(property, { seed: randomSeed, numRuns: 150 })
})
