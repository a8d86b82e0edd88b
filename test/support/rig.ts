/**
 * The whole control plane without sockets, processes or real time: an in-memory store, the mock fleet, the
 * real notifier and vault, a virtual clock. Tests call its public surfaces like clients and workers.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { inlineBodies } from '../../sim/inline-bodies.ts'
import { SimLogs } from '../../sim/logs.ts'
import type { Fetch, RequestEnv } from '../../src/api/surface.ts'
import { type App, createApp, type Services } from '../../src/app.ts'
import { type ApiKey, FULL_SCOPE } from '../../src/core/accounts/permission.ts'
import { type GivenLimits, NO_LIMITS } from '../../src/core/accounts/quotas.ts'
import { DEFAULT_WINDOWS, type RateWindow } from '../../src/core/accounts/rate-limit.ts'
import type { ArtifactRules } from '../../src/core/apps/app.ts'
import type { AuditRules } from '../../src/core/audit/entry.ts'
import type { PriceList } from '../../src/core/billing/prices.ts'
import type { MachineParts } from '../../src/core/hardware/inventory.ts'
import type { GpuUse, MachineDisk, MachineMemory } from '../../src/core/hardware/machine-use.ts'
import {
  DEFAULT_OWNER,
  type EndpointId,
  type JobId,
  type KeyId,
  type TemplateId,
  type WorkerId,
} from '../../src/core/ids.ts'
import type { Job } from '../../src/core/jobs/job.ts'
import type { JobRecordRules } from '../../src/core/jobs/job-record.ts'
import type { ServerStatus } from '../../src/core/observing/server-status.ts'
import type { Span } from '../../src/core/observing/span.ts'
import type { TraceSampling } from '../../src/core/observing/trace-sampling.ts'
import type { PauseRules, PlacementRules } from '../../src/core/placement/placement-input.ts'
import { REQUEST_ID, readRequestId } from '../../src/core/request-head.ts'
import type { FreezeRules } from '../../src/core/scaling/frozen-plan.ts'
import type { Capacity } from '../../src/core/scaling/plan.ts'
import type { StartFailure } from '../../src/core/workers/start-failure.ts'
import type { Worker, WorkerLoad } from '../../src/core/workers/worker.ts'
import type { PortConflict } from '../../src/core/workers/worker-exit.ts'
import { type MockDriver, MockFleet, type MockFleetHooks } from '../../src/drivers/mock/mock.ts'
import type { EventName, Events } from '../../src/events.ts'
import type { ArtifactFiles } from '../../src/ports/artifact-files.ts'
import type { AuditHeadNote } from '../../src/ports/audit-head.ts'
import type { BackupFolder, Backups } from '../../src/ports/backups.ts'
import type { ConsoleFiles } from '../../src/ports/console-files.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import type { GpuMeter } from '../../src/ports/gpu-meter.ts'
import type { GpuSuspender } from '../../src/ports/gpu-suspender.ts'
import type { HostInspection } from '../../src/ports/host-inspection.ts'
import type { Mail } from '../../src/ports/mailer.ts'
import type { ModelCache } from '../../src/ports/model-cache.ts'
import type { Notifier, Topic } from '../../src/ports/notifier.ts'
import type { Ports } from '../../src/ports/ports.ts'
import { layered } from '../../src/ports/store/operations.ts'
import type { Store } from '../../src/ports/store/store.ts'
import type { StoreDamage, StoreRoom } from '../../src/ports/store/store-trouble.ts'
import type { Targets, Traffic } from '../../src/ports/targets.ts'
import type { Vault } from '../../src/ports/vault.ts'
import type { VolumeFiles } from '../../src/ports/volume-files.ts'
import { resumeTime } from '../../src/services/observing/server-time.ts'
import { PayloadSeals } from '../../src/services/secrets/payload-seals.ts'
import { sealing } from '../../src/services/secrets/sealed-store.ts'
import type { ContainerUrls } from '../../src/services/workers/worker-addresses.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { singleLeader } from '../../src/system/coordination/leader.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import type { OutboundAddress } from '../../src/system/http/addresses.ts'
import { createImageRegistries } from '../../src/system/http/image-registries.ts'
import { createVault } from '../../src/system/keys/vault.ts'
import { createMetrics } from '../../src/system/observing/metrics.ts'
import { Tracer } from '../../src/system/observing/tracer.ts'
import { type MachineClocks, ServerClock } from '../../src/system/server-clock.ts'
import { LineAssembler } from '../../src/system/worker-logs/worker-log-lines.ts'
import { FakeOutbound } from './fake-outbound.ts'
import { type Fault, faultyStore, PlannedFaults, watchedStore } from './faulty-store.ts'
import { aMachine } from './machines.ts'
import { MemoryVolumes } from './memory-volumes.ts'
import { MockProbes } from './mock-probes.ts'
import { createSeededRandom } from './seeded-random.ts'
import { VirtualClock } from './virtual-clock.ts'

/** Options of a {@link Rig}. */
export interface RigOptions extends MockFleetHooks {
  /** True for a server with a mail server; false by default. */
  readonly mails?: boolean
  readonly rateWindows?: readonly RateWindow[]
  /** Origin of the server in answers; that of its tests by default. */
  readonly publicUrl?: string
  /** True when inputs and URLs are sealed in the store. */
  readonly sealPayloads?: boolean
  /** True if job operations are limited. */
  readonly limitJobs?: boolean
  /** True if GraphQL deletes endpoints that may still have workers. */
  readonly deleteRunningEndpoints?: boolean
  /** Limit of a result in bytes; 20 MB when left out. */
  readonly resultBytes?: number
  /** Limit of bodies of run and runsync in bytes; 10 MB and 20 MB when left out. */
  readonly inputBytes?: number
  /** Limits of accounts other than the operator's; unlimited when left out. */
  readonly accountLimits?: GivenLimits
  readonly capacity?: (running: number) => Capacity
  readonly check?: (image: string, args: string) => StartFailure | null
  readonly drainTimeoutMs?: number
  /** Rules by which workers share the machine. */
  readonly placing?: Partial<PlacementRules>
  /** Rules by which workers are paused for others. */
  readonly pausing?: Partial<PauseRules>
  /** True when releases that fail their jobs are stopped; true when left out. */
  readonly judgesRollouts?: boolean
  readonly metricsPublic?: boolean
  /** Origins of the pages that may call job operations. */
  readonly corsOrigins?: readonly string[]
  /** Rules for the records of jobs whose results were removed. */
  readonly jobRecords?: Partial<JobRecordRules>
  /** Folder of the server's own backups. */
  readonly backupFolder?: BackupFolder
  /** Maker of backups on request; no backups when left out. */
  readonly backups?: Backups
  /** Note of the head of the audit log; not kept when left out. */
  readonly auditHead?: AuditHeadNote
  /** Damage found in the database; undamaged when left out. */
  readonly storeDamage?: StoreDamage
  /** Room on the disk of the database; enough when left out. */
  readonly storeRoom?: StoreRoom
  /** Retention of the audit log. */
  readonly audit?: Partial<AuditRules>
  /** Findings about the host; nothing when left out. */
  readonly inspection?: HostInspection
  /** The prices of hardware. */
  readonly prices?: PriceList
  /** Maximum number of endpoints with separate metrics. */
  readonly metricEndpoints?: number
  /**
   * True if the server has a time of its own, beside the machine's clock that `rig.clock.set` sets; false by default.
   */
  readonly serverTime?: boolean
  /** Names that no endpoint can have as its domain; empty by default. */
  readonly isServerName?: (name: string) => boolean
  /** True for images whose workers are processes of the machine; by default folders alone are. */
  readonly runsOnMachine?: (image: string) => boolean
  /** Called before each start of a worker, before the call of the driver. */
  readonly beforeStart?: () => Promise<void>
  /** Opens another store than SQLite in memory. The rig closes it. */
  readonly openStore?: () => Promise<Store>
  /** Sampling of traces; no traces by default. */
  readonly tracing?: TraceSampling
  /** Page of the console; absent by default. */
  readonly consoleFiles?: ConsoleFiles
  /** Models on the disk of the machine; not kept by default. */
  readonly models?: ModelCache
  /** Memory of the cards of the machine; not measured by default. */
  readonly gpuMeter?: GpuMeter
  /** Suspends CUDA processes for each start of the server; none are suspended by default. */
  readonly gpuSuspender?: (rig: Rig) => GpuSuspender
  /** Rules of frozen workers. */
  readonly freezing?: Partial<FreezeRules>
  /** Archives of apps; not kept by default. */
  readonly artifacts?: ArtifactFiles
  /** Limits of archives of apps. */
  readonly artifactRules?: Partial<ArtifactRules>
  /** Files of network volumes; not offered by default. */
  readonly files?: VolumeFiles
  /** Requests of load-balancing endpoints; absent by default. */
  readonly requests?: (ports: Pick<Ports, 'clock' | 'notifier'>) => Targets & Traffic
}

/** An event of the event stream. */
export type Happening = { [Name in EventName]: { readonly name: Name } & Events[Name] }[EventName]

type Names<Part> = Extract<keyof Part, string>

/** A method of the store, such as `jobs.insert`. */
export type StoreMethod = {
  [Part in Exclude<keyof Store, 'close'>]: `${Part}.${Names<Store[Part]>}`
}[Exclude<keyof Store, 'close'>]

/** A response with its body. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever shape they expect.
  readonly json: any
}

/** Options of a request. */
export interface Asking {
  readonly body?: unknown
  readonly key?: string | null
  readonly headers?: Record<string, string>
  /** Content type of the body, JSON by default; null to leave it out. */
  readonly type?: string | null
  readonly signal?: AbortSignal
  /** The origin that is asked; the public one unless given. */
  readonly at?: string
  /** Address of the client; unknown by default. */
  readonly address?: string
  /** True if the response is delivered; false if it is lost. */
  readonly delivered?: boolean
}

/** The key with all permissions of every rig. */
export const KEY = 'rpa_test_key_with_all_rights'
const BASE = 'http://localhost:8080'
/** The origin of the console of every rig. */
export const CONSOLE = 'http://console.localhost:8080'
const WORKER_URL = 'http://127.0.0.1:9000'

/** The default input of saveEndpoint. */
export interface EndpointFields {
  readonly [field: string]: unknown
}

/** A started control plane and the operations of a test on it. */
export class Rig {
  readonly clock = new VirtualClock()
  /** True for notifications that are lost; no loss by default. */
  loses: (topic: Topic) => boolean = () => false
  readonly notifier: Notifier
  readonly vault: Vault = createVault(Buffer.alloc(32, 7))
  readonly outbound = new FakeOutbound(this.clock)
  /** The mails that were sent. */
  readonly mails: Mail[] = []
  /** Addresses of the names of registries. */
  resolve: (name: string) => readonly OutboundAddress[] = () => [{ address: '198.51.100.7', family: 4 }]
  readonly volumes = new MemoryVolumes()
  /** The use of its GPUs, by their keys. */
  readonly gpuUse = new Map<string, GpuUse>()
  /** Free memory; null while the machine does not report it. */
  memory: MachineMemory | null = null
  /** Disk of its data; null while it is unknown. */
  disk: MachineDisk | null = null
  /** The parts of the machine of the workers. */
  machine: MachineParts = aMachine([], { vcpus: 64, memoryGb: 512 })
  readonly events: Happening[] = []
  /** The spans of all starts. */
  readonly spans: Span[] = []
  readonly logs = new SimLogs(() => this.clock.now())
  readonly fleet: MockFleet
  /** The results of the health checks of workers. */
  readonly probes: MockProbes
  readonly store: Store
  /** Names the run of the system of the machine; another one is another start of it. */
  boot = 'boot-1'
  /** Number of requests for a start in a new term. */
  renewals = 0
  /** The ports of the last start of the control plane. */
  ports!: Ports
  readonly #faults = new PlannedFaults()
  readonly #calls = new Map<string, number>()
  readonly #options: RigOptions
  readonly #random = createSeededRandom(1)
  #app!: App
  #fetch!: Fetch
  #requests = 0
  #driver!: MockDriver
  #count = 0

  constructor(store: Store, options: RigOptions) {
    this.store = faultyStore(watchedStore(store, this.clock), (name, args) => {
      this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1)
      return this.#faults.decide(name, args)
    })
    this.#options = options
    this.fleet = new MockFleet(options)
    this.probes = new MockProbes(this.fleet)
    const { publish, subscribe } = createNotifier({
      onError: thrown => {
        throw thrown
      },
    })
    this.notifier = { subscribe, publish: topic => (this.loses(topic) ? undefined : publish(topic)) }
  }

  /** Starts the control plane; after {@link crash} a new one over the same store and fleet. */
  async start(workerUrl = WORKER_URL, containers?: ContainerUrls): Promise<void> {
    const { capacity, check, rateWindows = DEFAULT_WINDOWS, drainTimeoutMs = 30_000 } = this.#options
    const { limitJobs = false, deleteRunningEndpoints = false } = this.#options
    const { vault, store, notifier, outbound } = this
    const time = this.#options.serverTime === true ? new ServerClock(this.#machineClocks(), this.#after) : undefined
    const clock = time ?? this.clock
    const chosen = { ...(capacity === undefined ? {} : { capacity }), ...(check === undefined ? {} : { check }) }
    this.#driver = this.fleet.driver({ notifier, ...chosen })
    const { beforeStart, runsOnMachine = () => false } = this.#options
    this.#driver.nameFor = image => (runsOnMachine(image) ? 'process' : this.#driver.name)
    if (beforeStart !== undefined) {
      const launch = this.#driver.start.bind(this.#driver)
      this.#driver.start = async spec => {
        await beforeStart()
        return launch(spec)
      }
    }
    const metrics = createMetrics({ clock, ofProcess: false, maxEndpoints: this.#options.metricEndpoints ?? 200 })
    const { tracing: sampling } = this.#options
    const traced = { clock, random: this.#random }
    const tracing =
      sampling === undefined ? undefined : new Tracer(traced, sampling, spans => void this.spans.push(...spans))
    const emit = <Name extends EventName>(name: Name, fields: Events[Name]) => {
      this.events.push({ name, ...fields } as unknown as Happening)
      metrics.emit(name, fields)
      tracing?.emit(name, fields)
    }
    const sealed = this.#options.sealPayloads === true ? layered(store, sealing(new PayloadSeals(vault, true))) : store
    const shared = { clock, vault, notifier, outbound, emit }
    const ports = { ...shared, store: sealed, random: this.#random, driver: this.#driver }
    const machine = {
      parts: async () => this.machine,
      gpuUse: () => this.gpuUse,
      memory: () => this.memory,
      disk: async () => this.disk,
    }
    const { metricsPublic = false, placing, pausing, prices } = this.#options
    const accountLimits = { ...NO_LIMITS, ...this.#options.accountLimits }
    const rules = { rateWindows, limitJobs, deleteRunningEndpoints }
    const config = {
      ...rules,
      corsOrigins: this.#options.corsOrigins ?? [],
      drainTimeoutMs,
      metricsPublic,
      placing,
      pausing,
      freezing: this.#options.freezing,
      judgesRollouts: this.#options.judgesRollouts ?? true,
      prices,
      accountLimits,
      ...(this.#options.inputBytes !== undefined && { inputBytes: this.#options.inputBytes }),
      ...(this.#options.resultBytes !== undefined && { resultBytes: this.#options.resultBytes }),
      artifacts: this.#options.artifactRules ?? {},
      jobRecords: this.#options.jobRecords ?? {},
      audit: this.#options.audit ?? {},
      auditHead: this.#options.auditHead,
      backupFolder: this.#options.backupFolder,
      backups: this.#options.backups,
      status: async () => ({ role: 'active' }) as unknown as ServerStatus,
      inspection: this.#options.inspection,
      isServerName: this.#options.isServerName ?? (() => false),
      renewTerm: () => {
        this.renewals += 1
      },
    }
    this.ports = {
      ...ports,
      ...(this.#options.storeRoom === undefined ? {} : { storeRoom: this.#options.storeRoom }),
      ...(this.#options.storeDamage === undefined ? {} : { storeDamage: this.#options.storeDamage }),
      bodies: inlineBodies,
      registries: createImageRegistries({ allowed: ['registry.lan'], resolve: async name => this.resolve(name) }),
      probes: this.probes,
      leader: singleLeader,
      machine,
      mailer: this.#options.mails === true ? { send: mail => this.#mail(mail) } : undefined,
      gpuMeter: this.#options.gpuMeter,
      gpuSuspender: this.#options.gpuSuspender?.(this),
      metrics,
      spill: null,
      consoleFiles: this.#options.consoleFiles ?? null,
      models: this.#options.models ?? null,
      volumes: this.volumes,
      files: this.#options.files,
      artifacts: this.#options.artifacts,
      logs: this.logs,
      tracing,
      time,
    }
    if (time !== undefined) await resumeTime({ store, time, emit })
    const addresses = {
      publicUrl: this.#options.publicUrl ?? BASE,
      queueUrl: this.#options.publicUrl ?? BASE,
      consoleUrl: CONSOLE,
      workerUrl,
      ...(containers && { containers }),
    }
    this.#app = createApp(this.ports, config, addresses, this.#options.requests?.(this.ports))
    this.#fetch = this.#app.fetch()
    await this.#app.services.access.ensureKeys(DEFAULT_OWNER, [{ name: 'test', key: KEY, scope: FULL_SCOPE }])
    await this.#app.start()
    await this.clock.settle()
  }

  readonly #after = (ms: number, callback: () => void) => this.clock.after(ms, callback)

  async #mail(mail: Mail): Promise<null> {
    this.mails.push(mail)
    return null
  }

  #machineClocks(): MachineClocks {
    const { clock, boot } = this
    const monotonic = () => clock.monotonic()
    return { wall: () => clock.now(), monotonic, sinceBoot: () => monotonic() + 60_000, boot }
  }

  /** The surface that a listener offers, of the last start. */
  get surface(): Fetch {
    return this.#fetch
  }

  /** The application of the last start. */
  get services(): Services {
    return this.#app.services
  }

  /** The request queues, unless the test provides others. */
  get lines(): App['requestQueues'] {
    return this.#app.requestQueues
  }

  /** As {@link App.answersLost}. */
  answersLost(agoMs: number): void {
    this.#app.answersLost(agoMs)
  }

  /** Crashes the control plane. Workers go on. */
  async crash(): Promise<void> {
    await this.#app.abandon()
    this.#driver.close()
  }

  /** Stops the control plane gracefully. */
  stop(hurry: AbortSignal = new AbortController().signal): Promise<void> {
    return this.#app.stop(hurry)
  }

  /** Stops the control plane and leaves workers to the next server. */
  handOver(forMs: number): Promise<void> {
    return this.#app.handOver(forMs, new AbortController().signal)
  }

  /** Sends a request to any surface. */
  async ask(method: string, path: string, asking: Asking = {}): Promise<Answer> {
    const { answer: response, settle } = await this.#send(method, path, asking)
    const answer = await response.text().catch(error => {
      settle(false)
      throw error
    })
    settle(asking.delivered ?? true)
    return { status: response.status, headers: response.headers, text: answer, json: parsed(answer) }
  }

  /** Sends a request and returns the response with its body unread, for streams. */
  async open(path: string, asking: Asking = {}, method = 'GET'): Promise<Response> {
    return (await this.#send(method, path, asking)).answer
  }

  /** As {@link open}, with the function that notes that the response was written, or was not. */
  async openUnsettled(path: string, asking: Asking = {}) {
    return this.#send('GET', path, asking)
  }

  async #send(method: string, path: string, asking: Asking) {
    const { body, key = KEY, signal } = asking
    const headers = { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...asking.headers }
    const isText = body === undefined || typeof body === 'string' || body instanceof Uint8Array
    const text = isText ? body : JSON.stringify(body)
    const { type: bodyType = 'application/json' } = asking
    const type: Record<string, string> = text === undefined || bodyType === null ? {} : { 'content-type': bodyType }
    const init: RequestInit = {
      method,
      headers: { ...type, ...headers },
      // A string would set its own content type.
      ...(text === undefined
        ? {}
        : { body: typeof text === 'string' ? new TextEncoder().encode(text) : Uint8Array.from(text) }),
    }
    const callbacks: ((delivered: boolean) => void)[] = []
    const delivery = { onSettled: (callback: (delivered: boolean) => void) => void callbacks.push(callback) }
    const { address } = asking
    const requestId = readRequestId(new Headers(headers).get(REQUEST_ID)) ?? `request-${++this.#requests}`
    const env: RequestEnv = { delivery, requestId, ...(address === undefined ? {} : { address: () => address }) }
    const request = new Request(`${asking.at ?? BASE}${path}`, signal === undefined ? init : { ...init, signal })
    const answer = await this.#fetch(request, env)
    const settle = (delivered: boolean) => {
      for (const callback of callbacks) callback(delivered)
    }
    return { answer, settle }
  }

  /** Runs a GraphQL operation and returns its data; throws when it has errors. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever shape they expect.
  async graphql(query: string, variables: Record<string, unknown> = {}, asking: Asking = {}): Promise<any> {
    const { json } = await this.ask('POST', '/graphql', { ...asking, body: { query, variables } })
    assert.equal(json.errors, undefined, JSON.stringify(json.errors))
    return json.data
  }

  /** Creates a template that endpoints can share. */
  async template(fields: EndpointFields = {}): Promise<TemplateId> {
    const name = `t${++this.#count}`
    const settings = { name, imageName: 'image:1', containerDiskInGb: 1, volumeInGb: 0, isServerless: true }
    const save = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
    return (await this.graphql(save, { input: { ...settings, ...fields } })).saveTemplate.id
  }

  /** Creates a queue endpoint with its own template, unless `templateId` names one. */
  async endpoint(fields: EndpointFields = {}, asking: Asking = {}): Promise<EndpointId> {
    const name = `e${++this.#count}`
    const template = { name: `${name}-image`, imageName: 'image:1', containerDiskInGb: 1, ...(fields.template ?? {}) }
    const input = { name, instanceIds: ['cpu3g-2-8'], ...fields, template }
    const save = `mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }`
    return (await this.graphql(save, { input }, asking)).saveEndpoint.id
  }

  /** Creates a queue endpoint with a minimum of one worker. Returns it with that worker before its first request. */
  async endpointWithWorker(fields: EndpointFields = {}): Promise<{ endpoint: EndpointId; worker: RigWorker }> {
    const endpoint = await this.endpoint({ workersMin: 1, ...fields })
    await this.clock.advance(40)
    return { endpoint, worker: this.worker(-1) }
  }

  /** From now on the driver does not say how workers are. @returns ends that */
  hangDriver(): () => void {
    const observe = this.#driver.observe.bind(this.#driver)
    const hung = Promise.withResolvers<void>()
    this.#driver.observe = async worker => {
      await hung.promise
      return observe(worker)
    }
    return hung.resolve
  }

  /** From now on the driver reports of each running worker that another one has a port that it wanted. */
  takePort(suspicion: PortConflict): void {
    const observe = this.#driver.observe.bind(this.#driver)
    this.#driver.observe = async worker => {
      const observation = await observe(worker)
      return observation.state === 'running' ? { ...observation, suspicion } : observation
    }
  }

  /** Changes an endpoint; omitted fields stay. */
  async change(id: EndpointId, fields: EndpointFields): Promise<void> {
    const input = { id, name: 'changed', ...fields }
    await this.graphql(`mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }`, { input })
    await this.clock.settle()
  }

  /** Submits a job and returns its id. */
  async submit(id: EndpointId, body: Record<string, unknown> = { input: {} }, asking: Asking = {}): Promise<JobId> {
    const answer = await this.ask('POST', `/v2/${id}/run`, { ...asking, body })
    assert.equal(answer.status, 200, answer.text)
    await this.clock.settle()
    return answer.json.id
  }

  /** The `status` response of a job. */
  status(id: EndpointId, job: JobId): Promise<Answer> {
    return this.ask('GET', `/v2/${id}/status/${job}`)
  }

  /** The job in the store. */
  async job(id: EndpointId, job: JobId): Promise<Job> {
    const record = await this.store.jobs.find(id, job, this.clock.now())
    assert.ok(record !== null, `job ${job} is gone`)
    return record
  }

  /** The response of `/health`. */
  async health(id: EndpointId): Promise<{ jobs: Record<string, number>; workers: Record<string, number> }> {
    return (await this.ask('GET', `/v2/${id}/health`)).json
  }

  /** The cause and summary of `/explain`. */
  async why(id: EndpointId): Promise<{ cause: string; summary: string; action: string | null }> {
    return (await this.ask('GET', `/v2/${id}/explain`)).json
  }

  /** Creates another key. */
  async addKey(text: string, fields: Partial<ApiKey> = {}): Promise<string> {
    const id = `key${++this.#count}` as KeyId
    const base = { id, owner: DEFAULT_OWNER, name: text, hash: this.vault.hash(text), scope: FULL_SCOPE }
    const times = { expiresAtMs: null, createdAtMs: this.clock.now(), lastUsedAtMs: null }
    const rest = { ...times, kind: 'user', hint: '', endpointId: null, exempt: false, disabled: false } as const
    await this.store.keys.insert({ ...base, ...rest, ...fields })
    return text
  }

  /** Makes the next `times` calls of a method of the store fail. */
  failNext(method: StoreMethod, fault: Fault, times = 1): void {
    for (let time = 0; time < times; time += 1) this.#faults.failNext(method, fault)
  }

  /** Number of calls of a method of the store. */
  calls(method: StoreMethod): number {
    return this.#calls.get(method) ?? 0
  }

  /** The program of the worker that was started as number `index`. */
  worker(index: number): RigWorker {
    const spec = this.fleet.started.at(index)
    assert.ok(spec !== undefined, `only ${this.fleet.started.length} workers were started`)
    return new RigWorker(this, spec)
  }

  /** The workers of an endpoint that have not ended. */
  async alive(id: EndpointId): Promise<readonly WorkerLoad[]> {
    return (await this.store.endpoints.snapshot(id))?.workers ?? []
  }

  /** Adds lines to the output of a worker, whether it runs or not. */
  print(worker: WorkerId, ...lines: string[]): void {
    const output = Buffer.from(lines.map(line => `${line}\n`).join(''))
    for (const { line, jobId, isMidLine } of new LineAssembler().push(output, 0)) {
      this.logs.append(worker, line, jobId, isMidLine)
    }
  }

  /** The events of one name, in order. */
  happened<Name extends EventName>(name: Name): Extract<Happening, { name: Name }>[] {
    return this.events.filter(event => event.name === name) as Extract<Happening, { name: Name }>[]
  }

  /** The transitions of a job, each as `transition FROM TO`. */
  moves(job: JobId): string[] {
    return this.happened('job.moved').flatMap(({ jobId, transition, from, to }) =>
      jobId === job ? [`${transition} ${from} ${to}`] : [],
    )
  }
}

/** The program of one worker: each method is one call of the worker protocol. */
export class RigWorker {
  readonly id: WorkerId
  readonly spec: WorkerSpec
  readonly #rig: Rig

  constructor(rig: Rig, spec: WorkerSpec) {
    this.#rig = rig
    this.spec = spec
    this.id = spec.workerId
  }

  /** Takes one job; several with `batch`. The long poll may last 25 s. */
  async take({ batch, busy, ...asking }: Asking & { batch?: number; busy?: boolean } = {}): Promise<Answer> {
    const single = this.#path('RUNPOD_WEBHOOK_GET_JOB', this.id)
    const path = batch === undefined ? single : single.replace('/job-take/', '/job-take-batch/')
    return this.#ask(
      'GET',
      `${path}${batch === undefined ? '' : `&batch_size=${batch}`}&job_in_progress=${busy === true ? 1 : 0}`,
      asking,
    )
  }

  /** Takes a queued job; fails if the queue is empty. */
  async takeJob(): Promise<JobId> {
    const { status, json, text } = await this.take()
    assert.equal(status, 200, text)
    return json.id
  }

  /** Posts a result. */
  async done(job: JobId, result: unknown = { output: 'done' }, headers: Record<string, string> = {}): Promise<Answer> {
    const answer = await this.#ask('POST', this.#path('RUNPOD_WEBHOOK_POST_OUTPUT', job), { body: result, headers })
    await this.#rig.clock.settle()
    return answer
  }

  /** Posts several results in one call: ids and texts in turn, each in a line. */
  async doneTogether(...lines: readonly string[]): Promise<Answer> {
    const body = lines.join('\n')
    const answer = await this.#ask('POST', this.#path('RUNYARD_WEBHOOK_POST_OUTPUTS', ''), { body })
    await this.#rig.clock.settle()
    return answer
  }

  /** Posts a chunk of its stream. */
  async chunk(job: JobId, chunk: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const answer = await this.#ask('POST', this.#path('RUNPOD_WEBHOOK_POST_STREAM', job), { body: chunk, headers })
    await this.#rig.clock.settle()
    return answer
  }

  /** The relay reports that a response with jobs did not reach the worker, for jobs claimed after an instant. */
  undelivered(sinceMs: number, added: Record<string, string> = {}): Promise<Answer> {
    const headers = { 'x-runyard-undelivered-since': String(sinceMs), ...added }
    return this.#ask('GET', this.#path('RUNPOD_WEBHOOK_GET_JOB', this.id), { headers })
  }

  /** Polls for jobs to stop. The long poll may last 25 s. */
  stops(): Promise<Answer> {
    const path = this.#path('RUNPOD_WEBHOOK_GET_JOB', this.id).replace('/job-take/', '/job-stop/')
    return this.#ask('GET', path)
  }

  /** Sends a ping with its jobs; `extraQuery` is added to the query. */
  ping(jobs: readonly string[] = [], extraQuery = ''): Promise<Answer> {
    return this.#ask('GET', `${this.#path('RUNPOD_WEBHOOK_PING', '')}&job_id=${jobs.join(',')}${extraQuery}`)
  }

  /** Prints a message about a job like the Python SDK. */
  print(job: JobId, message: string, level = 'ERROR'): void {
    this.#rig.print(this.id, JSON.stringify({ requestId: job, message, level }))
  }

  /** The worker in the store. */
  async record(): Promise<Worker> {
    const worker = await this.#rig.store.workers.find(this.id)
    assert.ok(worker !== null)
    return worker
  }

  #ask(method: string, path: string, asking: Asking = {}): Promise<Answer> {
    return this.#rig.ask(method, path, { key: this.spec.protocolEnv.RUNPOD_AI_API_KEY!, ...asking })
  }

  #path(name: string, id: string): string {
    const url = new URL(this.spec.protocolEnv[name]!.replace('$RUNPOD_POD_ID', this.id).replace('$ID', id))
    return `${url.pathname}${url.search}`
  }
}

/** A started rig, which is closed after the test. */
export async function openRig(context: TestContext, options: RigOptions = {}): Promise<Rig> {
  const { openStore = () => openSqliteStore({ file: ':memory:', host: 'inline' }) } = options
  const store = await openStore()
  const rig = new Rig(store, options)
  await rig.start()
  context.after(async () => {
    await rig.crash()
    await store.close()
  })
  return rig
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
