/** The calls of a container engine that tests make themselves, beside those of the driver. */
import { engineAddresses } from '../../src/drivers/docker/engine/engine-address.ts'
import { EngineClient } from '../../src/drivers/docker/engine/engine-client.ts'

type Query = Readonly<Record<string, unknown>>
type Method = 'GET' | 'POST' | 'DELETE'

type Texts = Readonly<Record<string, string>>

/** A container in the list of an engine. */
export interface ListedContainer {
  readonly Id: string
  readonly Image: string
  readonly State: string
  readonly Labels: Texts
  readonly HostConfig: { readonly NetworkMode: string }
}

/** An image, as an engine describes it. */
export interface EngineImage {
  readonly Id: string
  readonly RepoTags: readonly string[] | null
  readonly RepoDigests: readonly string[] | null
  readonly Config: { readonly Env: readonly string[]; readonly Labels: Texts }
}

/** A network in the list of an engine. */
export interface ListedNetwork {
  readonly Id: string
  readonly Name: string
  readonly Options: Texts
  readonly Labels: Texts
}

/** A container, as an engine describes it. */
export interface TestedContainer {
  readonly Id: string
  readonly Image: string
  readonly State: { readonly ExitCode: number; readonly Paused: boolean; readonly Pid: number }
  readonly Config: {
    readonly Env: readonly string[]
    readonly Cmd: readonly string[]
    readonly Hostname: string
    readonly Labels: Texts
    readonly ExposedPorts?: Readonly<Record<string, object>>
  }
  readonly HostConfig: {
    readonly StorageOpt?: Texts | null
    readonly RestartPolicy: { readonly Name: string }
    readonly [field: string]: unknown
  }
  readonly NetworkSettings: {
    readonly Ports: Readonly<Record<string, readonly { readonly HostIp: string; readonly HostPort: string }[] | null>>
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>>
  }
}

/** One container of an engine. */
export class EngineContainer {
  readonly #client: EngineClient
  readonly #id: string

  constructor(client: EngineClient, id: string) {
    this.#client = client
    this.#id = id
  }

  inspect = () => this.#call<TestedContainer>('GET', '/json')
  start = () => this.#call('POST', '/start')
  stop = (query: Query = {}) => this.#call('POST', '/stop', query)
  pause = () => this.#call('POST', '/pause')
  update = (body: object) => this.#call('POST', '/update', {}, body)
  wait = () => this.#call('POST', '/wait')
  kill = (query: Query = {}) => this.#call('POST', '/kill', query)
  remove = (query: Query = {}) => this.#call('DELETE', '', query)

  /** Runs a command in the container, with a terminal. @returns its output */
  async exec(command: object): Promise<string> {
    const { Id } = await this.#call<{ Id: string }>('POST', '/exec', {}, { ...command, Tty: true })
    const body = { Tty: true, Detach: false }
    const output: Buffer[] = []
    for await (const piece of await this.#client.stream({ method: 'POST', path: `/exec/${Id}/start`, body }))
      output.push(piece)
    return Buffer.concat(output).toString()
  }

  #call<Result>(method: Method, path: string, query: Query = {}, body?: object): Promise<Result> {
    return this.#client.call({ method, path: `/containers/${this.#id}${path}`, query, body })
  }
}

/** An engine at an address. */
export class TestEngine {
  readonly client: EngineClient

  constructor(url: string) {
    this.client = new EngineClient(engineAddresses(url, {})[0]!)
  }

  info = () => this.#get<{ readonly DockerRootDir: string }>('/info')
  listContainers = (query: Query = {}) => this.#get<ListedContainer[]>('/containers/json', query)
  listImages = (query: Query = {}) => this.#get<EngineImage[]>('/images/json', query)
  listNetworks = async (query: Query = {}) => this.#get<ListedNetwork[]>('/networks', query)
  getContainer = (id: string) => new EngineContainer(this.client, id)

  async createContainer(body: object): Promise<EngineContainer> {
    const { Id } = await this.client.call<{ Id: string }>({ method: 'POST', path: '/containers/create', body })
    return this.getContainer(Id)
  }

  getImage(name: string) {
    const path = `/images/${name}`
    return {
      inspect: () => this.#get<EngineImage>(`${path}/json`),
      tag: (query: Query) => this.client.call({ method: 'POST', path: `${path}/tag`, query }),
      remove: (query: Query = {}) => this.client.call({ method: 'DELETE', path, query }),
    }
  }

  getNetwork(name: string) {
    const path = `/networks/${name}`
    return { remove: () => this.client.call({ method: 'DELETE', path }) }
  }

  /** Downloads an image. */
  async pull(image: string, auth: Readonly<Record<string, string>>): Promise<void> {
    const [, fromImage, tag] = /^(.*):([^:/]+)$/.exec(image)!
    await this.client.call({ method: 'POST', path: '/images/create', query: { fromImage, tag }, auth })
  }

  #get<Result>(path: string, query: Query = {}): Promise<Result> {
    return this.client.call({ method: 'GET', path, query })
  }
}
