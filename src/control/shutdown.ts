import type { WorkerId } from '../core/ids.ts'
import type { Ports } from '../ports/ports.ts'
import type { LoadBalancer } from '../services/balancing/load-balancer.ts'
import { LongPoll } from '../services/long-poll.ts'
import type { Fleet } from '../services/workers/fleet.ts'

/** Longest wait for the exits of killed workers. */
const KILL_MS = 5_000
/** Interval between checks of open requests. */
const LOOK_MS = 50
/** Time for workers that serve requests to close their connections. */
const GOODBYE_MS = 5_000

/**
 * Drains all workers and stops each when it holds no job or request, until no worker is left, the time is over or
 * `hurry` aborts. The reaper has to run at the same time, since it observes exits.
 */
export async function drainAll(
  ports: Ports,
  { fleet, balancing }: { readonly fleet: Fleet; readonly balancing: LoadBalancer },
  forMs: number,
  hurry: AbortSignal,
): Promise<void> {
  const { store, clock } = ports
  const longPoll = new LongPoll(ports)
  for (const worker of await store.workers.alive()) await fleet.drain(worker.id, 'server_stopped')
  const stopIdle = async () => {
    const alive = await store.workers.alive()
    for (const id of new Set(alive.map(worker => worker.endpointId))) {
      const snapshot = await balancing.refresh(id)
      const idle = snapshot?.workers.filter(worker => worker.state === 'DRAINING' && worker.held === 0) ?? []
      for (const worker of idle) await fleet.stop(worker.id, 'server_stopped')
    }
    return alive.length === 0 ? true : null
  }
  const deadlineMs = clock.now() + forMs
  while ((await stopIdle()) === null && clock.now() < deadlineMs && !hurry.aborted) {
    await longPoll.until({ topics: ['fleet'], forMs: 100, signals: [hurry] }, async () => null)
  }
}

/**
 * Kills the workers that are left and gives their jobs back; the attempts do not count. Workers that serve requests
 * get a signal to end before, so that they can close their sockets properly, unless `hurry` aborts. A worker whose
 * exit is not observed in time is left to the next start.
 */
export async function killAll(ports: Ports, fleet: Fleet, hurry: AbortSignal): Promise<void> {
  const { store, driver } = ports
  const longPoll = new LongPoll(ports)
  const hasEnded = (id: WorkerId, forMs: number, signals: readonly AbortSignal[]) => {
    const read = async () => ((await driver.observe(id)).state === 'exited' ? true : null)
    return longPoll.until({ topics: ['fleet'], forMs, signals }, read)
  }
  const alive = await store.workers.alive()
  const serving = hurry.aborted ? [] : alive.filter(({ serves }) => serves !== null)
  // Workers that are stopping got the signal already.
  for (const { id, state } of serving) if (state !== 'STOPPING') await fleet.stop(id, 'server_stopped')
  await Promise.all(serving.map(({ id }) => hasEnded(id, GOODBYE_MS, [hurry])))
  for (const { id } of alive) await fleet.kill(id, 'server_stopped')
  for (const { id } of alive) {
    if ((await hasEnded(id, KILL_MS, [])) === null) continue
    const exit = { code: null, signal: 'SIGKILL', cause: { kind: 'server_stopped' } } as const
    await fleet.recordExit(id, exit, 'released')
  }
}

/** Waits until no request passes to workers, the time is over or `hurry` aborts. */
export async function untilPassed(
  { clock }: Ports,
  isBusy: () => boolean,
  forMs: number,
  hurry: AbortSignal,
): Promise<void> {
  const deadlineMs = clock.monotonic() + forMs
  while (isBusy() && clock.monotonic() < deadlineMs && !hurry.aborted) {
    await new Promise<void>(resolve => void clock.after(LOOK_MS, resolve))
  }
}
