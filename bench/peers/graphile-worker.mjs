/** Fastify with graphile-worker on PostgreSQL: `POST /run` keeps a job and returns its id. Prints its port. */
import Fastify from 'fastify'
import { makeWorkerUtils } from 'graphile-worker'

const utils = await makeWorkerUtils({ connectionString: process.env.DATABASE_URL, maxPoolSize: 20 })
await utils.migrate()
const server = Fastify()
server.post('/run', async request => {
  const { id } = await utils.addJob('job', request.body)
  return { id, status: 'IN_QUEUE' }
})
await server.listen({ port: 0, host: '127.0.0.1' })
console.log(server.server.address().port)
