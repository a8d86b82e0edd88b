/** A server whose event loop is watched: no input of a client or worker may hold it. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/cleanup.ts'
import { rootUrl, type Server, type ServerOptions, startServer } from '../support/server.ts'

/**
 * The longest that one input may hold the loop, in ms of processor time. 50 hold on a quiet machine with the
 * garbage collector and a cold compiler; where the other tests share the processor and its caches, the same work
 * takes several times as long.
 */
const MOST_MS = Number(process.env.RUNYARD_TEST_MOST_HELD_MS ?? 200)
/** Documents that the server makes once, soon after its start or at the first request. */
const DOCUMENTS = ['/v2/openapi.json', '/v2/docs', '/graphql']

/** A server with a prober in its process. */
export interface ProbedServer extends Server {
  /**
   * The longest hold since the last call of {@link forgetHolds}, in ms of processor time; 0
   * where none was noteworthy.
   */
  worstHoldMs(): number
  /** Drops earlier holds: a server that starts compiles its code. */
  forgetHolds(): void
  /** Fails when the loop was held for longer than promised. */
  assertNeverHeld(): void
}

/** Starts a server with a prober; options as for {@link startServer}. */
export async function startProbedServer(options: ServerOptions = {}): Promise<ProbedServer> {
  const file = join(temporaryFolder(), 'holds')
  const preload = `--import=${rootUrl}/test/wire/support/record-holds.ts`
  const given = options.env?.NODE_OPTIONS ?? ''
  const env = { ...options.env, NODE_OPTIONS: `${given} ${preload}`.trim(), RUNYARD_TEST_HOLDS: file }
  const server = await startServer({ ...options, env })
  for (const path of DOCUMENTS) {
    const answer = await fetch(`${server.managementUrl}${path}`, { headers: { accept: 'text/html' } })
    await answer.body?.cancel()
  }
  let sinceMs = Date.now()
  const worstHoldMs = () => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const holds = lines.map(line => line.split(' ').map(Number)).filter(([at = 0]) => at >= sinceMs)
    return Math.max(0, ...holds.map(([, ms = 0]) => ms))
  }
  return Object.assign(server, {
    worstHoldMs,
    forgetHolds() {
      sinceMs = Date.now()
    },
    assertNeverHeld() {
      const worst = worstHoldMs()
      assert.ok(worst <= MOST_MS, `the event loop was held for ${worst} ms of processor time`)
    },
  })
}
