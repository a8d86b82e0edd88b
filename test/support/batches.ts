import assert from 'node:assert/strict'
import type { EndpointId, JobId } from '../../src/core/ids.ts'
import type { Answer, Rig, RigWorker } from './rig.ts'

/** The batch operations of one endpoint of a rig. */
export class RigBatches {
  readonly #rig: Rig
  readonly #base: string

  constructor(rig: Rig, endpoint: EndpointId) {
    this.#rig = rig
    this.#base = `/v2/${endpoint}/batch`
  }

  /** Creates a draft with these requests. */
  async draft(requests: readonly unknown[] | number = 0, fields: Record<string, unknown> = {}): Promise<string> {
    const all = typeof requests === 'number' ? inputs(requests) : requests
    const { status, json, text } = await this.#rig.ask('POST', this.#base, { body: { ...fields, requests: all } })
    assert.equal(status, 200, text)
    return json.id
  }

  /** Creates a batch whose requests are queued. */
  async running(requests: readonly unknown[] | number, fields: Record<string, unknown> = {}): Promise<string> {
    const id = await this.draft(requests, fields)
    const { status, text } = await this.post(id, 'finalize')
    assert.equal(status, 200, text)
    await this.#rig.clock.settle()
    return id
  }

  /** One operation on a batch. */
  post(id: string, operation: string, body?: unknown): Promise<Answer> {
    return this.#rig.ask('POST', `${this.#base}/${id}/${operation}`, body === undefined ? {} : { body })
  }

  /** The response of the read operation. */
  read(id: string): Promise<Answer> {
    return this.#rig.ask('GET', `${this.#base}/${id}`)
  }

  /** Its state and its numbers of requests: total, in progress, completed and failed. */
  async counts(id: string): Promise<[string, number, number, number, number]> {
    const { status, json, text } = await this.read(id)
    assert.equal(status, 200, text)
    const { requestTotal, requestInProgress, requestCompleted, requestFailed } = json
    return [json.status, requestTotal, requestInProgress, requestCompleted, requestFailed]
  }

  /** A page of its requests. */
  async page(id: string, query = '') {
    const { status, json, text } = await this.#rig.ask('GET', `${this.#base}/${id}/requests${query}`)
    assert.equal(status, 200, text)
    return json
  }

  /** The ids of its requests, up to a thousand. */
  async ids(id: string): Promise<JobId[]> {
    return (await this.page(id, '?limit=1000')).requests.map((request: { id: JobId }) => request.id)
  }
}

/** Requests with numbers from 1 to `count`. */
export function inputs(count: number): { input: { n: number } }[] {
  return Array.from({ length: count }, (_, n) => ({ input: { n } }))
}

/** A worker takes and finishes up to `most` jobs. Returns their inputs in order. */
export async function workOff(worker: RigWorker, most: number): Promise<unknown[]> {
  const inputs: unknown[] = []
  for (let n = 0; n < most; n += 1) {
    const { status, json } = await worker.take()
    if (status !== 200) break
    inputs.push(json.input)
    await worker.done(json.id, { output: json.input })
  }
  return inputs
}
