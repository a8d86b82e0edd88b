/** Downloads of images: one for all workers that wait for the same image, with how far it has come. */
import { parseReference } from '../../../core/endpoints/image-reference.ts'
import { AppError } from '../../../core/errors.ts'
import { type PullProblem, WorkerStartError } from '../../../core/workers/start-failure.ts'
import type { Clock } from '../../../ports/clock.ts'
import type { RegistryCredential } from '../../../ports/driver.ts'
import { clean, pullProblem } from '../../base/refusals.ts'
import type { Engine } from '../engine/engine.ts'
import { EngineAway, type EngineError, engineError } from '../engine/engine-error.ts'

/** An image to download, and those who wait for it. */
export interface PullRequest {
  /** A reference with a tag or a digest. */
  readonly image: string
  readonly credential: RegistryCredential | null
  /** Gives up waiting; the download ends with the last that waits. */
  readonly signal: AbortSignal
  readonly onPercent: (percent: number | null) => void
}

/** A line of the engine's report. */
interface Report {
  readonly id?: string
  readonly status?: string
  readonly progressDetail?: { readonly current?: number; readonly total?: number }
  readonly error?: string
  readonly errorDetail?: { readonly message?: string }
}

interface SharedPull {
  readonly done: Promise<void>
  readonly listeners: Set<(percent: number | null) => void>
  readonly stop: AbortController
  percent: number | null
  waiting: number
}

/** Maximum time without progress of a download, in ms. */
const STALL_MS = 5 * 60_000

/** The downloads that are under way. */
export class Pulls {
  readonly #engine
  readonly #clock
  readonly #running = new Map<string, SharedPull>()

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  /** Downloads an image. @throws WorkerStartError with the reason */
  async pull(request: PullRequest): Promise<void> {
    const { image, credential, signal, onPercent } = request
    // An account that may not have an image must not get it by the credential of another one.
    const key = JSON.stringify([image, credential])
    const shared = this.#running.get(key) ?? this.#begin(key, image, credential)
    shared.waiting += 1
    shared.listeners.add(onPercent)
    onPercent(shared.percent)
    try {
      await untilAborted(shared.done, signal)
    } finally {
      shared.listeners.delete(onPercent)
      shared.waiting -= 1
      if (shared.waiting === 0) {
        shared.stop.abort()
        if (this.#running.get(key) === shared) this.#running.delete(key)
      }
    }
  }

  #begin(key: string, image: string, credential: RegistryCredential | null): SharedPull {
    const stop = new AbortController()
    const listeners = new Set<(percent: number | null) => void>()
    const done = this.#run(image, credential, stop, percent => {
      shared.percent = percent
      for (const listener of listeners) listener(percent)
    }).finally(() => {
      if (this.#running.get(key) === shared) this.#running.delete(key)
    })
    const shared: SharedPull = { done, listeners, stop, percent: null, waiting: 0 }
    this.#running.set(key, shared)
    return shared
  }

  async #run(
    image: string,
    credential: RegistryCredential | null,
    stop: AbortController,
    onPercent: (percent: number | null) => void,
  ): Promise<void> {
    let stalled = false
    const watch = () =>
      this.#clock.after(STALL_MS, () => {
        stalled = true
        stop.abort()
      })
    let cancel = watch()
    try {
      const report = await this.#engine.stream({
        method: 'POST',
        path: '/images/create',
        query: pullQuery(image),
        deadlineMs: STALL_MS,
        signal: stop.signal,
        ...(credential === null ? {} : { auth: registryAuth(image, credential) }),
      })
      const progress = new Progress()
      let rest = ''
      for await (const chunk of report) {
        cancel()
        cancel = watch()
        const lines = (rest + chunk.toString()).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) progress.add(readReport(line))
        onPercent(progress.percent)
      }
      progress.add(readReport(rest))
    } catch (thrown) {
      if (thrown instanceof AppError) throw thrown
      if (stalled) throw pullFailure(image, 'stalled', `nothing came for ${STALL_MS / 60_000} minutes`, thrown)
      throw pullRefusal(image, credential, engineError(thrown))
    } finally {
      cancel()
    }
  }
}

/** Progress of a download, over its layers. Reports that are errors are thrown. */
class Progress {
  readonly #layers = new Map<string, { total: number; part: number }>()
  #most = 0

  add({ id, status, progressDetail, error, errorDetail }: Report): void {
    if (error !== undefined) throw new Error(errorDetail?.message ?? error)
    if (id === undefined || status === undefined) return
    const layer = this.#layers.get(id)
    const total = progressDetail?.total ?? layer?.total ?? 0
    const share = total === 0 ? 0 : Math.min(1, (progressDetail?.current ?? 0) / total)
    const part = DONE.has(status)
      ? (DONE.get(status) ?? 1)
      : status === 'Downloading'
        ? share * UNPACK
        : UNPACK + share * (1 - UNPACK)
    if (DONE.has(status) || status === 'Downloading' || status === 'Extracting') {
      this.#layers.set(id, { total: layer === undefined || total > layer.total ? total : layer.total, part })
    } else if (layer === undefined && WAITING.has(status)) this.#layers.set(id, { total: 0, part: 0 })
  }

  /** 0 to 100, never less than before; null while no size is known. */
  get percent(): number | null {
    const layers = [...this.#layers.values()]
    const sizedLayers = layers.filter(({ total }) => total > 0)
    if (sizedLayers.length === 0) return null
    const sum = sizedLayers.reduce((all, { total }) => all + total, 0)
    // A layer of unknown size counts as an average one.
    const average = sum / sizedLayers.length
    const weighed = layers.map(({ total, part }) => ({ weight: total > 0 ? total : average, part }))
    const totalWeight = weighed.reduce((weights, { weight }) => weights + weight, 0)
    const done = weighed.reduce((parts, { weight, part }) => parts + weight * part, 0)
    this.#most = Math.max(this.#most, Math.floor((100 * done) / totalWeight))
    return this.#most
  }
}

/** Share of the progress of a layer at which its download ends and its unpacking begins. */
const UNPACK = 0.7
const WAITING = new Set(['Pulling fs layer', 'Waiting'])
const DONE = new Map([
  ['Verifying Checksum', UNPACK],
  ['Download complete', UNPACK],
  ['Pull complete', 1],
  ['Already exists', 1],
])

function readReport(line: string): Report {
  return line.trim() === '' ? {} : (JSON.parse(line) as Report)
}

function pullQuery(image: string): Record<string, string> {
  const { name, tag, digest } = parseReference(image) ?? { name: image, tag: null, digest: null }
  return { fromImage: name, tag: digest ?? tag ?? 'latest' }
}

/** Credentials go to the registry that the image names, and nowhere else. */
export function registryAuth(image: string, { username, password }: RegistryCredential): Record<string, string> {
  const host = parseReference(image)?.registry ?? 'docker.io'
  return { username, password, serveraddress: host === 'docker.io' ? 'https://index.docker.io/v1/' : host }
}

/** The reason why an image could not be downloaded. The registry's message is part of it, passwords never are. */
function pullRefusal(image: string, credential: RegistryCredential | null, error: EngineError): WorkerStartError {
  const { message } = error
  if (error instanceof EngineAway) return pullFailure(image, 'engine_away', message, error)
  const reason = clean(credential === null ? message : message.replaceAll(credential.password, '***'))
  const problem = pullProblem(reason, credential !== null)
  return pullFailure(image, problem, reason, error)
}

function pullFailure(image: string, problem: PullProblem, reason: string, cause: unknown): WorkerStartError {
  const host = parseReference(image)?.registry ?? 'its registry'
  return new WorkerStartError({ kind: 'pull_failed', image, host, why: problem, said: reason }, { cause })
}

function untilAborted(done: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new WorkerStartError({ kind: 'stopped', during: 'download' }))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    done.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
