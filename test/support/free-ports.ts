import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Ports on which nothing listens, each another one. */
export async function freePorts(count: number, host = '127.0.0.1'): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, host))
  await Promise.all(servers.map(server => once(server, 'listening')))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => once(server.close(), 'close')))
  return ports
}

/** A port on which nothing listens. */
export async function freePort(host?: string): Promise<number> {
  const [port] = await freePorts(1, host)
  return port!
}
