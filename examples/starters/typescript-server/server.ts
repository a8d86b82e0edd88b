import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  if (url.pathname === '/ping') {
    response.end()
    return
  }
  const message = `Hello, ${url.searchParams.get('name') ?? 'you'}!`
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ message }))
})

// The platform ends a worker with SIGTERM; responses that have begun are finished first.
process.on('SIGTERM', () => server.close())

// In a process only Runyard reaches it; in a container it listens at all addresses, as the Dockerfile says.
server.listen(Number(process.env.PORT ?? 8000), process.env.HOST ?? '127.0.0.1')
