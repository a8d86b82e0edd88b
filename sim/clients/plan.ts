import type { EndpointId } from '../../src/core/ids.ts'
import type { Checks } from '../checks/checks.ts'
import type { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { Calls } from './calls.ts'
import { STREAM_SHAPES, type StreamShape } from './stream-reader.ts'

/** Parts that the scenario of a job uses. */
export interface ScenarioParts {
  readonly world: World
  readonly checks: Checks
  readonly calls: Calls
  readonly life: Life
  readonly random: SeededRandom
  /** Picks an endpoint that exists. */
  readonly endpoint: () => EndpointId
}

/** Steps of a client with one job. */
export interface JobPlan {
  readonly kind: 'run' | 'runsync' | 'openai'
  /** Identifies the job; part of its input. */
  readonly tag: string
  readonly body: string
  /** Its Idempotency-Key. */
  readonly key: string | null
  readonly ttlMs: number | undefined
  /** Time from its acknowledgement to its cancellation; null for never. */
  readonly cancelAfterMs: number | null
  /** Another ttl, and when to request it. */
  readonly newTtl: { readonly ms: number; readonly afterMs: number } | null
  /** Maximum number of retries when it fails. */
  readonly retries: number
  readonly follow: 'status' | 'status-sync' | StreamShape
  /** True to read the OpenAI response as a stream. */
  readonly streamed: boolean
  /** `wait` of a `runsync`, in milliseconds; undefined for the default. */
  readonly waitMs: number | undefined
}

/** Draws what a client does next. @param hasShortJobs true where nearly all jobs are short */
export function drawPlan(random: SeededRandom, tag: string, hasShortJobs = false): JobPlan {
  const roll = random.fraction()
  const kind = roll < 0.08 ? 'openai' : roll < 0.35 ? 'runsync' : 'run'
  const streamed = random.chance(0.6)
  const hasStream = kind === 'openai' ? streamed : random.chance(0.35)
  const ttlMs = kind !== 'openai' && random.chance(0.12) ? random.int(10_000, 90_000) : undefined
  const drawnMs = random.chance(0.15) ? random.int(4_000, 9_000) : random.int(20, 2_500)
  const isShort = hasShortJobs && drawnMs % 50 !== 0
  const ms = isShort ? drawnMs % 100 : drawnMs
  const poison = random.chance(0.04)
  const input = {
    ms,
    fail: random.chance(0.08),
    chunks: hasStream ? Math.min(random.int(1, 8), isShort ? 1 : 8) : 0,
    tag,
    ...(poison && { poison }),
  }
  const lowPriority = ttlMs !== undefined && random.chance(0.3)
  const policy = {
    ...(random.chance(0.8) ? { executionTimeout: random.int(12_000, 30_000) } : {}),
    ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
    ...(lowPriority ? { lowPriority } : {}),
  }
  const webhook = random.chance(0.3) ? { webhook: `http://receiver.sim/${tag}` } : {}
  const body = kind === 'openai' ? { ...input, stream: streamed } : { input, policy, ...webhook }
  return {
    kind,
    tag,
    body: JSON.stringify(body),
    ttlMs,
    streamed,
    key: kind !== 'openai' && random.chance(0.25) ? `key of ${tag}` : null,
    cancelAfterMs: random.chance(0.12) ? random.int(0, 12_000) : null,
    newTtl: random.chance(0.06) ? { ms: random.int(1_000, 60_000), afterMs: random.int(0, 10_000) } : null,
    retries: random.chance(0.7) ? random.int(1, 2) : 0,
    follow: hasStream ? random.pick(STREAM_SHAPES) : random.pick(['status', 'status', 'status-sync']),
    waitMs: random.chance(0.5) ? random.int(1_000, 50_000) : undefined,
  }
}
