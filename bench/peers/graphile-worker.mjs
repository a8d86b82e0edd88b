/**
 * Fastify with graphile-worker on PostgreSQL: `POST /run` stores a job and returns its id, `POST /runsync` waits for
 * its result from graphile-worker-workers.mjs. Prints its port.
 */
import Fastify from 'fastify'
import { makeWorkerUtils } from 'graphile-worker'
import pg from 'pg'

const connectionString = process.env.DATABASE_URL
const utils = await makeWorkerUtils({ connectionString, maxPoolSize: 20 })
await utils.migrate()
const client = new pg.Client({ connectionString })
await client.connect()
await client.query('CREATE TABLE results (job_id TEXT PRIMARY KEY, output JSON NOT NULL); LISTEN results')
const waiting = new Map()
client.on('notification', ({ payload }) => {
  const [id] = payload.split(' ', 1)
  waiting.get(id)?.(JSON.parse(payload.slice(id.length)))
})
const server = Fastify()
server.post('/run', async request => {
  const { id } = await utils.addJob('job', request.body)
  return { id, status: 'IN_QUEUE' }
})
let requestCount = 0
server.post('/runsync', async request => {
  requestCount += 1
  const id = String(requestCount)
  const { promise, resolve } = Promise.withResolvers()
  waiting.set(id, resolve)
  await utils.addJob('job', { ...request.body, id })
  const output = await promise
  waiting.delete(id)
  return { id, status: 'COMPLETED', output }
})
await server.listen({ port: 0, host: '127.0.0.1' })
console.log(server.server.address().port)
