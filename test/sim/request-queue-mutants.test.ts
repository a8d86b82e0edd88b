/** Lines with a mistake in them: a simulator that does not find it would not find it in ours either. */
import { test } from 'node:test'
import type { RequestQueueMutation } from '../../sim/app-run.ts'
import type { BalancedRequestQueues } from '../../sim/checks/request-queue-checker.ts'
import type { Target } from '../../src/core/workers/socket-address.ts'
import type { Reservation, Reservations } from '../../src/gateway/queue/reservation.ts'
import { assertReported, everyNth, type MutantReport } from './mutant.ts'

/** A mistake of the queues, the code that makes it, and the problem that the checkers report. */
interface Mutant extends MutantReport {
  readonly name: string
  readonly break: RequestQueueMutation
}

/** Lines with another part. */
function withPart(queues: BalancedRequestQueues, part: Partial<BalancedRequestQueues>): BalancedRequestQueues {
  return {
    keep: queues.keep.bind(queues),
    setCircuit: queues.setCircuit.bind(queues),
    forget: queues.forget.bind(queues),
    load: queues.load.bind(queues),
    busyMs: queues.busyMs.bind(queues),
    reserve: queues.reserve.bind(queues),
    ...part,
  }
}

const withTargets = (queues: BalancedRequestQueues, change: (target: Target) => Target) =>
  withPart(queues, { keep: (endpoint, targets) => queues.keep(endpoint, targets.map(change)) })

const withReserve = (queues: BalancedRequestQueues, reserve: Reservations['reserve']) => withPart(queues, { reserve })

/** Whoever came last gets the worker of whoever is served. */
const backwards = (queues: BalancedRequestQueues): BalancedRequestQueues => {
  const pending: { readonly endpointId: string; readonly resolve: (reservation: Reservation) => void }[] = []
  return withReserve(queues, wanted => {
    if (wanted.affinity !== null) return queues.reserve(wanted)
    const { promise, resolve, reject } = Promise.withResolvers<Reservation>()
    pending.push({ endpointId: wanted.endpointId, resolve })
    queues.reserve(wanted).then(reservation => {
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
      wrap: queues => {
        const keep: BalancedRequestQueues['keep'] = (endpoint, targets) => {
          const max = endpoint.maxConcurrency
          queues.keep({ ...endpoint, maxConcurrency: max === null ? null : max + 1 }, targets)
        }
        return withPart(queues, { keep })
      },
    },
    expected: /which then has \d+ requests, and its limit is \d+/,
  },
  {
    name: 'let the last one go first',
    break: { wrap: backwards },
    expected: /got worker .* before request \d+, which was first in the queue/,
  },
  {
    name: 'forget that requests have ended',
    break: {
      wrap: queues => {
        const isLost = everyNth(5)
        return withReserve(queues, async wanted => {
          const reservation = await queues.reserve(wanted)
          return isLost() ? { ...reservation, release: () => {} } : reservation
        })
      },
    },
    expected: /the load has \d+ requests in flight at worker .*, which has \d+/,
  },
  {
    name: 'send requests to workers that are not ready',
    break: {
      wrap: queues =>
        withTargets(queues, target => ({ ...target, state: target.state === 'starting' ? 'ready' : target.state })),
    },
    expected: /got worker .*, which is starting/,
  },
  {
    name: 'send requests to workers that drain',
    seed: 3,
    break: {
      wrap: queues =>
        withTargets(queues, target => ({ ...target, state: target.state === 'draining' ? 'ready' : target.state })),
    },
    expected: /got worker .*, which is draining/,
  },
  {
    name: 'do not see some workers',
    break: {
      wrap: queues =>
        withTargets(queues, target => (/[a-m]$/.test(target.workerId) ? { ...target, state: 'starting' } : target)),
    },
    expected: /waits although worker .* is ready and has capacity/,
  },
  {
    name: 'let as many wait as like to',
    seed: 6,
    break: { limits: { perEndpoint: 1_000, inAll: 1_000 } },
    expected: /requests wait at endpoint .*, and no more than \d+ may/,
  },
  {
    name: 'let requests wait for ever',
    seed: 10,
    break: { limits: { waitMs: 10_000_000, namedWaitMs: 10_000_000 } },
    expected: /request \d+ of endpoint .* waits for \d+ ms/,
  },
  {
    name: 'lose requests',
    break: {
      wrap: queues => {
        const isLost = everyNth(9)
        return withReserve(queues, wanted => (isLost() ? new Promise(() => {}) : queues.reserve(wanted)))
      },
    },
    expected: /waits although worker|the load has \d+ waiting requests/,
  },
  {
    name: 'take any worker for one that is insisted on',
    seed: 2,
    break: {
      wrap: queues => {
        return withReserve(queues, wanted => queues.reserve({ ...wanted, affinity: null }))
      },
    },
    expected: /requires worker/,
  },
  {
    name: 'keep clients in line that are gone',
    seed: 6,
    break: {
      wrap: queues => {
        const never = new AbortController().signal
        return withReserve(queues, wanted => queues.reserve({ ...wanted, signal: never }))
      },
    },
    expected: /after its client had gone|the load has \d+ waiting requests/,
  },
  {
    name: 'never forget workers that have ended',
    break: {
      wrap: queues => {
        const known = new Map<string, Target>()
        const keep: BalancedRequestQueues['keep'] = (endpoint, targets) => {
          for (const target of targets) known.set(target.workerId, target)
          const ended = [...known.values()].filter(
            ({ workerId }) => !targets.some(target => target.workerId === workerId),
          )
          queues.keep(endpoint, [...targets, ...ended.map(target => ({ ...target, state: 'ready' as const }))])
        }
        return withPart(queues, { keep })
      },
    },
    expected: /got worker .*, which (is unknown|has ended)/,
  },
]

for (const mutant of MUTANTS) {
  test(`lines that ${mutant.name} are found out`, async () => {
    await assertReported(mutant, { mutateRequestQueues: mutant.break })
  })
}
