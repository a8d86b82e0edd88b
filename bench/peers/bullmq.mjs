/**
 * Fastify with a BullMQ queue on Redis: `POST /run` stores a job and returns its id, `POST /runsync` waits for its
 * result from bullmq-workers.mjs. Prints its port.
 */
import { Queue, QueueEvents } from 'bullmq'
import Fastify from 'fastify'

const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT) }
const queue = new Queue('bench', { connection })
const events = new QueueEvents('bench', { connection })
// Each request that waits for a job listens to both.
events.setMaxListeners(0)
queue.setMaxListeners(0)
await queue.waitUntilReady()
await events.waitUntilReady()
const server = Fastify()
server.post('/run', async request => {
  const { id } = await queue.add('job', request.body)
  return { id, status: 'IN_QUEUE' }
})
server.post('/runsync', async request => {
  const job = await queue.add('job', request.body)
  return { id: job.id, status: 'COMPLETED', output: await job.waitUntilFinished(events) }
})
await server.listen({ port: 0, host: '127.0.0.1' })
console.log(server.server.address().port)
