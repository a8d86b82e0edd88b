/** Policies for twelve models on two cards, by the requests of a public trace, in virtual time. */

import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'
import { type PolicySettings, playControlPlane } from '../policy/control-plane.ts'
import { type Model, type ModelRequest, modelRequests } from '../policy/model-requests.ts'
import { playSwapper, type SwapperSettings } from '../policy/model-swapper.ts'
import type { PolicyOutcome } from '../policy/policy-outcome.ts'

const COLUMNS = [
  { heading: 'without a cold start %', decimals: 1 },
  { heading: 'wait p50 s', decimals: 1 },
  { heading: 'p95 s', decimals: 1 },
  { heading: 'p99 s', decimals: 1 },
  { heading: 'wait and work p95 s', decimals: 1 },
  { heading: 'card seconds', decimals: 0 },
  { heading: 'starts', decimals: 0 },
  { heading: 'resumes', decimals: 0 },
  { heading: 'suspended GiB, mean', decimals: 0 },
]

/** Times of a start beyond the measured one. */
const WEIGHTS_S = [0, 30]
/** The last four hours of the sample, in which each model has requests. */
const FROM_MINUTE = 240
const UNTIL_MINUTE = 480
const UNTIL_MINUTE_QUICK = 250

/** See the head of this file. */
export const policy: Suite = {
  name: 'policy',
  title: 'Twelve models on two cards',
  notes:
    'Virtual time, nothing is measured by a clock: four hours of requests for twelve models of 8, 20 and 40 GiB on two cards of 80 GB. The arrivals are those of twelve functions of the Azure Functions Trace 2019 (CC-BY, Shahrad et al., "Serverless in the Wild", USENIX ATC 2020). Runyard is the whole control plane on the clock of its simulator, with played cards; LRU is a swapper of models that ends the one used least recently. Suspends, restores and starts take the times that were measured on an H100; those starts read no weights, so in the second table they take 30 s longer. Settings of Runyard: idle timeout 300 s, the rest by default unless named. [Method and meaning](internals/performance.md#policies-for-cards).',
  quick: false,
  async run(_bench, { isQuick }, wants) {
    const trace = modelRequests(FROM_MINUTE, isQuick ? UNTIL_MINUTE_QUICK : UNTIL_MINUTE)
    const tables: Table[] = []
    for (const weightsS of isQuick ? WEIGHTS_S.slice(0, 1) : WEIGHTS_S) {
      const table = await policyTable(trace, weightsS, wants)
      console.log(tableText(table))
      tables.push(table)
    }
    return tables
  },
}

type Trace = { readonly models: readonly Model[]; readonly requests: readonly ModelRequest[] }

/** The settings of the server and its endpoints that all sides of Runyard have, unless a side says otherwise. */
const SETTINGS = { shares: true, suspends: true, idleTimeoutS: 300, dwellS: 30, suspendedGib: null } as const

type Side = readonly [name: string, play: (trace: Trace, weightsMs: number) => Promise<PolicyOutcome>]

const SIDES: readonly Side[] = [
  swapper('LRU, a model on each card', { shares: false, startsAtOnce: true }),
  swapper('LRU, models share cards, a start at a time on each', { shares: true, startsAtOnce: false }),
  swapper('LRU, models share cards, starts at once', { shares: true, startsAtOnce: true }),
  runyard('Runyard, whole cards', { shares: false, suspends: false }),
  runyard('Runyard, whole cards, suspends', { shares: false }),
  runyard('Runyard, shares', { suspends: false }),
  runyard('Runyard, shares and suspends', {}),
  runyard('Runyard, the same, 200 GiB for suspended workers', { suspendedGib: 200 }),
  runyard('Runyard, the same, and --dwell 5', { suspendedGib: 200, dwellS: 5 }),
]

function swapper(name: string, settings: Omit<SwapperSettings, 'weightsMs'>): Side {
  return [name, (trace, weightsMs) => playSwapper(trace, { ...settings, weightsMs })]
}

function runyard(name: string, settings: Partial<PolicySettings>): Side {
  return [name, (trace, weightsMs) => playControlPlane(trace, { ...SETTINGS, ...settings, weightsMs })]
}

async function policyTable(trace: Trace, weightsS: number, wants: (side: string) => boolean): Promise<Table> {
  const rows: TableRow[] = []
  for (const [name, play] of SIDES) if (wants(name)) rows.push(row(name, await play(trace, weightsS * 1_000)))
  const title = weightsS === 0 ? 'Starts as measured' : `Starts ${weightsS} s longer than measured`
  return { title, columns: COLUMNS, bars: 0, rows, ratios: {} }
}

function row(name: string, outcome: PolicyOutcome): TableRow {
  const { waitsMs, wholeMs, warm, cardSeconds, starts, resumes, suspendedGib } = outcome
  const waits = [0.5, 0.95, 0.99].map(part => at(waitsMs, part) / 1_000)
  const warmPercent = (100 * warm) / waitsMs.length
  return {
    name,
    cells: [warmPercent, ...waits, at(wholeMs, 0.95) / 1_000, cardSeconds, starts, resumes, suspendedGib],
  }
}

function at(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0
}
