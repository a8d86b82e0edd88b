/** Twelve models and the requests for them, by a sample of the Azure Functions Trace 2019 (README.md here). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { conversationTime, Numbers } from '../autoscaler/traces.ts'

/** A model and the memory of a card that its worker needs. */
export interface Model {
  readonly name: string
  /** Memory on the card, in GiB. */
  readonly gib: number
}

/** A request for a model. Times in milliseconds from the begin of the trace. */
export interface ModelRequest {
  /** Index of its model. */
  readonly model: number
  readonly atMs: number
  /** Duration on a card that its worker has for itself. */
  readonly workMs: number
}

const MINUTE_MS = 60_000
/** Sizes of the models in the order of the sample, again and again, so that size and demand are independent. */
const SIZES_GIB = [8, 20, 40]

/** The models and requests of some minutes of the sample, which has 480. */
export function modelRequests(
  fromMinute: number,
  untilMinute: number,
): { models: readonly Model[]; requests: readonly ModelRequest[] } {
  const lines = readFileSync(join(import.meta.dirname, 'azure-functions-2019.csv'), 'utf8')
    .trim()
    .split('\n')
  const numbers = new Numbers(2_019)
  const models: Model[] = []
  const requests: ModelRequest[] = []
  for (const [model, line] of lines.entries()) {
    const [name = '', ...counts] = line.split(',')
    models.push({ name, gib: SIZES_GIB[model % SIZES_GIB.length]! })
    for (const [minute, count] of counts.slice(fromMinute, untilMinute).entries())
      for (let n = 0; n < Number(count); n += 1) {
        const atMs = Math.floor((minute + numbers.next()) * MINUTE_MS)
        requests.push({ model, atMs, workMs: conversationTime(numbers) })
      }
  }
  return { models, requests: requests.sort((a, b) => a.atMs - b.atMs) }
}
