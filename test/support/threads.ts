/** Threads that read HTTP in one thread, with messages as between real ones. */

import { RequestQueues, type RequestQueuesOptions } from '../../src/gateway/queue/request-queues.ts'
import type { Reservations } from '../../src/gateway/queue/reservation.ts'
import { DecidingSide } from '../../src/gateway/threads/deciding-side.ts'
import type {
  DecidingMessage,
  MessagesOfTerm,
  ThreadChannel,
  ThreadMessage,
} from '../../src/gateway/threads/messages.ts'
import { ThreadReservations } from '../../src/gateway/threads/thread-reservations.ts'
import { WaitingWords, WorkerSlots } from '../../src/gateway/threads/worker-slots.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Ports } from '../../src/ports/ports.ts'

/** Request queues with a number of threads that ask them. */
export function queuesOfThreads(
  ports: Ports,
  options: RequestQueuesOptions,
  threads: number,
): { readonly queues: RequestQueues; readonly reservations: readonly Reservations[] } {
  const prompt = { ...ports, clock: promptClock(ports.clock) }
  const ends = Array.from({ length: threads }, () => new ThreadEnd(prompt))
  const deciding = new DecidingSide(prompt, ends)
  const queues = new RequestQueues(ports, { ...options, sharing: deciding })
  deciding.begin({
    access: { authenticate: noAnswer, keyLimits: undefined as never, failedKeys: null as never, watch: () => () => {} },
    queues,
    findEndpoint: noAnswer,
    findTarget: noAnswer,
    domains: { all: new Map(), watch: () => () => {} },
    stopping: new AbortController().signal,
  })
  return { queues, reservations: ends.map(end => end.reservations!) }
}

/** The clock of a test, whose turns of the loop are real ones. */
function promptClock(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after(ms, callback) {
      if (ms > 0) return clock.after(ms, callback)
      const immediate = setImmediate(callback)
      return () => clearImmediate(immediate)
    },
  }
}

function noAnswer(): never {
  throw new Error('no request is admitted here')
}

/** A thread that only sends requests to workers. */
class ThreadEnd implements ThreadChannel {
  reservations: ThreadReservations | null = null
  readonly #ports
  #handle: (batch: MessagesOfTerm<ThreadMessage>) => void = () => {}

  constructor(ports: Ports) {
    this.#ports = ports
  }

  receive(handle: (batch: MessagesOfTerm<ThreadMessage>) => void): void {
    this.#handle = handle
  }

  send(batch: MessagesOfTerm<DecidingMessage>): void {
    const { term, messages } = structuredClone(batch)
    for (const message of messages) this.#take(term, message)
  }

  #take(term: number, message: DecidingMessage): void {
    if (message.kind === 'begin') {
      const { slots, waiting } = message.term
      const memory = { slots: new WorkerSlots(slots), waiting: new WaitingWords(waiting) }
      const post = (sent: ThreadMessage) => this.#handle(structuredClone({ term, messages: [sent] }))
      this.reservations = new ThreadReservations({ ...this.#ports, post, ...memory })
    } else if (message.kind === 'endpoint') this.reservations?.keep(message.id, message.shared)
    else if (message.kind === 'reserved') this.reservations?.reserved(message.id, message.reservation)
    else if (message.kind === 'refused') this.reservations?.refused(message.id, message.error)
  }
}
