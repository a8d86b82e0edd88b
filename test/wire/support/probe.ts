/** Containers that the test starts itself, to see what can be reached from inside of one. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { TestEngine } from '../../support/engine.ts'
import { atEnd } from './cleanup.ts'
import { fixture, startServer } from './server.ts'
import { until } from './until.ts'

const address = process.env.RUNYARD_TEST_DOCKER ?? ''
const image = process.env.RUNYARD_TEST_DOCKER_IMAGE ?? ''

/** Reason why tests with containers cannot run; false if they can. */
export const probeSkip = missing()

/** The engine, and how a server that is started finds it. */
export const engine = new TestEngine(address === '' ? 'unix:///nowhere.sock' : address)
export const engineEnv = { DOCKER_HOST: address }
export const testImage = image

function missing(): string | false {
  if (address !== '' && image !== '') return false
  const problem = 'RUNYARD_TEST_DOCKER and RUNYARD_TEST_DOCKER_IMAGE name no engine with an image'
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

/** One attempt from inside of a container. Its result is a status with its body, or `no connection`. */
export interface Attempt {
  readonly method?: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const SCRIPT = `
import json, os, sys, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def attempt(a):
    body = a.get("body")
    request = urllib.request.Request(a["url"], method=a.get("method", "GET"), headers=a.get("headers", {}), data=None if body is None else body.encode())
    try:
        with opener.open(request, timeout=8) as answer:
            return f"{answer.status} {answer.read(300).decode(errors='replace')}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read(300).decode(errors='replace')}"
    except Exception as error:
        return "no connection"
with ThreadPoolExecutor(16) as pool:
    print(json.dumps(list(pool.map(attempt, json.loads(os.environ["ATTEMPTS"])))))
`

/** Program of a container; by default a shell command that waits, in the test's image. */
export interface ContainerWish {
  readonly image?: string
  /** Null for the command of the image. */
  readonly command?: readonly string[] | null
  readonly env?: Readonly<Record<string, string>>
}

/** A container in a network; it is removed with the test file. */
export async function openContainer(network: string, wish: ContainerWish = {}) {
  const { image = testImage, command = ['sleep', '600'], env = {} } = wish
  const container = await engine.createContainer({
    Image: image,
    ...(command === null ? {} : { Cmd: [...command] }),
    Env: envList(env),
    HostConfig: { NetworkMode: network, Init: true },
    Labels: { 'runyard.test': 'probe' },
  })
  atEnd(() => container.remove({ force: true }).catch(() => {}))
  await container.start()
  const { NetworkSettings } = await container.inspect()
  const run = async (argv: readonly string[], variables: Readonly<Record<string, string>> = {}) => {
    const Env = envList(variables)
    return (await container.exec({ Cmd: [...argv], Env, AttachStdout: true, AttachStderr: true })).trim()
  }
  return {
    address: NetworkSettings.Networks[network]?.IPAddress ?? '',
    run,
    /** Makes the attempts at once; the answers come in their order. */
    attempt: async (attempts: readonly Attempt[]): Promise<string[]> => {
      const output = await run(['python3', '-c', SCRIPT], { ATTEMPTS: JSON.stringify(attempts) })
      try {
        return JSON.parse(output) as string[]
      } catch {
        throw new Error(`the probe failed: ${output}`)
      }
    },
    /** Tells it to end and waits until it has. */
    stop: () => container.stop({ t: 5 }),
    exitCode: async () => (await container.inspect()).State.ExitCode,
    remove: () => container.remove({ force: true }),
  }
}

function envList(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`)
}

/**
 * A server that opens its address for containers at once, like one that had containers before.
 * @param host address on which it listens; loopback unless given
 */
export async function openedServer(dataDir: string, host = '127.0.0.1', extraArgs: readonly string[] = []) {
  const file = `${dataDir}/container-address.json`
  if (!existsSync(file)) {
    removeNetworksOf(dataDir)
    writeFileSync(file, '{"url":"http://192.0.2.1:1","listenOn":"192.0.2.1","port":0,"subnets":[],"gateway":null}')
  }
  const server = await startServer({
    dataDir,
    args: ['--host', host, '--process-root', fixture('.'), ...extraArgs],
    env: engineEnv,
  })
  const opened = () => server.events('containers.reachable').at(-1)
  const address = await until('the address for containers', opened)
  return { server, url: String(address.url), network: String(address.network) }
}

/** Takes the networks of an installation away that its server could not, because it was killed. */
function removeNetworksOf(dataDir: string): void {
  atEnd(async () => {
    const installation = readFileSync(`${dataDir}/installation`, 'utf8').trim()
    const networks = await engine.listNetworks({ filters: { label: [`runyard.installation=${installation}`] } })
    for (const { Id } of networks) await engine.getNetwork(Id).remove()
  })
}
