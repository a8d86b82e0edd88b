import type { Store } from './store.ts'

/** Name of a part of the store, such as `jobs`. */
export type StorePart = Exclude<keyof Store, 'close' | 'keepsOrder'>

/** Names of operations, such as `jobs.claim`. */
export type OperationName = { [Part in StorePart]: `${Part}.${keyof Store[Part] & string}` }[StorePart]

/** Method of the store that an operation's name stands for. */
export type MethodOf<Name extends OperationName> = Name extends `${infer Part extends StorePart}.${infer Method}`
  ? Method extends keyof Store[Part]
    ? Store[Part][Method] extends (...args: infer Args) => Promise<infer Result>
      ? (...args: Args) => Promise<Result>
      : never
    : never
  : never

/** Arguments of an operation. */
export type ArgumentsOf<Name extends OperationName> = Parameters<MethodOf<Name>>

/** Result of an operation. */
export type ResultOf<Name extends OperationName> = Awaited<ReturnType<MethodOf<Name>>>

/** Rows that services keep in memory, see services/cached-rows.ts. */
export type CachedRow = 'endpoint' | 'worker'

/** Nature of an operation: everything that a layer around the store has to know of it. */
export interface StoreOperation {
  /** True when it changes nothing. */
  readonly reads: boolean
  /**
   * Rows that it changes, of those that are kept in memory. Counts of a worker's work, such as its idle time, are no
   * change.
   */
  readonly changes?: readonly CachedRow[]
  /** Side with payloads that may be sealed: inputs of jobs, URLs of webhooks, values of variables. */
  readonly sealed?: 'arguments' | 'result'
  /**
   * Place of the argument with the instant before which it removes rows for their age; retention that waits puts it
   * off.
   */
  readonly removesBefore?: number
}

const READ = { reads: true } as const
const WRITE = { reads: false } as const
const ENDPOINT = { reads: false, changes: ['endpoint'] } as const
const WORKER = { reads: false, changes: ['worker'] } as const
const SEALED_READ = { reads: true, sealed: 'result' } as const
const SEALED_WRITE = { reads: false, sealed: 'arguments' } as const
const REMOVAL = { reads: false, removesBefore: 0 } as const

/** All operations of the store: a method of the port that is missing here is a type error. */
export const OPERATIONS = {
  jobs: {
    insert: SEALED_WRITE,
    insertOnce: SEALED_WRITE,
    keep: WRITE,
    find: READ,
    locate: READ,
    claim: { reads: false, sealed: 'result' },
    begin: WRITE,
    heldBy: READ,
    running: READ,
    setExpiry: WRITE,
    setProgress: WRITE,
    addDiagnostic: WRITE,
    diagnostics: READ,
  },
  jobOutcomes: {
    finish: WRITE,
    cancel: WRITE,
    timeOutOverdue: WRITE,
    requeueLost: WRITE,
    release: WRITE,
    takeBack: WRITE,
    takeBackOverdue: WRITE,
    retry: WRITE,
    waiting: READ,
    purge: WRITE,
    removeExpired: WRITE,
    nextDeadline: READ,
  },
  jobRecords: {
    list: READ,
    listOfOwner: READ,
    find: SEALED_READ,
    endpointOf: READ,
    remove: WRITE,
    trim: { reads: false, removesBefore: 1 },
  },
  batches: {
    create: SEALED_WRITE,
    add: SEALED_WRITE,
    hasKey: READ,
    drop: WRITE,
    rename: WRITE,
    finalize: WRITE,
    cancel: WRITE,
    find: READ,
    list: READ,
    listBefore: READ,
    requests: READ,
    release: WRITE,
    cancelWaiting: WRITE,
    unsettled: READ,
    removeExpired: WRITE,
    before: READ,
  },
  streams: { append: WRITE, read: READ, streamed: WRITE },
  largeTexts: { append: SEALED_WRITE, part: SEALED_READ, giveUp: WRITE, removeUnused: WRITE },
  stops: { pending: READ, letGo: WRITE, list: READ },
  webhooks: {
    accountsDue: READ,
    receiversDue: READ,
    due: READ,
    unnamed: SEALED_READ,
    setReceivers: WRITE,
    nextDue: READ,
    open: SEALED_READ,
    recordTry: WRITE,
    list: SEALED_READ,
    page: SEALED_READ,
    sendAgain: WRITE,
    giveUp: WRITE,
    removeOver: REMOVAL,
    key: READ,
    ensureKey: WRITE,
    replaceKey: WRITE,
  },
  endpoints: {
    insert: { reads: false, changes: ['endpoint'], sealed: 'arguments' },
    replace: { reads: false, changes: ['endpoint'], sealed: 'arguments' },
    find: SEALED_READ,
    list: SEALED_READ,
    names: READ,
    named: SEALED_READ,
    beginning: SEALED_READ,
    listed: READ,
    endedTasks: READ,
    startedTasks: READ,
    orphanedTasks: READ,
    ids: READ,
    active: READ,
    loads: READ,
    snapshot: SEALED_READ,
    ofDomain: READ,
    domains: READ,
    demand: READ,
    isFree: READ,
    remove: ENDPOINT,
  },
  templates: {
    insert: SEALED_WRITE,
    // New versions of its endpoints.
    replace: { reads: false, changes: ['endpoint'], sealed: 'arguments' },
    find: SEALED_READ,
    findPublic: SEALED_READ,
    findByName: SEALED_READ,
    list: SEALED_READ,
    listPublic: SEALED_READ,
    ofThese: SEALED_READ,
    ofEndpoints: SEALED_READ,
    users: READ,
    remove: WRITE,
  },
  alerts: {
    insertReceiver: WRITE,
    receivers: READ,
    findReceiver: READ,
    removeReceiver: WRITE,
    owners: READ,
    open: READ,
    save: WRITE,
    addMessages: WRITE,
    due: READ,
    nextDue: READ,
    waiting: READ,
    settle: WRITE,
    putOff: WRITE,
  },
  registries: {
    insert: WRITE,
    update: WRITE,
    find: READ,
    sealedPassword: READ,
    list: READ,
    remove: ENDPOINT,
  },
  volumes: { insert: WRITE, update: WRITE, find: READ, list: READ, remove: WRITE },
  apps: {
    insert: WRITE,
    find: READ,
    findByName: READ,
    list: READ,
    remove: WRITE,
    insertEnvironment: WRITE,
    findEnvironment: READ,
    findEnvironmentByName: READ,
    environments: READ,
    endpoints: READ,
    removeEnvironment: WRITE,
    target: READ,
  },
  appBuilds: {
    insertUpload: WRITE,
    findUpload: READ,
    uploadsOver: READ,
    removeUpload: WRITE,
    insert: WRITE,
    find: READ,
    manifest: READ,
    setManifest: WRITE,
    list: READ,
    activate: WRITE,
    active: READ,
    all: READ,
    remove: WRITE,
    hasArtifact: READ,
    bytes: READ,
  },
  releases: {
    list: READ,
    find: SEALED_READ,
    rollout: READ,
    addResults: WRITE,
    endTrial: WRITE,
    stop: WRITE,
    promote: WRITE,
    image: READ,
    pinImage: WRITE,
    models: READ,
    pinModel: WRITE,
    suspendFailures: READ,
    setSuspendFailures: WRITE,
    gpuMemory: READ,
    setGpuMemory: WRITE,
    images: READ,
  },
  modelAliases: { save: WRITE, find: READ, list: READ, remove: WRITE },
  servedModels: { save: WRITE, of: READ },
  secrets: {
    insert: WRITE,
    update: WRITE,
    find: READ,
    findByName: READ,
    list: READ,
    sealedValues: READ,
    remove: WRITE,
  },
  workers: {
    insert: WORKER,
    find: READ,
    findByToken: READ,
    liveTokens: READ,
    tokensOf: READ,
    alive: READ,
    loads: READ,
    known: READ,
    endedSince: READ,
    list: READ,
    started: WORKER,
    reported: WORKER,
    pulling: WORKER,
    seen: WORKER,
    served: WORKER,
    retire: WORKER,
    evict: WORKER,
    freeze: WORKER,
    thaw: WORKER,
    asleep: WORKER,
    suspending: WORKER,
    suspended: WORKER,
    suspensionOver: WORKER,
    sleepsOn: WORKER,
    pause: WORKER,
    endPause: WORKER,
    withLowPriorityOnly: READ,
    waitsToWake: WORKER,
    setShare: WORKER,
    noteProblem: WORKER,
    exited: { reads: false, changes: ['worker', 'endpoint'] },
    lastExited: READ,
    removeExited: { reads: false, changes: ['worker'], removesBefore: 0 },
  },
  queuedWorkers: { replace: WRITE, list: READ, waiting: READ },
  keys: {
    insert: WRITE,
    ensureForEndpoint: WRITE,
    replaceForEndpoint: WRITE,
    ofEndpoint: READ,
    listOfEndpoints: READ,
    update: WRITE,
    replace: WRITE,
    used: WRITE,
    findByHash: READ,
    find: READ,
    list: READ,
    remove: WRITE,
    windowCounts: READ,
    saveWindowCounts: WRITE,
  },
  sessions: { insert: WRITE, find: READ, remove: WRITE, removeOver: WRITE },
  accounts: { insert: WRITE, find: READ, update: WRITE, list: READ, sshKeys: READ, replaceSshKeys: WRITE },
  seals: {
    list: READ,
    listPayloads: READ,
    replace: ENDPOINT,
    keepCanary: WRITE,
  },
  usage: {
    jobs: READ,
    running: READ,
    workers: READ,
    countWorkers: WRITE,
    addTokens: WRITE,
    tokens: READ,
    modelsOfDay: READ,
    formerNames: READ,
    removeOld: REMOVAL,
  },
  metrics: { add: WRITE, read: READ, results: READ, queues: READ, removeOld: { reads: false, removesBefore: 1 } },
  attemptTimes: { add: WRITE, read: READ, removeOld: REMOVAL },
  upkeep: { removeOldWindows: WRITE, compact: WRITE },
  removals: { endpoints: READ, removePart: WRITE },
  quotas: { objects: READ, secretBytes: READ, beside: READ, unusedTexts: READ, jobs: READ },
  audit: { append: WRITE, list: READ, read: READ, ends: READ, verify: READ, begun: READ, removeOld: REMOVAL },
  clock: { read: READ, keep: WRITE, hold: WRITE, endHold: WRITE, accept: WRITE, adopt: WORKER },
} as const satisfies { readonly [Part in StorePart]: { readonly [Method in keyof Store[Part]]: StoreOperation } }

/** Names of the operations with payloads on a side. */
export type SealedOperation<Side extends 'arguments' | 'result'> = {
  [Part in StorePart]: {
    [Method in keyof Store[Part] & string]: Declared<Part, Method> extends { sealed: Side }
      ? `${Part}.${Method}`
      : never
  }[keyof Store[Part] & string]
}[StorePart]

type Declared<Part extends StorePart, Method> = Method extends keyof (typeof OPERATIONS)[Part]
  ? (typeof OPERATIONS)[Part][Method]
  : never

/** Method of the store, for layers that look into no argument. */
export type StoreCall = (...args: unknown[]) => Promise<unknown>

/**
 * Layer around the store, asked once for each operation.
 * @param call the method below; the layer returns it where it has nothing to do with the operation
 * @param store the whole store below
 */
export type StoreLayer = (call: StoreCall, name: OperationName, operation: StoreOperation, store: Store) => StoreCall

/** A store with a layer around its methods. It inherits those that the layer returns as they are. */
export function layered<Whole extends Store>(store: Whole, layer: StoreLayer): Whole {
  const parts = Object.entries(OPERATIONS).map(([part, operations]) => {
    const methods = store[part as StorePart] as unknown as Record<string, StoreCall>
    const own = Object.entries<StoreOperation>(operations).flatMap(([method, operation]) => {
      const call = methods[method]!
      const around = layer(call, `${part}.${method}` as OperationName, operation, store)
      return around === call ? [] : [[method, around] as const]
    })
    return [part, own.length === 0 ? methods : Object.assign(Object.create(methods), Object.fromEntries(own))]
  })
  return { ...store, ...Object.fromEntries(parts) }
}
