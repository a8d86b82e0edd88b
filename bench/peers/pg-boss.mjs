/** Fastify with pg-boss on PostgreSQL: `POST /run` stores a job and returns its id. Prints its port. */
import Fastify from 'fastify'
import { PgBoss } from 'pg-boss'

const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: 20 })
boss.on('error', error => console.error(error))
await boss.start()
await boss.createQueue('bench')
const server = Fastify()
server.post('/run', async request => ({ id: await boss.send('bench', request.body), status: 'IN_QUEUE' }))
await server.listen({ port: 0, host: '127.0.0.1' })
console.log(server.server.address().port)
