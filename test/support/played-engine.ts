/** A fake container engine whose responses and availability the test sets. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { systemClock } from '../../src/system/clock.ts'
import { patient } from './patience.ts'

/** Times of a minute and more are pauses between two looks; shorter ones are deadlines, too. */
const MINUTE_MS = 60_000

/**
 * Runs fifty times as fast, so that deadlines expire within a test, but gives a busy machine the time for an answer.
 */
export const fastClock = {
  ...systemClock,
  after: (ms: number, callback: () => void) => systemClock.after((ms < MINUTE_MS ? patient(ms) : ms) / 50, callback),
}

/** The response to a path, which is given without the version of the API. */
export type PlayedAnswer = (response: ServerResponse, request: IncomingMessage) => void

/** Its options. */
export interface Played {
  readonly version?: { readonly ApiVersion: string; readonly MinAPIVersion: string }
  /** The handlers by path; others get {}. May be changed at any time. */
  readonly answers: Map<string, PlayedAnswer>
}

const V41 = { ApiVersion: '1.41', MinAPIVersion: '1.12' }

/** Starts a fake engine that runs until the end of the test. */
export async function playEngine(context: TestContext, played: Played) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-engine-'))
  const socket = join(folder, 'engine.sock')
  /** The paths of all requests, with their version. */
  const paths: string[] = []
  /** The streams of events that were ever opened. */
  const events: ServerResponse[] = []
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] as string
    paths.push(path)
    const act = played.answers.get(path.replace(/^\/v1\.\d+/, ''))
    if (act !== undefined) return act(response, request)
    if (path === '/version') return response.end(JSON.stringify(played.version ?? V41))
    if (path.endsWith('/events')) {
      events.push(response)
      return response.flushHeaders()
    }
    response.end('{}')
  })
  const listen = () => new Promise<void>(resolve => server.listen(socket, resolve))
  const hangUp = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  await listen()
  context.after(async () => {
    await hangUp()
    rmSync(folder, { recursive: true })
  })
  return { folder, paths, events, listen, hangUp, url: `unix://${socket}` }
}
