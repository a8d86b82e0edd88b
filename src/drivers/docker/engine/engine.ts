/**
 * The connection to a container engine: finds it, chooses a version of its API, gives every call a deadline, listens
 * to its events, and reconnects when it was away.
 */
import { existsSync } from 'node:fs'
import { type EngineAbsence, startFailureText } from '../../../core/workers/start-failure.ts'
import type { Clock } from '../../../ports/clock.ts'
import { LoopPause } from '../../base/loop-pause.ts'
import type { EngineAddress } from './engine-address.ts'
import { EngineClient, type EngineRequest } from './engine-client.ts'
import { EngineAway, EngineError, engineError } from './engine-error.ts'

/** One call of the engine, with a deadline. */
export interface EngineCall extends EngineRequest {
  /** Deadline of the response; 10 s by default. */
  readonly deadlineMs?: number
}

/** The facts of an engine. */
export interface FoundEngine {
  readonly address: EngineAddress
  readonly cpus: number
  readonly memoryBytes: number
  readonly architecture: string
  /** The folder of its images and containers; useful only if it runs on this machine. */
  readonly rootFolder: string
  /** The version of Podman; null for Docker. */
  readonly podman: string | null
}

/** Something that happened to a container of ours. */
export interface EngineEvent {
  readonly action: string
  readonly container: string
  readonly attributes: Readonly<Record<string, string>>
}

/** Options of {@link Engine}. */
export interface ContainerEngineOptions {
  readonly addresses: () => readonly EngineAddress[]
  readonly clock: Clock
  /** The label that our containers have, as `name=value`. */
  readonly label: string
  /** Called when the engine is connected, also again; events come from now on. */
  readonly onUp: () => Promise<void>
  readonly onAway: () => void
  readonly onEvent: (event: EngineEvent) => void
  /** Logs that it was found or lost. */
  readonly note: (event: 'engine.found' | 'engine.away', fields: Readonly<Record<string, unknown>>) => void
}

/** The versions of an engine. */
interface Version {
  readonly ApiVersion?: string
  readonly MinAPIVersion?: string
  readonly Version?: string
  readonly Components?: readonly { readonly Name?: string }[]
}

type Payload = AsyncIterable<Buffer> & { destroy(): void }

/** Minor versions of the API: the wanted one, and the oldest that works, which Docker 20.10 and Podman 4 have. */
const API = { wanted: 41, oldest: 40 }
const CALL_MS = 10_000
const PING_MS = 5_000
const HEALTH_MS = 10_000
const RETRY_MS = { first: 500, most: 5_000 }

/** A container engine that may come and go. */
export class Engine {
  readonly #options
  #client: EngineClient | null = null
  #facts: FoundEngine | null = null
  #absence: EngineAbsence = { how: 'unreachable', address: null, said: 'it has not been looked for yet' }
  /** True if it is up by the last entry of the log; null before the first entry. */
  #logged: boolean | null = null
  #closed = false
  readonly #pause
  #endEvents: () => void = () => {}
  readonly #tried = Promise.withResolvers<void>()

  constructor(options: ContainerEngineOptions) {
    this.#options = options
    this.#pause = new LoopPause(options.clock)
    void this.#live()
  }

  /**
   * The reason why there is no engine; null when it is connected. At a start it waits for the first attempt, some
   * seconds at most.
   */
  async absence(): Promise<EngineAbsence | null> {
    await this.#tried.promise
    return this.#facts === null ? this.#absence : null
  }

  /** The facts of the engine; null while it is away. */
  get facts(): FoundEngine | null {
    return this.#facts
  }

  /** Closes the connection and makes no further attempt. */
  close(): void {
    this.#closed = true
    this.#tried.resolve()
    this.#pause.close()
    this.#endEvents()
  }

  /** Calls the engine. @throws EngineError */
  async call<Result>(call: EngineCall): Promise<Result> {
    const client = this.#present()
    return this.#within(call, bounded => client.call<Result>(bounded))
  }

  /** Calls the engine for a streamed response; the deadline is that of its head. @throws EngineError */
  async stream(call: EngineCall): Promise<Payload> {
    const client = this.#present()
    return this.#within(call, bounded => client.stream(bounded))
  }

  async #within<Result>(
    { deadlineMs: forMs = CALL_MS, ...call }: EngineCall,
    run: (bounded: EngineRequest) => Promise<Result>,
  ): Promise<Result> {
    const deadline = new AbortController()
    const cancel = this.#options.clock.after(forMs, () => deadline.abort())
    try {
      const { signal } = call
      return await run({ ...call, signal: signal ? AbortSignal.any([deadline.signal, signal]) : deadline.signal })
    } catch (thrown) {
      if (deadline.signal.aborted) throw new EngineError(`no answer within ${forMs / 1000} s`, null, false, thrown)
      throw engineError(thrown)
    } finally {
      cancel()
    }
  }

  #present(): EngineClient {
    if (this.#client === null) throw new EngineAway(this.#absence)
    return this.#client
  }

  /** Connects and listens until the engine is lost, again and again until closed. */
  async #live(): Promise<void> {
    let waitMs = RETRY_MS.first
    while (!this.#closed) {
      const events = await this.#find()
      // Closed while it was being looked for: nobody else would end this connection.
      if (this.#closed) {
        events?.destroy()
        return
      }
      this.#tried.resolve()
      this.#log()
      if (events !== null) {
        waitMs = RETRY_MS.first
        await this.#listen(events)
        this.#absence = { how: 'lost', address: this.#facts?.address.text ?? null, said: '' }
        this.#client = null
        this.#facts = null
        if (this.#closed) return
        this.#options.onAway()
      }
      await this.#pause.wait(waitMs)
      waitMs = Math.min(waitMs * 2, RETRY_MS.most)
    }
  }

  #log(): void {
    const { note } = this.#options
    const up = this.#facts !== null
    if (this.#logged === up) return
    // An engine that was never found is no event; workers that need it show the cause.
    if (up) note('engine.found', { address: this.#facts?.address.text })
    else if (this.#logged !== null) {
      note('engine.away', { problem: startFailureText({ kind: 'engine_away', ...this.#absence }) })
    }
    this.#logged = up
  }

  async #find(): Promise<Payload | null> {
    const addresses = this.#options.addresses()
    const reachable = addresses.filter(({ socket }) => socket === null || existsSync(socket))
    const places = addresses.map(({ text }) => text).join(', ')
    this.#absence = { how: 'not_found', address: places === '' ? 'the address of DOCKER_HOST' : places, said: '' }
    for (const address of reachable) {
      try {
        return await this.#connect(address)
      } catch (thrown) {
        const { message: problem, away } = engineError(thrown)
        this.#absence = { how: away ? 'unreachable' : 'unresponsive', address: address.text, said: problem }
      }
    }
    return null
  }

  async #connect(address: EngineAddress): Promise<Payload> {
    const read = <Result>(client: EngineClient, path: string) =>
      this.#within({ method: 'GET', path, deadlineMs: PING_MS }, bounded => client.call<Result>(bounded))
    const unversioned = new EngineClient(address)
    const {
      ApiVersion = '',
      MinAPIVersion = '',
      Version = '',
      Components,
    } = await read<Version>(unversioned, '/version')
    const client = new EngineClient(address, { version: apiVersion(ApiVersion, MinAPIVersion) })
    const info = await read<Record<string, unknown>>(client, '/info')
    const query = { filters: { type: ['container'], label: [this.#options.label] } }
    const events = await this.#within({ method: 'GET', path: '/events', query, deadlineMs: PING_MS }, bounded =>
      client.stream(bounded),
    )
    this.#client = client
    this.#facts = {
      address,
      cpus: Number(info.NCPU ?? 1),
      memoryBytes: Number(info.MemTotal ?? 0),
      architecture: String(info.Architecture ?? ''),
      rootFolder: String(info.DockerRootDir ?? ''),
      podman: (Components ?? []).some(({ Name }) => /podman/i.test(Name ?? '')) ? Version : null,
    }
    return events
  }

  /** Resolves when the events end. An engine that does not respond to two pings counts as lost. */
  async #listen(events: Payload): Promise<void> {
    let over = false
    const cancels: (() => void)[] = []
    const ping = (failures: number) => {
      cancels[0] = this.#options.clock.after(HEALTH_MS, () => {
        this.call({ method: 'GET', path: '/_ping', deadlineMs: PING_MS }).then(
          () => over || ping(0),
          () => (failures > 0 ? events.destroy() : over || ping(failures + 1)),
        )
      })
    }
    ping(0)
    this.#endEvents = () => events.destroy()
    try {
      await this.#options.onUp()
      let rest = ''
      for await (const chunk of events) {
        const lines = (rest + chunk.toString()).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) this.#report(line)
      }
    } catch {
      // Whatever the cause, the next attempt connects again.
    } finally {
      over = true
      cancels[0]?.()
      events.destroy()
    }
  }

  #report(line: string): void {
    const event = JSON.parse(line.trim() === '' ? '{}' : line) as {
      Action?: string
      Actor?: { ID?: string; Attributes?: Record<string, string> }
    }
    if (event.Action === undefined || event.Actor?.ID === undefined) return
    this.#options.onEvent({ action: event.Action, container: event.Actor.ID, attributes: event.Actor.Attributes ?? {} })
  }
}

/**
 * The version of the API to use: the wanted one where the engine supports it.
 * @throws EngineError when it is too old
 */
function apiVersion(newest: string, oldest: string): string {
  const minor = (text: string) => Number(/^1\.(\d+)/.exec(text)?.[1] ?? Number.NaN)
  const [newestMinor, oldestMinor] = [minor(newest), minor(oldest)]
  if (Number.isNaN(newestMinor)) throw new EngineError('it does not speak the API of Docker', 400, false)
  if (newestMinor < API.oldest)
    throw new EngineError(`it is too old: its API is ${newest}, and 1.${API.oldest} is needed`, 400, false)
  return `1.${Math.max(Math.min(API.wanted, newestMinor), Number.isNaN(oldestMinor) ? 0 : oldestMinor)}`
}
