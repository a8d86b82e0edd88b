// Answers /ping once it is ready, and everything else with what it was asked.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

let ready = false

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://server')
  const json = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  // 204 means that it is still loading, 200 that requests may come.
  if (url.pathname === '/ping') return ready ? json(200, { status: 'healthy' }) : response.writeHead(204).end()
  if (url.pathname === '/hello') return json(200, { message: `Hello, ${url.searchParams.get('name') ?? 'world'}!` })
  if (url.pathname === '/echo' && request.method === 'POST') return json(200, { echo: await text(request) })
  return json(404, { error: 'there is /hello?name=... and POST /echo' })
})

// The platform stops a worker with SIGTERM; what is being answered is finished first.
process.on('SIGTERM', () => server.close(() => process.exit(0)))

// In a container on all addresses, as its Dockerfile says; in a process on loopback, so that nobody gets around the endpoint.
server.listen(Number(process.env.PORT ?? 8000), process.env.HOST ?? '127.0.0.1', () => {
  // A real server loads its model here.
  ready = true
})
