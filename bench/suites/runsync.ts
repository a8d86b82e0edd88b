/**
 * Duration of a job on a warm worker, beside a plain HTTP call to the same handler, the hops of a job with nothing in
 * them, and a job of BullMQ.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { bareHopsSide } from '../harness/bare-hops.ts'
import { ECHO_HANDLER, jobSides } from '../harness/job-sides.ts'
import { loadSuite } from '../harness/load-suite.ts'
import { createFolderEndpoint, requestTo, SMALL_JOB, startRunyard, workerFolder } from '../harness/runyard.ts'
import { type Bench, requestText, type Side } from '../harness/sides.ts'

/** Handler with a high concurrency, since RunPod's SDK polls only once a second while it is full. */
const PYTHON_HANDLER = `import runpod


async def handler(job):
    return {"length": len(job["input"]["prompt"])}


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: 500})
`

/**
 * See the head of this file. A Python with RunPod's SDK is named by RUNYARD_TEST_PYTHON; without
 * one that side is left out.
 */
export const runsync = loadSuite({
  name: 'runsync',
  title: 'A job with a warm worker: POST /runsync at a given rate',
  notes:
    'The ratio is that of the p50 of a plain HTTP call to the same handler. Job and result are on stable storage, with one flush for both here. The worker of BullMQ speaks to its database; no process between them outlives a restart of the server. The bare hops are a server, a relay and a worker in Node that store a job and its result by a flush each, and do nothing else.',
  // At a hundred a second a server needs a minute until its code is compiled.
  warmUp: { name: 'warm-up', connections: 32, perSecond: null, ms: 8_000 },
  loads: [
    { name: '100 a second', connections: 64, perSecond: 100 },
    { name: '1000 a second', connections: 256, perSecond: 1_000 },
    { name: '1 a second', connections: 1, perSecond: 1, ms: 10_000 },
  ],
  baseline: 'a plain HTTP call',
  compares: 'p50',
  async start(bench, wants) {
    const python = process.env.RUNYARD_TEST_PYTHON
    if (python === undefined) console.log('Python is left out: RUNYARD_TEST_PYTHON is not set')
    const sides: Side[] = [{ name: 'a plain HTTP call', ...(await plainSide(bench)) }]
    if (wants('bare hops')) sides.push({ name: 'bare hops', ...(await bareHopsSide(bench)) })
    if (wants('Runyard, TypeScript'))
      sides.push({ name: 'Runyard, TypeScript', ...(await jobSide(bench, workerFolder(bench, ECHO_HANDLER), '')) })
    if (wants('Runyard, Python') && python !== undefined)
      sides.push({ name: 'Runyard, Python', ...(await jobSide(bench, pythonFolder(bench), `${python} -u handler.py`)) })
    return [...sides, ...(await jobSides(bench, wants, { call: 'runsync', sides: ['BullMQ on Redis'] }))]
  },
})

async function jobSide(bench: Bench, folder: string, args: string): Promise<Omit<Side, 'name'>> {
  const server = await startRunyard(bench, null)
  const endpoint = await createFolderEndpoint(server, folder, SMALL_JOB, args)
  return { port: server.port, request: requestTo(server, `/v2/${endpoint}/runsync`, SMALL_JOB), pids: [server.pid] }
}

function pythonFolder(bench: Bench): string {
  const folder = join(bench.folder, 'python-worker')
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.py'), PYTHON_HANDLER)
  return folder
}

async function plainSide(bench: Bench): Promise<Omit<Side, 'name'>> {
  const { line, pid } = await bench.start(process.execPath, [import.meta.filename])
  const port = Number(line)
  return { port, request: requestText(port, '/', {}, SMALL_JOB), pids: [pid] }
}

/** Runs the plain server if this file is the program. */
if (import.meta.main) {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    const { input } = JSON.parse(text) as typeof SMALL_JOB
    const body = JSON.stringify({ output: { length: input.prompt.length } })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
  server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
}
