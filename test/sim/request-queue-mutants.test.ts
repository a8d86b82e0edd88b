/** Lines with a mistake in them: a simulator that does not find it would not find it in ours either. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BalancedRequestQueues } from '../../sim/checks/request-queue-checker.ts'
import { settle } from '../../sim/run.ts'
import type { BreakLines } from '../../sim/server.ts'
import { runSeed } from '../../sim/simulation.ts'
import type { Target } from '../../src/core/workers/socket-address.ts'
import type { Reservation, Reservations } from '../../src/gateway/queue/reservation.ts'

/** Among these the mistake must be found. */
const MUTANT_SEEDS = 20

/** What lines do wrong, how to make it, and what is said about it. */
interface Mutant {
  readonly name: string
  /** A seed that has found it, which is tried first. */
  readonly seed?: number
  readonly break: BreakLines
  readonly found: RegExp
}

/** Lines with another part. */
function withPart(lines: BalancedRequestQueues, part: Partial<BalancedRequestQueues>): BalancedRequestQueues {
  return {
    keep: lines.keep.bind(lines),
    setCircuit: lines.setCircuit.bind(lines),
    forget: lines.forget.bind(lines),
    load: lines.load.bind(lines),
    busyMs: lines.busyMs.bind(lines),
    reserve: lines.reserve.bind(lines),
    ...part,
  }
}

const withTargets = (lines: BalancedRequestQueues, change: (target: Target) => Target) =>
  withPart(lines, { keep: (endpoint, targets) => lines.keep(endpoint, targets.map(change)) })

const withReserve = (lines: BalancedRequestQueues, reserve: Reservations['reserve']) => withPart(lines, { reserve })

/** Whether this is one of every `nth` calls. */
function everyNth(nth: number): () => boolean {
  let count = 0
  return () => {
    count += 1
    return count % nth === 0
  }
}

/** Whoever came last gets the worker of whoever is served. */
const backwards = (lines: BalancedRequestQueues): BalancedRequestQueues => {
  const pending: { readonly endpointId: string; readonly resolve: (reservation: Reservation) => void }[] = []
  return withReserve(lines, wanted => {
    if (wanted.affinity !== null) return lines.reserve(wanted)
    const { promise, resolve, reject } = Promise.withResolvers<Reservation>()
    pending.push({ endpointId: wanted.endpointId, resolve })
    lines.reserve(wanted).then(reservation => {
      const index = pending.findLastIndex(({ endpointId }) => endpointId === wanted.endpointId)
      pending.splice(index, 1)[0]?.resolve(reservation)
    }, reject)
    return promise
  })
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'send one request too many to a worker',
    break: {
      wrap: lines => {
        const keep: BalancedRequestQueues['keep'] = (endpoint, targets) => {
          const max = endpoint.maxConcurrency
          lines.keep({ ...endpoint, maxConcurrency: max === null ? null : max + 1 }, targets)
        }
        return withPart(lines, { keep })
      },
    },
    found: /which then has \d+ requests, and its limit is \d+/,
  },
  {
    name: 'let the last one go first',
    break: { wrap: backwards },
    found: /was given worker .* before request \d+, which was there first/,
  },
  {
    name: 'forget that requests have ended',
    break: {
      wrap: lines => {
        const isLost = everyNth(5)
        return withReserve(lines, async wanted => {
          const reservation = await lines.reserve(wanted)
          return isLost() ? { ...reservation, release: () => {} } : reservation
        })
      },
    },
    found: /is said to have \d+ requests in flight, and has \d+/,
  },
  {
    name: 'send requests to workers that are not ready',
    break: {
      wrap: lines =>
        withTargets(lines, target => ({ ...target, state: target.state === 'starting' ? 'ready' : target.state })),
    },
    found: /was given worker .*, which is starting/,
  },
  {
    name: 'send requests to workers that drain',
    break: {
      wrap: lines =>
        withTargets(lines, target => ({ ...target, state: target.state === 'draining' ? 'ready' : target.state })),
    },
    found: /was given worker .*, which is draining/,
  },
  {
    name: 'do not see some workers',
    break: {
      wrap: lines =>
        withTargets(lines, target => (/[a-m]$/.test(target.workerId) ? { ...target, state: 'starting' } : target)),
    },
    found: /waits although worker .* is ready and has room/,
  },
  {
    name: 'let as many wait as like to',
    break: { limits: { perEndpoint: 1_000, inAll: 1_000 } },
    found: /requests wait at endpoint .*, and no more than \d+ may/,
  },
  {
    name: 'let requests wait for ever',
    seed: 10,
    break: { limits: { waitMs: 10_000_000, namedWaitMs: 10_000_000 } },
    found: /request \d+ of endpoint .* waits for \d+ ms/,
  },
  {
    name: 'lose requests',
    break: {
      wrap: lines => {
        const isLost = everyNth(9)
        return withReserve(lines, wanted => (isLost() ? new Promise(() => {}) : lines.reserve(wanted)))
      },
    },
    found: /waits although worker|requests are said to wait at endpoint/,
  },
  {
    name: 'take any worker for one that is insisted on',
    break: {
      wrap: lines => {
        return withReserve(lines, wanted => lines.reserve({ ...wanted, affinity: null }))
      },
    },
    found: /insists on/,
  },
  {
    name: 'keep clients in line that are gone',
    break: {
      wrap: lines => {
        const never = new AbortController().signal
        return withReserve(lines, wanted => lines.reserve({ ...wanted, signal: never }))
      },
    },
    found: /after its client had gone|requests are said to wait at endpoint/,
  },
  {
    name: 'never forget workers that have ended',
    break: {
      wrap: lines => {
        const known = new Map<string, Target>()
        const keep: BalancedRequestQueues['keep'] = (endpoint, targets) => {
          for (const target of targets) known.set(target.workerId, target)
          const ended = [...known.values()].filter(
            ({ workerId }) => !targets.some(target => target.workerId === workerId),
          )
          lines.keep(endpoint, [...targets, ...ended.map(target => ({ ...target, state: 'ready' as const }))])
        }
        return withPart(lines, { keep })
      },
    },
    found: /was given worker .*, which (is unknown|has ended)/,
  },
]

for (const mutant of MUTANTS) {
  test(`lines that ${mutant.name} are found out`, async () => {
    assert.match(await problemsUntil(mutant), mutant.found)
  })
}

/** The problems of the first seed that finds what is wrong; those of all where none does. */
async function problemsUntil(mutant: Mutant): Promise<string> {
  const all: string[] = []
  const seeds = Array.from({ length: MUTANT_SEEDS }, (_, at) => at + 1)
  for (const seed of new Set([mutant.seed ?? 1, ...seeds])) {
    const enough = (problems: readonly string[]) => problems.some(problem => mutant.found.test(problem))
    const { problems } = await runSeed(seed, { settle, breakLines: mutant.break, enough })
    const text = problems.join('\n')
    if (enough(problems)) return text
    all.push(text)
  }
  return all.join('\n')
}
