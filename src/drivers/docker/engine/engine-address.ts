/** Possible addresses of a container engine: that of a setting, or the usual ones of Docker and Podman. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { HostEnvironment } from '../../base/host-environment.ts'

/** One place of an engine. */
export interface EngineAddress {
  /** As people write it: `unix:///var/run/docker.sock`. */
  readonly text: string
  /** The file of its socket; null where it is called over the network. */
  readonly socket: string | null
  /** The place of each connection, as options of a request. */
  readonly connection: { readonly socketPath: string } | { readonly host: string; readonly port: number }
  /** The certificates of connections with TLS, empty for those of the system; null for connections without TLS. */
  readonly tls: Certificates | null
}

interface Certificates {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

/**
 * The places to try, in order.
 * @param setting `auto` or an address
 */
export function engineAddresses(setting: string, env: HostEnvironment): readonly EngineAddress[] {
  if (setting !== 'auto') return [addressFromText(setting, env)].filter(address => address !== null)
  const dockerHost = env.DOCKER_HOST
  if (dockerHost !== undefined && dockerHost !== '') {
    const address = addressFromText(dockerHost, env)
    return address === null ? [] : [address]
  }
  const home = env.HOME || homedir()
  const runtime = env.XDG_RUNTIME_DIR
  const sockets = [
    '/var/run/docker.sock',
    ...(runtime === undefined ? [] : [join(runtime, 'docker.sock')]),
    join(home, '.docker/run/docker.sock'),
    join(home, '.docker/desktop/docker.sock'),
    ...(runtime === undefined ? [] : [join(runtime, 'podman/podman.sock')]),
    '/run/podman/podman.sock',
  ]
  return sockets.map(socket => unixAddress(socket))
}

function unixAddress(socket: string): EngineAddress {
  return { text: `unix://${socket}`, socket, connection: { socketPath: socket }, tls: null }
}

function addressFromText(text: string, env: HostEnvironment): EngineAddress | null {
  const socket = /^(?:unix|npipe):\/\/(\/.+)$/.exec(text)?.[1]
  if (socket !== undefined) return unixAddress(socket)
  const parts = /^(tcp|https?):\/\/([^/:?#]+|\[[0-9a-fA-F:]+\])(?::(\d+))?\/?$/.exec(text)
  if (parts === null) return null
  const [, scheme, host = '', givenPort] = parts
  const secure = scheme === 'https' || (scheme === 'tcp' && (env.DOCKER_TLS_VERIFY ?? '') !== '')
  const port = Number(givenPort ?? (secure ? 2376 : 2375))
  const connection = { host: host.replace(/^\[|\]$/g, ''), port }
  return { text, socket: null, connection, tls: secure ? certificates(env) : null }
}

function certificates(env: HostEnvironment): Certificates {
  const folder = env.DOCKER_CERT_PATH
  if (folder === undefined || folder === '') return {}
  const read = (name: string) => readFileSync(join(folder, name))
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
}
