/** The baseline of bench/jobs.ts: the same calls on a bare node:http server that stores jobs only in memory. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const jobs = new Map<string, { input: unknown; output: unknown; status: string }>()
const line: string[] = []
let jobCount = 0

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (part: string) => {
    text += part
  })
  request.on('end', () => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(respond(request.url ?? '', text)))
  })
})

function respond(path: string, text: string): object {
  const [, , , call, , jobId] = path.split('?')[0]!.split('/')
  if (call === 'run') {
    jobCount += 1
    const id = `${jobCount}-u1`
    jobs.set(id, { input: (JSON.parse(text) as { input: unknown }).input, output: null, status: 'IN_QUEUE' })
    line.push(id)
    return { id, status: 'IN_QUEUE' }
  }
  if (call === 'job-take') {
    const id = line.shift() ?? ''
    return { id, input: jobs.get(id)?.input }
  }
  const job = jobs.get(call === 'job-done' ? (jobId ?? '') : path.split('/').at(-1)!)
  if (job === undefined) return { error: 'job not found' }
  if (call === 'job-done') Object.assign(job, JSON.parse(text) as object, { status: 'COMPLETED' })
  return call === 'job-done' ? {} : { status: job.status, output: job.output }
}

server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
