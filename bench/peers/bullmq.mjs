/** Fastify with a BullMQ queue on Redis: `POST /run` keeps a job and returns its id. Prints its port. */
import { Queue } from 'bullmq'
import Fastify from 'fastify'

const queue = new Queue('bench', { connection: { host: '127.0.0.1', port: Number(process.env.REDIS_PORT) } })
await queue.waitUntilReady()
const server = Fastify()
server.post('/run', async request => {
  const { id } = await queue.add('job', request.body)
  return { id, status: 'IN_QUEUE' }
})
await server.listen({ port: 0, host: '127.0.0.1' })
console.log(server.server.address().port)
