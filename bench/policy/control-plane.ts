/** The policies of Runyard: its whole control plane in virtual time, with played cards and the driver of them. */
import { API_KEY } from '../../sim/app-run.ts'
import { Calls } from '../../sim/clients/calls.ts'
import { Life } from '../../sim/life.ts'
import { PlayedGpus } from '../../sim/played-gpus.ts'
import { settle } from '../../sim/run.ts'
import { World } from '../../sim/world.ts'
import type { MachineGpu } from '../../src/core/hardware/inventory.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { MockFleet } from '../../src/drivers/mock/mock.ts'
import { quietNetwork, startSimulatedServer } from '../harness/simulated-server.ts'
import { BusyCard } from './busy-card.ts'
import type { Model, ModelRequest } from './model-requests.ts'
import { restoreMs, startMs, suspendMs } from './model-times.ts'
import { ModelWorker } from './model-worker.ts'
import { CARD_GIB, CARDS, type PolicyOutcome, PolicyRecorder } from './policy-outcome.ts'

/** Settings of all endpoints. */
export interface PolicySettings {
  /** True if workers get shares of cards, false for whole cards. */
  readonly shares: boolean
  /** True for FlashBoot: idle workers are suspended. */
  readonly suspends: boolean
  readonly idleTimeoutS: number
  /** Shortest stay of a ready worker before it makes room for others, as `--dwell`. */
  readonly dwellS: number
  /** Memory of the machine for all suspended workers, as `--suspended-memory`, in GiB; null for the default. */
  readonly suspendedGib: number | null
  /** Time that the start of each worker takes beyond the measured one, to read its weights. */
  readonly weightsMs: number
}

const GIB = 2 ** 30
/** Memory of the machine: that of two of the machines of docs/internals/gpu-proof.md. */
const MACHINE_GIB = 250
/** Memory that the system and each program use beside the copies of cards. */
const SYSTEM_GIB = 8
const PROGRAM_GIB = 0.8

/** Plays the requests. */
export async function playControlPlane(
  { models, requests }: { readonly models: readonly Model[]; readonly requests: readonly ModelRequest[] },
  settings: PolicySettings,
): Promise<PolicyOutcome> {
  const world = new World(1)
  const { clock } = world
  const network = quietNetwork(world)
  const workers = new Map<WorkerId, { readonly program: ModelWorker; readonly model: Model }>()
  const endpoints = new Map<EndpointId, Model>()
  const cards = new Map(GPUS.map(({ uuid }) => [uuid!, new BusyCard(clock)]))
  const fleet: MockFleet = new MockFleet({
    onStart: spec => {
      const model = endpoints.get(spec.endpointId)!
      const [card = ''] = spec.placement.gpus.map(({ uuid }) => uuid ?? '')
      recorder.starts += 1
      gpus.start(spec.workerId, [card], model.gib)
      const exit = () => fleet.exit(spec.workerId)
      const parts = { world, network, recorder, requests, card: cards.get(card)!, exit }
      const duration = startMs(model.gib) + settings.weightsMs
      workers.set(spec.workerId, { model, program: new ModelWorker({ ...parts, startMs: duration }, spec) })
    },
    onFreeze: worker => workers.get(worker)?.program.life.freeze(),
    onThaw: worker => {
      if (!gpus.isHeld(worker)) workers.get(worker)?.program.life.thaw()
    },
    processes: worker => gpus.family(worker),
    onTerminate: worker => workers.get(worker)?.program.terminate(),
    onKill: worker => workers.get(worker)?.program.die(),
  })
  const gibOf = (worker: WorkerId) => workers.get(worker)?.model.gib ?? 0
  const gpus: PlayedGpus = new PlayedGpus(
    {
      clock,
      isFrozen: worker => fleet.frozen.has(worker),
      isAlive: worker => fleet.workers.get(worker)?.exit === null,
      copyMs: (worker, step) => {
        if (step === 'restore') recorder.resumes += 1
        return step === 'checkpoint' ? suspendMs(gibOf(worker)) : restoreMs(gibOf(worker))
      },
      onHold: (worker, isHeld) => {
        if (isHeld) workers.get(worker)?.program.life.freeze()
        else if (!fleet.frozen.has(worker)) workers.get(worker)?.program.life.thaw()
      },
    },
    CARD_GIB,
  )
  const suspended = () => fleet.running().filter(worker => gpus.stateOf(worker) === 'checkpointed')
  const use = () => {
    const asleep = suspended()
    const awake = fleet.running().filter(worker => !asleep.includes(worker))
    const parts = awake.map(worker => (settings.shares ? gibOf(worker) / CARD_GIB : 1))
    return { cards: sum(parts), suspendedGib: sum(asleep.map(gibOf)) }
  }
  const machine = {
    parts: { vcpus: 32, memoryGb: MACHINE_GIB, gpus: GPUS, hadGpus: true, problem: null },
    get memory() {
      const usedGib = SYSTEM_GIB + fleet.running().length * PROGRAM_GIB + use().suspendedGib
      return { availableBytes: (MACHINE_GIB - usedGib) * GIB, totalBytes: MACHINE_GIB * GIB }
    },
    gpus,
  }
  const room = { workers: 100, bound: 'the machine' }
  const placing = { dwellMs: settings.dwellS * 1_000 }
  const freezing = settings.suspendedGib === null ? {} : { suspendedBytes: settings.suspendedGib * GIB }
  const server = await startSimulatedServer(world, { network, fleet, machine, room, placing, freezing })
  const client = new Life(clock)
  let isSetUp = false
  const created = Promise.all(
    models.map(async model => {
      const id = await createEndpoint(network, client, model, settings)
      endpoints.set(id, model)
      return id
    }),
  ).finally(() => {
    isSetUp = true
  })
  await advance(world, () => isSetUp)
  const ids = await created
  const recorder = new PolicyRecorder(clock, requests, use)
  const calls = new Calls(network, 'client', client)
  for (const [n, { model, atMs }] of requests.entries())
    client.after(atMs, async () => {
      const policy = { executionTimeout: 3_600_000, ttl: 86_400_000 }
      const reply = await calls.post(ids[model]!, 'run', { body: JSON.stringify({ input: { n }, policy }) })
      if (!reply.ok || reply.status !== 200) world.report(`a request was refused: ${JSON.stringify(reply)}`)
    })
  await advance(world, () => recorder.isOver || world.problems.length > 0)
  if (world.problems.length > 0) throw new Error(world.problems.join('\n'))
  server.life.end()
  await server.database.store.close()
  return recorder.outcome()
}

const GPUS: readonly MachineGpu[] = Array.from({ length: CARDS }, (_, index) => ({
  index,
  uuid: `GPU-${index}`,
  name: 'NVIDIA H100 80GB HBM3',
  vendor: 'NVIDIA',
  memoryGb: CARD_GIB,
  driver: '580.159.04',
  cuda: '13.0',
  mig: null,
  problem: null,
}))

const SAVE_TEMPLATE = 'mutation($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
const SAVE_ENDPOINT = 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'

async function createEndpoint(
  network: ReturnType<typeof quietNetwork>,
  life: Life,
  { name, gib }: Model,
  { shares, suspends, idleTimeoutS }: PolicySettings,
): Promise<EndpointId> {
  const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
  const mutate = async (query: string, input: object): Promise<string> => {
    const body = JSON.stringify({ query, variables: { input } })
    const target = { who: 'operator', method: 'POST', url: 'http://server.sim/graphql', headers, body } as const
    const reply = await network.send({ ...target, life, timeoutMs: 30_000 })
    const data = reply.ok ? (JSON.parse(reply.text) as { data?: Record<string, { id: string } | null> }).data : null
    const id = Object.values(data ?? {})[0]?.id
    if (id === undefined) throw new Error(`a mutation failed: ${JSON.stringify(reply)}`)
    return id
  }
  const disks = { containerDiskInGb: 5, volumeInGb: 0 }
  const templateId = await mutate(SAVE_TEMPLATE, {
    name: `template of ${name}`,
    imageName: `sim/${name}`,
    ...disks,
    isServerless: true,
    env: [],
  })
  const id = await mutate(SAVE_ENDPOINT, {
    name,
    templateId,
    gpuIds: 'ADA_80_PRO',
    ...(shares ? { gpuMemoryGb: gib } : {}),
    workersMin: 0,
    workersMax: 1,
    idleTimeout: idleTimeoutS,
    flashBootType: suspends ? 'FLASHBOOT' : 'OFF',
  })
  return id as EndpointId
}

/** Advances the time until a condition holds. */
async function advance(world: World, isOver: () => boolean): Promise<void> {
  const { clock } = world
  const activity = () => world.activity + clock.timers
  for (let untilMs = clock.monotonic() + 1_000; !isOver(); untilMs += 1_000)
    while (clock.advance(untilMs)) await settle(activity)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
