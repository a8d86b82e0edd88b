import { performance } from 'node:perf_hooks'
import type { Fetch, RequestEnv } from '../api/surface.ts'

/** Workers and clients come back in the first seconds of a start. */
const DELAY_MS = 60_000
/** Time after which a busy server is looked at again. */
const BUSY_MS = 60_000
/** Pause between two documents, in which the server shows whether it is still quiet. */
const PAUSE_MS = 1_000
/** Share of the time in which the event loop of a quiet server works. */
const QUIET_SHARE = 0.1
const PATHS = ['/v2/openapi.json', '/v2/docs', '/graphql']
const ENV: RequestEnv = { delivery: { onSettled() {} }, requestId: 'document' }

/** The time and the work of this process. */
export interface ProcessWork {
  /** Calls back after this time in milliseconds, unless the process ends before. */
  readonly after: (ms: number, callback: () => void) => void
  /** Share of the time since the last call in which the event loop worked, from 0 to 1. */
  readonly busyShare: () => number
}

/**
 * Makes the public documents before the first request for them, one after another while the server is quiet: each
 * holds up the event loop for about 0.1 s, once. On a server that is never quiet the first request makes them.
 */
export function prepareDocuments(surface: Fetch, work: ProcessWork = thisProcess()): void {
  const paths = [...PATHS]
  const look = () => {
    if (work.busyShare() > QUIET_SHARE) return work.after(BUSY_MS, look)
    const path = paths.shift()
    if (path === undefined) return
    void make(surface, path).then(() => {
      // Its own work does not count.
      work.busyShare()
      work.after(PAUSE_MS, look)
    })
  }
  work.after(DELAY_MS, look)
}

async function make(surface: Fetch, path: string): Promise<void> {
  const answer = await surface(new Request(`http://localhost${path}`, { headers: { accept: 'text/html' } }), ENV)
  await answer.body?.cancel()
}

function thisProcess(): ProcessWork {
  let latest = performance.eventLoopUtilization()
  return {
    after: (ms, callback) => void setTimeout(callback, ms).unref(),
    busyShare: () => {
      const current = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(current, latest)
      latest = current
      return utilization
    },
  }
}
