/**
 * The variables of OpenTelemetry that the server reads itself; the exporter reads the others, among them headers,
 * which may hold a token.
 */
import { TRACE_SAMPLERS, TRACE_SAMPLING, type TraceSampling } from '../core/observing/trace-sampling.ts'

/** Ways to send traces. */
const TRACE_PROTOCOLS = ['http/protobuf', 'http/json'] as const

/** The recording and the sending of traces. */
export interface TracingConfig {
  readonly protocol: (typeof TRACE_PROTOCOLS)[number]
  readonly serviceName: string
  /** Besides the name of the service. */
  readonly resource: Readonly<Record<string, string>>
  readonly sampling: TraceSampling
  readonly limits: {
    readonly maxQueueSize: number
    readonly maxExportBatchSize: number
    readonly scheduleDelayMs: number
    readonly exportTimeoutMs: number
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the variables. Null without an address for traces, and when a variable turns traces off. Adds mistakes to the
 * list.
 */
export function readTracing(env: Environment, mistakes: string[]): TracingConfig | null {
  const endpoint = given(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? given(env, 'OTEL_EXPORTER_OTLP_ENDPOINT')
  const exporter = given(env, 'OTEL_TRACES_EXPORTER') ?? 'otlp'
  if (endpoint === null || exporter === 'none' || given(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null
  const ownMistakes: string[] = []
  if (exporter !== 'otlp') ownMistakes.push(`OTEL_TRACES_EXPORTER must be otlp or none, not '${exporter}'`)
  // The address may hold a password, so it is not repeated.
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
    ownMistakes.push(
      'OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be http or https addresses',
    )
  const resource = readResource(given(env, 'OTEL_RESOURCE_ATTRIBUTES') ?? '', ownMistakes)
  const { 'service.name': named, ...others } = resource
  const config = {
    protocol: readProtocol(env, ownMistakes),
    serviceName: given(env, 'OTEL_SERVICE_NAME') ?? named ?? 'runyard',
    resource: others,
    sampling: readSampling(env, ownMistakes),
    limits: {
      maxQueueSize: readWholeNumber(env, 'OTEL_BSP_MAX_QUEUE_SIZE', 2_048, 1_000_000, ownMistakes),
      maxExportBatchSize: readWholeNumber(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 10_000, ownMistakes),
      scheduleDelayMs: readWholeNumber(env, 'OTEL_BSP_SCHEDULE_DELAY', 5_000, 600_000, ownMistakes),
      exportTimeoutMs: readWholeNumber(env, 'OTEL_BSP_EXPORT_TIMEOUT', 30_000, 600_000, ownMistakes),
    },
  }
  if (config.limits.maxExportBatchSize > config.limits.maxQueueSize)
    ownMistakes.push('OTEL_BSP_MAX_EXPORT_BATCH_SIZE must not be more than OTEL_BSP_MAX_QUEUE_SIZE')
  mistakes.push(...ownMistakes)
  return ownMistakes.length === 0 ? config : null
}

function readProtocol(env: Environment, mistakes: string[]): TracingConfig['protocol'] {
  const names = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']
  const name = names.find(one => given(env, one) !== null)
  const text = name === undefined ? 'http/protobuf' : given(env, name)
  const protocol = TRACE_PROTOCOLS.find(one => one === text)
  if (protocol !== undefined) return protocol
  const what = `must be one of ${TRACE_PROTOCOLS.join(', ')}, not '${text}'`
  const hint = text === 'grpc' ? '; collectors take http/protobuf at port 4318' : ''
  mistakes.push(`${name} ${what}${hint}`)
  return 'http/protobuf'
}

function readSampling(env: Environment, mistakes: string[]): TraceSampling {
  const text = given(env, 'OTEL_TRACES_SAMPLER') ?? TRACE_SAMPLING.sampler
  const sampler = TRACE_SAMPLERS.find(one => one === text)
  if (sampler === undefined) {
    mistakes.push(`OTEL_TRACES_SAMPLER must be one of ${TRACE_SAMPLERS.join(', ')}, not '${text}'`)
    return TRACE_SAMPLING
  }
  if (!sampler.endsWith('traceidratio')) return { sampler, ratio: 1 }
  const arg = given(env, 'OTEL_TRACES_SAMPLER_ARG') ?? '1'
  const ratio = /^(?:\d+|\d*\.\d+)$/.test(arg) ? Number(arg) : Number.NaN
  if (!(ratio >= 0 && ratio <= 1)) mistakes.push(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not '${arg}'`)
  return { sampler, ratio }
}

/** `name=value` pairs with commas between them, whose values may be percent-encoded. */
function readResource(text: string, mistakes: string[]): Record<string, string> {
  const pairs = text.split(',').filter(pair => pair.trim() !== '')
  const entries = pairs.map(pair => {
    const at = pair.indexOf('=')
    try {
      if (at > 0) return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())] as const
    } catch {}
    mistakes.push('OTEL_RESOURCE_ATTRIBUTES must be name=value pairs with commas between them')
    return ['', ''] as const
  })
  return Object.fromEntries(entries)
}

function readWholeNumber(env: Environment, name: string, fallback: number, max: number, mistakes: string[]): number {
  const text = given(env, name)
  if (text === null) return fallback
  if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text)
  mistakes.push(`${name} must be a whole number from 1 to ${max}, not '${text}'`)
  return fallback
}

/** An empty variable counts as none. */
function given(env: Environment, name: string): string | null {
  const text = env[name]?.trim() ?? ''
  return text === '' ? null : text
}
