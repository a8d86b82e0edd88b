/** Calls a listener of this machine from inside of a container, in the network that workers have. */
import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toAppError } from '../core/errors.ts'
import type { ProbeOutcome } from '../core/observing/diagnosis.ts'
import { type ContainerReach, containerReach } from '../core/workers/container-reach.ts'
import type { EngineConnection } from '../drivers/docker/engine/connection.ts'
import type { EngineClient } from '../drivers/docker/engine/engine-client.ts'
import { BridgeNetwork, listNetworks } from '../drivers/docker/network.ts'
import type { WorkerNetwork } from '../ports/container-network.ts'

/** Options of the probe. */
export interface ProbeOptions {
  /** Null for an installation that was never started. */
  readonly installation: string | null
  /** The configured network; null for the installation's own. */
  readonly network: string | null
  /** The configured address; null to find one. */
  readonly address: string | null
  /** The image to run; null for small ones that are present. */
  readonly image: string | null
}

/** The result of the probe. */
export interface ProbeResult {
  readonly network: WorkerNetwork | null
  /** The reason for a missing network; null when there is one. */
  readonly problem: string | null
  readonly reach: ContainerReach | null
  readonly outcome: ProbeOutcome
}

const WAIT_MS = 20_000
/** Limit of images to try: one may lack a shell, or a program that can call. */
const MAX_IMAGES = 5
const NO_TOOL = 9

/** Calls with the first program that the image has. The last one prints the head of the response too. */
const SCRIPT = `
u="http://$PROBE_HOST:$PROBE_PORT/"
if command -v wget >/dev/null 2>&1; then exec wget -q -T 5 -O - "$u"; fi
if command -v curl >/dev/null 2>&1; then exec curl -fsS -m 5 "$u"; fi
if command -v python3 >/dev/null 2>&1; then exec python3 -c "import urllib.request as r;print(r.build_opener(r.ProxyHandler({})).open('$u',timeout=5).read().decode())"; fi
if command -v node >/dev/null 2>&1; then exec node -e "fetch('$u').then(a=>a.text()).then(console.log)"; fi
if command -v bash >/dev/null 2>&1; then exec bash -c "exec 3<>/dev/tcp/$PROBE_HOST/$PROBE_PORT && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3"; fi
exit ${NO_TOOL}
`

/** Runs the probe, and removes its files and containers. */
export async function probeReach({ engine, local }: EngineConnection, options: ProbeOptions): Promise<ProbeResult> {
  const installation = options.installation ?? `doctor${randomBytes(3).toString('hex')}`
  const networks = new BridgeNetwork({ engine, local, installation, given: options.network })
  const untested = (reason: string): ProbeOutcome => ({ what: 'untested', why: reason })
  let isNew = false
  try {
    isNew = options.network === null && (await listNetworks(engine, installation)).length === 0
    const network = await networks.ensure(null)
    const reach = containerReach(network, options.address)
    const outcome =
      reach.how === 'none' ? untested('there is no way to try') : await probe(engine, network, reach, options.image)
    return { network, problem: null, reach, outcome }
  } catch (thrown) {
    return { network: null, problem: toAppError(thrown).message, reach: null, outcome: untested('there is no network') }
  } finally {
    if (isNew) await networks.remove().catch(() => false)
  }
}

async function probe(
  engine: EngineClient,
  network: WorkerNetwork,
  reach: Exclude<ContainerReach, { how: 'none' }>,
  image: string | null,
): Promise<ProbeOutcome> {
  const images = image === null ? await smallImages(engine) : [image]
  if (images.length === 0)
    return { what: 'untested', why: 'the engine has no image; pull a small one, such as busybox' }
  const word = randomBytes(12).toString('hex')
  const server = await serveWord(word, reach.listenOn)
  try {
    const env = { PROBE_HOST: reach.host, PROBE_PORT: String((server.address() as AddressInfo).port), no_proxy: '*' }
    for (const candidate of images) {
      const { code, output } = await run(engine, candidate, network.name, [...reach.extraHosts], env)
      if (output.includes(word)) return { what: 'reached', image: candidate }
      // Without a shell it does not even start, and a crashed program proves nothing about the network.
      if (code === null || code === NO_TOOL || code >= 126) continue
      return { what: 'unreached', image: candidate, error: output.trim().split('\n').at(-1)?.slice(0, 200) ?? '' }
    }
    return {
      what: 'untested',
      why: `no image that was tried has a shell with wget, curl, python3 or node; name one with --image`,
    }
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

function serveWord(word: string, host: string): Promise<Server> {
  const server = createServer((_, response) => response.end(`${word}\n`))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port: 0 }, () => resolve(server))
  })
}

async function smallImages(engine: EngineClient): Promise<string[]> {
  const images = await engine.call<readonly ListedImage[]>({ method: 'GET', path: '/images/json' })
  const named = images.flatMap(({ RepoTags, Size }) => (RepoTags ?? []).slice(0, 1).map(name => ({ name, Size })))
  const usable = named.filter(({ name }) => name !== '<none>:<none>').sort((a, b) => a.Size - b.Size)
  return usable.slice(0, MAX_IMAGES).map(({ name }) => name)
}

interface ListedImage {
  readonly RepoTags?: readonly string[] | null
  readonly Size: number
}

/** Code null for an image that cannot run the script. */
async function run(
  engine: EngineClient,
  image: string,
  network: string,
  extraHosts: string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; output: string }> {
  let container: string | null = null
  try {
    const body = {
      Image: image,
      Entrypoint: ['/bin/sh', '-c', SCRIPT],
      Cmd: [],
      Tty: true,
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      HostConfig: {
        NetworkMode: network,
        ExtraHosts: extraHosts,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
      },
      Labels: { 'runyard.doctor': 'probe' },
    }
    const { Id } = await engine.call<{ Id: string }>({ method: 'POST', path: '/containers/create', body })
    container = `/containers/${Id}`
    await engine.call({ method: 'POST', path: `${container}/start` })
    const { promise: late, resolve } = Promise.withResolvers<{ StatusCode: number }>()
    const timer = setTimeout(() => resolve({ StatusCode: 124 }), WAIT_MS)
    const exit = engine.call<{ StatusCode: number }>({ method: 'POST', path: `${container}/wait` })
    const ended = await Promise.race([exit, late])
    clearTimeout(timer)
    const query = { stdout: true, stderr: true }
    const output = await engine.call<unknown>({ method: 'GET', path: `${container}/logs`, query })
    return { code: ended.StatusCode, output: String(output) }
  } catch {
    return { code: null, output: '' }
  } finally {
    if (container !== null)
      await engine.call({ method: 'DELETE', path: container, query: { force: true } }).catch(() => {})
  }
}
