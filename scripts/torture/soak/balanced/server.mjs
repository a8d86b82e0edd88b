/**
 * A load-balanced worker of the soak: returns the body of the request after the number of milliseconds in the query.
 */
import { createServer } from 'node:http'

const { HOST = '127.0.0.1', PORT } = process.env

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://worker')
  if (url.pathname === '/ping') return response.end('ok')
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => setTimeout(() => response.end(Buffer.concat(parts)), Number(url.searchParams.get('ms') ?? 0)))
})
server.listen(Number(PORT), HOST)
process.on('SIGTERM', () => server.close(() => process.exit(0)))
