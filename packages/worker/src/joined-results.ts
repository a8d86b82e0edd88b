import { type Ask, type Client, NoAnswer, type Reply } from './http.ts'

/** Bounds of one call, below those of the platform. */
const mostResults = 100
const mostBytes = 65_536
/** Size in bytes up to which a result goes together with others. */
const mostResultBytes = 16_384

type Waiting = {
  ask: Ask & { body: string; jobId: string }
  resolve: (reply: Reply) => void
  reject: (error: unknown) => void
}

/** Sends results that are ready in the same turn of the event loop in one call, on a platform that takes them so. */
export class JoinedResults implements Client {
  readonly #client: Client
  /** Address of the call; undefined if the platform takes one result at a time. */
  #url: string | undefined
  readonly #isAlone: () => boolean
  readonly #waiting: Waiting[] = []

  /** Sends through `client`, several results to `url`. `isAlone` is true while no other job can have one. */
  constructor(client: Client, url: string | undefined, isAlone: () => boolean = () => false) {
    this.#client = client
    this.#url = url
    this.#isAlone = isAlone
  }

  /** Sends one result, and resolves to the platform's answer about it. Rejects as the client does. */
  send(ask: Ask): Promise<Reply> {
    const { body, jobId, cancel } = ask
    if (this.#waiting.length === 0 && this.#isAlone()) return this.#client.send(ask)
    if (!this.#url || body === undefined || jobId === undefined || !isShort(body)) return this.#client.send(ask)
    return new Promise((resolve, reject) => {
      // The others of its call go on without it.
      cancel?.addEventListener('abort', () => reject(new NoAnswer('cancelled')), { once: true })
      if (this.#waiting.length === 0) setImmediate(() => this.#flush())
      this.#waiting.push({ ask: { ...ask, body, jobId }, resolve, reject })
    })
  }

  #flush(): void {
    const waiting = this.#waiting.splice(0).filter(({ ask }) => !ask.cancel?.aborted)
    for (const group of groups(waiting)) void (group.length === 1 ? this.#sendAlone(group) : this.#sendJoined(group))
  }

  async #sendJoined(group: Waiting[]): Promise<void> {
    const body = group.map(({ ask }) => `${ask.jobId}\n${ask.body}`).join('\n')
    const timeoutMs = group[0]!.ask.timeoutMs
    try {
      const reply = await this.#client.send({ url: this.#url!, body, timeoutMs })
      const statuses = readStatuses(reply, group.length)
      if (!statuses) {
        // An earlier relay (404) or server (401) does not know the call. The server counts a 401 as a wrong key.
        if (isRefusal(reply)) this.#url = undefined
        await this.#sendAlone(group)
        return
      }
      for (const [at, { resolve }] of group.entries()) resolve({ ...reply, status: statuses[at]!, body: '' })
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  async #sendAlone(group: Waiting[]): Promise<void> {
    await Promise.all(group.map(({ ask, resolve, reject }) => this.#client.send(ask).then(resolve, reject)))
  }
}

function isShort(body: string): boolean {
  return body.length <= mostResultBytes && !body.includes('\n') && Buffer.byteLength(body) <= mostResultBytes
}

/** Parts of a list that one call can take each. */
function groups(waiting: Waiting[]): Waiting[][] {
  const all: Waiting[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const one of waiting) {
    const size = Buffer.byteLength(one.ask.body) + one.ask.jobId.length + 2
    const group = all.at(-1)
    if (group && group.length < mostResults && bytes + size <= mostBytes) group.push(one)
    else all.push([one])
    bytes = group === all.at(-1) ? bytes + size : size
  }
  return all
}

/** True for an answer that a further call of the kind would get, too. */
function isRefusal({ status }: Reply): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429
}

/** The status of each result; undefined if the answer has none. */
function readStatuses({ status, body }: Reply, count: number): number[] | undefined {
  if (status !== 200) return undefined
  try {
    const list: unknown = JSON.parse(body)
    return Array.isArray(list) && list.length === count && list.every(Number.isInteger) ? list : undefined
  } catch {
    return undefined
  }
}
