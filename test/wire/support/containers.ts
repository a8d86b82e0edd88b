/** Endpoints whose workers are containers on the engine of the tests. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { engineUrl, workerImage } from '../../support/docker.ts'
import { ask, graphql } from './client.ts'
import { fixture, type Server, type ServerOptions, startServer } from './server.ts'

/** Starts a server that runs containers on this engine. */
export function startContainerServer(options: ServerOptions = {}, engine = engineUrl): Promise<Server> {
  return startServer({ ...options, args: ['--docker', engine, ...(options.args ?? [])] })
}

/** Program of an endpoint of containers; all fields have a default. */
export interface ContainerWish {
  readonly image?: string
  /** The command, instead of the image's own. */
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly settings?: Readonly<Record<string, unknown>>
  /** The id of a registry. */
  readonly registry?: string
}

let endpointCount = 0

/** Makes a template and an endpoint, and gives the endpoint's id. */
export async function containerEndpoint(server: Pick<Server, 'url' | 'apiKey'>, wish: ContainerWish): Promise<string> {
  endpointCount += 1
  const name = `container-${endpointCount}`
  const env = { RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true', ...wish.env }
  const { saveTemplate } = await graphql(server, SAVE_TEMPLATE, {
    input: {
      name,
      imageName: wish.image ?? workerImage,
      containerDiskInGb: 5,
      volumeInGb: 0,
      isServerless: true,
      dockerArgs: wish.words === undefined ? '' : JSON.stringify({ cmd: wish.words }),
      env: Object.entries(env).map(([key, value]) => ({ key, value })),
      ...(wish.registry === undefined ? {} : { containerRegistryAuthId: wish.registry }),
    },
  })
  const { saveEndpoint } = await graphql(server, SAVE_ENDPOINT, {
    input: { name, templateId: saveTemplate.id, instanceIds: ['cpu3g-2-8'], workersMax: 1, ...wish.settings },
  })
  return saveEndpoint.id
}

const SAVE_TEMPLATE = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
const SAVE_ENDPOINT = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'

/** Makes a network volume with the files of a fixture worker in it. */
export async function volumeWith(server: Server, name: string): Promise<{ id: string; folder: string }> {
  const { json, text } = await ask(server, '/v2/network-volumes', { body: { name, size: 10, dataCenter: 'EU-RO-1' } })
  if (json?.id === undefined) throw new Error(text)
  const folder = join(server.dataDir, 'volumes', json.id)
  cpSync(fixture(name), folder, { recursive: true })
  return { id: json.id, folder }
}

/** Explanation of the wait of an endpoint's jobs. */
export async function explanationOf(server: Server, endpoint: string) {
  return (await ask(server, `/v2/${endpoint}/explain`)).json as {
    readonly cause: string
    readonly summary: string
    readonly action: string | null
    readonly evidence: readonly string[]
  }
}
