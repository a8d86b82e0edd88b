/**
 * Arrivals of jobs with the duration of each.
 *
 * Two are modelled on the Azure LLM inference trace of 2023 (CC-BY, github.com/Azure/AzurePublicDataset; Patel et
 * al., "Splitwise", ISCA 2024), which is not part of this repository: the same number of rows in the same time, with
 * its published medians and means of tokens. Code arrives in bursts with pauses between them, conversations evenly.
 * The rows themselves are used if the files are in bench/autoscaler/azure under their original names.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ReplayedJob } from '../../src/core/scaling/replay.ts'

/** A trace, and the workers that run it. */
export interface Trace {
  readonly name: string
  readonly jobs: readonly ReplayedJob[]
  readonly untilMs: number
  /** Time in which a worker starts. */
  readonly startMs: number
  /** Number of jobs that a worker runs at once. */
  readonly concurrency: number
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** Times of a large model on one card: about 5,000 tokens of a prompt a second, and 33 tokens of a response. */
const PROMPT_TOKEN_MS = 0.2
const TOKEN_MS = 30

/** Generates the same numbers from 0 to 1 in each run (mulberry32). */
export class Numbers {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32
  }

  /** A time between random events. */
  exponential(mean: number): number {
    return -Math.log(this.next()) * mean
  }

  /** A number of a distribution with many small numbers and few large ones. */
  logNormal({ median, mean }: { median: number; mean: number }): number {
    const normal = Math.sqrt(-2 * Math.log(this.next())) * Math.cos(2 * Math.PI * this.next())
    return median * Math.exp(normal * Math.sqrt(2 * Math.log(mean / median)))
  }
}

interface Tokens {
  readonly prompt: { readonly median: number; readonly mean: number; readonly most: number }
  readonly response: { readonly median: number; readonly mean: number; readonly most: number }
}

const CODE: Tokens = {
  prompt: { median: 1_500, mean: 2_050, most: 7_440 },
  response: { median: 13, mean: 28, most: 2_000 },
}
const CONVERSATION: Tokens = {
  prompt: { median: 1_020, mean: 1_155, most: 14_050 },
  response: { median: 129, mean: 211, most: 1_000 },
}

/** Duration of a request with the tokens of a conversation of the trace, in milliseconds. */
export function conversationTime(numbers: Numbers): number {
  return requestTime(numbers, CONVERSATION)
}

function requestTime(numbers: Numbers, { prompt, response }: Tokens): number {
  const draw = ({ median, mean, most }: Tokens['prompt']) =>
    Math.min(most, Math.max(1, numbers.logNormal({ median, mean })))
  return tokenTime(draw(prompt), draw(response))
}

function tokenTime(prompt: number, response: number): number {
  return Math.round(prompt * PROMPT_TOKEN_MS + response * TOKEN_MS)
}

/** Arrivals of jobs at the rate of each instant, in jobs a second. */
function arrivals(
  numbers: Numbers,
  untilMs: number,
  most: number,
  rateAt: (atMs: number) => number,
  executionMs: () => number,
): ReplayedJob[] {
  const jobs: ReplayedJob[] = []
  for (let atMs = numbers.exponential(SECOND / most); atMs < untilMs; atMs += numbers.exponential(SECOND / most)) {
    if (numbers.next() * most <= rateAt(atMs)) jobs.push({ queuedAtMs: Math.round(atMs), executionMs: executionMs() })
  }
  return jobs
}

/** Rates that change between bursts and pauses, both of random length. */
function onAndOff(
  numbers: Numbers,
  untilMs: number,
  on: { ms: number; rate: number },
  off: { ms: number; rate: number },
) {
  const changes: { untilMs: number; rate: number }[] = []
  let atMs = 0
  for (let isOn = true; atMs < untilMs; isOn = !isOn) {
    const { ms, rate } = isOn ? on : off
    atMs += numbers.exponential(ms)
    changes.push({ untilMs: atMs, rate })
  }
  let at = 0
  return (nowMs: number): number => {
    while (changes[at]!.untilMs < nowMs) at += 1
    return changes[at]!.rate
  }
}

function azure(
  name: string,
  file: string,
  tokens: Tokens,
  rateAt: (numbers: Numbers, untilMs: number) => (atMs: number) => number,
  shape: { rows: number; untilMs: number; most: number },
): Trace {
  const worker = { startMs: 30 * SECOND, concurrency: 4 }
  const path = join(import.meta.dirname, 'azure', file)
  if (existsSync(path)) {
    const jobs = azureRows(readFileSync(path, 'utf8'))
    return { name: `${name}, rows of the trace`, jobs, untilMs: jobs.at(-1)!.queuedAtMs, ...worker }
  }
  const numbers = new Numbers(2_023)
  const all = arrivals(numbers, shape.untilMs, shape.most, rateAt(numbers, shape.untilMs), () =>
    requestTime(numbers, tokens),
  )
  const jobs = all.slice(0, shape.rows)
  return { name: `${name}, modelled`, jobs, untilMs: shape.untilMs, ...worker }
}

/** Rows of a file of the trace: time, tokens of the prompt and of the response. */
export function azureRows(csv: string): ReplayedJob[] {
  const rows = csv.trim().split('\n').slice(1)
  const times = rows.map(row => Date.parse(`${row.slice(0, 23).replace(' ', 'T')}Z`))
  return rows.map((row, index) => {
    const [, prompt, response] = row.split(',')
    return { queuedAtMs: times[index]! - times[0]!, executionMs: tokenTime(Number(prompt), Number(response)) }
  })
}

/** All traces. */
export function traces(): Trace[] {
  const numbers = new Numbers(7)
  const job = () => Math.round(numbers.exponential(4 * SECOND))
  const syntheticTrace = (name: string, untilMs: number, most: number, rateAt: (atMs: number) => number): Trace => ({
    name,
    jobs: arrivals(numbers, untilMs, most, rateAt, job),
    untilMs,
    startMs: 20 * SECOND,
    concurrency: 1,
  })
  return [
    azure(
      'Azure 2023, code',
      'AzureLLMInferenceTrace_code.csv',
      CODE,
      (random, untilMs) => onAndOff(random, untilMs, { ms: 20 * SECOND, rate: 6.4 }, { ms: 30 * SECOND, rate: 0 }),
      { rows: 8_819, untilMs: 57.3 * MINUTE, most: 6.4 },
    ),
    azure(
      'Azure 2023, conversation',
      'AzureLLMInferenceTrace_conv.csv',
      CONVERSATION,
      () => atMs => 5.53 + Math.sin((atMs / (58.4 * MINUTE)) * 4 * Math.PI),
      { rows: 19_366, untilMs: 58.4 * MINUTE, most: 6.53 },
    ),
    syntheticTrace('steady', 2 * HOUR, 2, () => 2),
    syntheticTrace(
      'bursts',
      2 * HOUR,
      4,
      onAndOff(numbers, 2 * HOUR, { ms: MINUTE, rate: 4 }, { ms: 3 * MINUTE, rate: 0.1 }),
    ),
    syntheticTrace('a day', 24 * HOUR, 2, atMs => 1 - Math.cos((atMs / (24 * HOUR)) * 2 * Math.PI)),
    syntheticTrace('spikes from zero', 4 * HOUR, 8, atMs => (atMs % (20 * MINUTE) < 30 * SECOND ? 8 : 0)),
  ]
}
