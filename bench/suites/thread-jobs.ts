/**
 * Cost of threads that read HTTP for jobs: processor time of a `run`, of the whole server and of its deciding thread
 * alone, with one and two of them, beside BullMQ's stack.
 */
import { jobSides } from '../harness/job-sides.ts'
import { connectionCases, loadSuite } from '../harness/load-suite.ts'
import { makeEndpoint, requestTo, SMALL_JOB, startRunyard } from '../harness/runyard.ts'
import type { Bench, Side } from '../harness/sides.ts'

/** See the head of this file. */
export const threadJobs = loadSuite({
  name: 'thread-jobs',
  title: 'Keep a job with threads that read HTTP: POST /run, 400 bytes of input, on stable storage before the response',
  notes: 'The deciding thread is measured without the threads of the garbage collector, which all threads share.',
  loads: connectionCases(1, 32),
  quick: ['32 connections'],
  baseline: 'BullMQ on Redis',
  compares: 'throughput',
  async start(bench, wants) {
    const sides = await jobSides(bench, wants, { call: 'run', sides: ['BullMQ on Redis'] })
    for (const threads of [1, 2]) sides.push(...(await threadSides(bench, threads)))
    return sides.filter(({ name }) => wants(name))
  },
})

async function threadSides(bench: Bench, threads: number): Promise<Side[]> {
  const server = await startRunyard(bench, null, { env: { RUNYARD_HTTP_THREADS: String(threads) } })
  const endpoint = await makeEndpoint(server, { workersMax: 0 })
  const request = requestTo(server, `/v2/${endpoint}/run`, SMALL_JOB)
  const side = { port: server.port, request, pids: [server.pid], isAlone: true }
  const name = threads === 1 ? 'Runyard, 1 thread' : `Runyard, ${threads} HTTP threads`
  return [
    { ...side, name },
    { ...side, name: `${name}, the deciding one`, isFirstThread: true },
  ]
}
