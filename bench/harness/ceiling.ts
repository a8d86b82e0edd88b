/** The HTTP stack of Runyard with nothing behind it: `POST /run` reads the body and returns an id. Prints its port. */
import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

const app = new Hono()
app.post('/run', async context => {
  await context.req.json()
  return context.json({ id: randomUUID(), status: 'IN_QUEUE' })
})
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(port))
process.once('SIGTERM', () => {
  server.close()
  process.exit()
})
