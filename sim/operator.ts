import type { EndpointId } from '../src/core/ids.ts'
import { API_KEY } from './app-run.ts'
import { Life } from './life.ts'
import type { SimMachine } from './machine.ts'
import type { Network } from './network.ts'
import type { SeededRandom } from './random.ts'
import { NEED_VARIABLE } from './worker-memory.ts'
import type { World } from './world.ts'

interface ManagedEndpoint {
  readonly id: EndpointId
  readonly type: 'QB' | 'LB'
  readonly name: string
  readonly templateId: string
  readonly workersMin: number
  readonly workersMax: number
  /** Its environment variables, which all changes keep. */
  readonly env: readonly { readonly key: string; readonly value: string }[]
  /** The input of its mutation. */
  readonly input: object
}

const SAVE_TEMPLATE = 'mutation($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
const DELETE_ENDPOINT = 'mutation($input: String!) { deleteEndpoint(id: $input) }'
const SAVE_ENDPOINT = 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id version workersMax } }'

/** The owner of the endpoints: creates them through GraphQL, and changes them while they serve. */
export class Operator {
  #endpoints: readonly ManagedEndpoint[] = []
  readonly #world: World
  readonly #network: Network
  readonly #machine: SimMachine
  readonly #random: SeededRandom
  readonly #flashBoot: SeededRandom
  readonly #canaries: SeededRandom
  readonly #shares: SeededRandom
  readonly #priorities: SeededRandom
  readonly #life: Life
  #changes = 0
  /** Endpoints that are being changed. */
  readonly #busy = new Set<EndpointId>()
  readonly #deleting: (endpoint: EndpointId) => void

  /** @param deleting called before an endpoint is deleted */
  constructor(world: World, network: Network, machine: SimMachine, deleting: (endpoint: EndpointId) => void) {
    this.#deleting = deleting
    this.#world = world
    this.#network = network
    this.#machine = machine
    this.#random = world.random('operator')
    this.#flashBoot = world.random('operator of frozen workers')
    this.#canaries = world.random('operator of canaries')
    this.#shares = world.random('operator of shares')
    this.#priorities = world.random('operator of priorities')
    this.#life = new Life(world.clock)
  }

  /** The queue endpoints. */
  get queues(): readonly EndpointId[] {
    return this.#of('QB')
  }

  /** The load-balancing endpoints. */
  get balanced(): readonly EndpointId[] {
    return this.#of('LB')
  }

  #of(type: ManagedEndpoint['type']): EndpointId[] {
    return this.#endpoints.flatMap(endpoint => (endpoint.type === type ? [endpoint.id] : []))
  }

  /** Creates queue endpoints of different kinds. */
  async setUp(count: number): Promise<void> {
    const random = this.#random
    for (let number = 1; number <= count; number += 1) {
      const name = `endpoint ${number}`
      const template = await this.#mutate('saveTemplate', SAVE_TEMPLATE, {
        name: `template ${number}`,
        imageName: `sim/worker:${number}`,
        containerDiskInGb: 5,
        volumeInGb: 0,
        isServerless: true,
        env: [{ key: 'CHANGE', value: '0' }],
      })
      const workersMax = random.int(1, 6)
      const whole = random.chance(this.#world.shares ? 0.9 : 0.5) || this.#world.pauses ? this.#drawGpus() : null
      const share = whole === null ? null : this.#drawShare()
      const gpus = whole === null ? null : { ...whole, ...share?.input }
      const env = share?.env ?? []
      // The machine may have fewer GPUs than endpoints.
      const workersMin = gpus === null && random.chance(0.25) ? 1 : 0
      const scaler = random.chance(0.5)
        ? { scalerType: 'QUEUE_DELAY', scalerValue: random.int(1, 6) }
        : { scalerType: 'REQUEST_COUNT', scalerValue: random.int(1, 4) }
      const input = {
        name,
        templateId: template.id,
        ...(gpus ?? { instanceIds: ['cpu3g-2-8'] }),
        workersMin,
        workersMax,
        ...scaler,
        idleTimeout: random.int(1, 20),
        ...this.#drawFlashBoot(),
        ...this.#drawPriority(number),
        executionTimeoutMs: random.int(12_000, 40_000),
      }
      await this.#create({ name, type: 'QB', templateId: template.id, workersMin, workersMax, env, input })
    }
  }

  /** Creates load-balancing endpoints. */
  async setUpBalanced(count: number): Promise<void> {
    const random = this.#world.random('operator of applications')
    for (let number = 1; number <= count; number += 1) {
      const name = `application ${number}`
      const limit = random.chance(0.5) ? [{ key: 'RUNYARD_MAX_CONCURRENCY', value: String(random.int(1, 4)) }] : []
      // A short limit, so that a worker that is never healthy is detected within a run.
      const env = [...limit, { key: 'RUNPOD_INIT_TIMEOUT', value: '30' }]
      const template = await this.#mutate('saveTemplate', SAVE_TEMPLATE, {
        name: `${name} template`,
        imageName: `sim/server:${number}`,
        containerDiskInGb: 5,
        volumeInGb: 0,
        isServerless: true,
        env: [...env, { key: 'CHANGE', value: '0' }],
      })
      const workersMax = random.int(1, 4)
      const workersMin = random.chance(0.2) ? 1 : 0
      const scaler = { scalerType: 'REQUEST_COUNT', scalerValue: random.int(1, 3) }
      const kind = { name, type: 'LB', templateId: template.id, instanceIds: ['cpu3g-2-8'] }
      const idleTimeout = random.int(1, 20)
      const input = { ...kind, workersMin, workersMax, ...scaler, idleTimeout, ...this.#drawFlashBoot() }
      await this.#create({ name, type: 'LB', templateId: template.id, workersMin, workersMax, env, input })
    }
  }

  /** Creates queue endpoints that start a worker for each job. */
  async setUpLarge(count: number, workersMax: number, idleTimeout: number): Promise<void> {
    for (let number = 1; number <= count; number += 1) {
      const name = `endpoint ${number}`
      const template = await this.#mutate('saveTemplate', SAVE_TEMPLATE, {
        name: `template ${number}`,
        imageName: `sim/worker:${number}`,
        containerDiskInGb: 5,
        volumeInGb: 0,
        isServerless: true,
        env: [],
      })
      const scaler = { scalerType: 'REQUEST_COUNT', scalerValue: 1 }
      const kind = { name, templateId: template.id, instanceIds: ['cpu3g-2-8'] }
      const input = { ...kind, workersMin: 0, workersMax, ...scaler, idleTimeout }
      await this.#create({ name, type: 'QB', templateId: template.id, workersMin: 0, workersMax, env: [], input })
    }
  }

  /**
   * Draws the settings for idle workers. It has a random source of its own, so that the draws of runs without frozen
   * workers stay the same.
   */
  #drawFlashBoot(): { flashBootType?: string; idleTimeout?: number } {
    if (!this.#world.freezes) return {}
    const random = this.#flashBoot
    return {
      flashBootType: random.pick(['FLASHBOOT', 'FLASHBOOT', 'PRIORITY_FLASHBOOT']),
      idleTimeout: random.int(1, 3),
    }
  }

  /** Every other endpoint is urgent, and most of the rest may be paused. */
  #drawPriority(number: number): { priority?: string; preemptible?: boolean } {
    if (!this.#world.pauses) return {}
    return number % 2 === 0 ? { priority: 'high' } : { priority: 'low', preemptible: this.#priorities.chance(0.9) }
  }

  /** Draws a share of a GPU, and the memory that its program needs. It has a random source of its own. */
  #drawShare(): { readonly input: object; readonly env: ManagedEndpoint['env'] } | null {
    const random = this.#shares
    if (!this.#world.shares || random.chance(0.25)) return null
    const gib = random.int(5, 12)
    const isLearned = random.chance(0.5)
    const env = [{ key: NEED_VARIABLE, value: String(gib * 0.9) }]
    return { input: { gpuCount: 1, env, ...(isLearned ? { gpuMemoryAuto: true } : { gpuMemoryGb: gib }) }, env }
  }

  /** Draws GPUs that the machine has. */
  #drawGpus(): { gpuIds: string; gpuCount: number } {
    const random = this.#random
    const pool = random.pick(['ADA_24', 'AMPERE_24'] as const)
    const otherPool = pool === 'ADA_24' ? 'AMPERE_24' : 'ADA_24'
    if (this.#world.pauses) return { gpuIds: `${pool},${otherPool}`, gpuCount: 1 }
    return {
      gpuIds: random.chance(0.4) ? `${pool},${otherPool}` : pool,
      gpuCount: random.chance(0.3) ? this.#machine.countGpus(pool) : 1,
    }
  }

  async #create(wanted: Omit<ManagedEndpoint, 'id'>): Promise<void> {
    const { id } = await this.#mutate('saveEndpoint', SAVE_ENDPOINT, wanted.input)
    this.#endpoints = [...this.#endpoints, { ...wanted, id: id as EndpointId }]
  }

  /** Changes one endpoint so that its workers must be replaced or their number must change. */
  async disturb(): Promise<void> {
    const endpoint = this.#random.pick(this.#endpoints)
    if (this.#busy.has(endpoint.id)) return
    this.#busy.add(endpoint.id)
    this.#changes += 1
    const env = [...endpoint.env, { key: 'CHANGE', value: String(this.#changes) }]
    const { id, name, templateId } = endpoint
    const roll = this.#random.int(1, 4)
    // Has draws of its own, so that those of runs without canaries stay the same.
    if (this.#world.canaries && this.#canaries.chance(0.6)) await this.#tryCanary(endpoint, env)
    else if (roll === 1) {
      this.#world.count('new versions')
      await this.#mutate('saveEndpoint', SAVE_ENDPOINT, { id, name, env })
    } else if (roll === 2) {
      this.#world.count('new templates')
      await this.#mutate('saveTemplate', SAVE_TEMPLATE, { id: templateId, env })
    } else if (roll === 3) {
      this.#world.count('pauses')
      await this.#mutate('saveEndpoint', SAVE_ENDPOINT, { id, name, workersMin: 0, workersMax: 0 })
      await this.#life.sleep(this.#random.int(2_000, 30_000))
      const { workersMin, workersMax } = endpoint
      await this.#mutate('saveEndpoint', SAVE_ENDPOINT, { id, name, workersMin, workersMax })
    } else await this.#replaceEndpoint(endpoint)
    this.#busy.delete(endpoint.id)
  }

  /** Releases a change to a share of the workers, and promotes it, undoes it or leaves it after a while. */
  async #tryCanary({ id }: ManagedEndpoint, env: ManagedEndpoint['env']): Promise<void> {
    const random = this.#canaries
    const path = `/v2/serverless/${id}`
    const change = {
      env: Object.fromEntries(env.map(({ key, value }) => [key, value])),
      rollout: { canary: random.int(1, 99) },
    }
    if ((await this.#rest('PATCH', path, change)).status !== 200) return
    this.#world.count('canaries')
    await this.#life.sleep(random.int(1_000, 40_000))
    const { rollout, endpointVersion } = (await this.#rest('GET', `${path}/releases`)).json as ReleasesResponse
    const roll = random.int(1, 3)
    if (rollout.state !== 'CANARY' || roll === 3) return
    this.#world.count(roll === 1 ? 'promoted canaries' : 'undone canaries')
    await (roll === 1
      ? this.#rest('POST', `${path}/releases/${endpointVersion}/promote`)
      : this.#rest('POST', `${path}/releases/${rollout.workingVersion}/rollback`))
  }

  /** Sends a call of the REST API until the server responds to it. */
  async #rest(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    body?: object,
  ): Promise<{ status: number; json: unknown }> {
    const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
    const payload = body === undefined ? {} : { body: JSON.stringify(body) }
    const target = { who: 'operator', method, url: `http://server.sim${path}`, headers, ...payload } as const
    for (;;) {
      const reply = await this.#network.send({ ...target, life: this.#life, timeoutMs: 30_000 })
      if (reply.ok && reply.status < 500 && reply.status !== 429)
        return { status: reply.status, json: JSON.parse(reply.text) }
      await this.#life.sleep(this.#canaries.int(500, 2_000))
    }
  }

  /** Deletes an endpoint with its jobs and workers, and creates another like it. */
  async #replaceEndpoint(endpoint: ManagedEndpoint): Promise<void> {
    const { id, name } = endpoint
    this.#world.count('deleted endpoints')
    await this.#mutate('saveEndpoint', SAVE_ENDPOINT, { id, name, workersMin: 0, workersMax: 0 })
    await this.#life.sleep(this.#random.int(0, 5_000))
    await this.#create(endpoint)
    this.#endpoints = this.#endpoints.filter(endpoint => endpoint.id !== id)
    this.#deleting(id)
    await this.#mutate('deleteEndpoint', DELETE_ENDPOINT, id)
  }

  /** True if no change is under way. */
  get idle(): boolean {
    return this.#busy.size === 0
  }

  /** Sends a mutation until it succeeds; all of them can be repeated. */
  async #mutate(field: string, query: string, input: object | string): Promise<{ readonly id: string }> {
    const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ query, variables: { input } })
    const target = { who: 'operator', method: 'POST', url: 'http://server.sim/graphql', headers, body } as const
    for (;;) {
      const reply = await this.#network.send({ ...target, life: this.#life, timeoutMs: 30_000 })
      const response = reply.ok ? (JSON.parse(reply.text) as GraphqlResponse) : null
      if (response?.data?.[field] != null) return response.data[field]
      if (field === 'deleteEndpoint' && reply.ok && reply.status < 500 && response !== null && isDone(response))
        return { id: '' }
      if (reply.ok && reply.status < 500 && response?.errors?.some(({ message }) => !EXPECTED.test(message)) === true)
        this.#world.report(`${field} got ${reply.text}`)
      await this.#life.sleep(this.#random.int(500, 2_000))
    }
  }
}

/** True if a deletion is done. Its response is null; a repeated deletion finds no endpoint. */
function isDone({ errors = [] }: GraphqlResponse): boolean {
  return errors.length === 0 || errors.some(({ message }) => /not found/.test(message))
}

/** Errors that are expected when the store fails or the server stops. */
const EXPECTED = /store|try again|stopping|unavailable/i

interface ReleasesResponse {
  readonly endpointVersion: number
  readonly rollout: { readonly state: string; readonly workingVersion: number | null }
}

interface GraphqlResponse {
  readonly data?: Readonly<Record<string, { readonly id: string } | null>> | null
  readonly errors?: readonly { readonly message: string }[]
}
