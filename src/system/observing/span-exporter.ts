/** Sends spans with the exporters of OpenTelemetry, optional packages for installations with traces. */
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import type { Span } from '../../core/observing/span.ts'
import type { SendSpans } from './span-queue.ts'

/** A span as the exporters take it. */
type ReadableSpan = Parameters<OTLPTraceExporter['export']>[0][number]

/** Facts about the server itself, with all spans. */
export interface SpanSource {
  readonly serviceName: string
  readonly version: string
  readonly resource: Readonly<Record<string, string>>
}

/** Sends spans, and ends its connections. */
export interface SpanExporter {
  readonly send: SendSpans
  close(): Promise<void>
}

/** The packages by protocol. */
export const SPAN_EXPORTERS = {
  'http/protobuf': '@opentelemetry/exporter-trace-otlp-proto',
  'http/json': '@opentelemetry/exporter-trace-otlp-http',
} as const

const SUCCESS = 0
const KINDS = { internal: 0, server: 1, client: 2 } as const
const STATUS = { unset: 0, error: 2 } as const

/**
 * Loads the exporter. It reads the destination of spans, and its headers, from the variables of OpenTelemetry.
 * @returns null without its package
 */
export async function loadSpanExporter(
  protocol: keyof typeof SPAN_EXPORTERS,
  source: SpanSource,
): Promise<SpanExporter | null> {
  const load =
    protocol === 'http/json'
      ? () => import('@opentelemetry/exporter-trace-otlp-http')
      : () => import('@opentelemetry/exporter-trace-otlp-proto')
  try {
    const { OTLPTraceExporter } = await load()
    const exporter = new OTLPTraceExporter()
    const toReadable = readableSpans(source)
    const send: SendSpans = spans =>
      new Promise((resolve, reject) => {
        exporter.export(spans.map(toReadable), ({ code, error }) => {
          if (code === SUCCESS) resolve()
          else reject(error ?? new Error('the spans could not be sent'))
        })
      })
    return { send, close: () => exporter.shutdown() }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}

function readableSpans({ serviceName, version, resource: given }: SpanSource): (span: Span) => ReadableSpan {
  const attributes = { ...given, 'service.name': serviceName, 'service.version': version }
  // All spans share it: they are sent together.
  const resource: ReadableSpan['resource'] = {
    attributes,
    getRawAttributes: () => Object.entries(attributes),
    merge: () => resource,
  }
  const instrumentationScope = { name: 'runyard', version }
  return span => {
    const { traceId, spanId, parentId, isParentRemote, name, kind, startMs, endMs, error, links } = span
    const traceFlags = 1
    const parent = parentId === null ? undefined : { traceId, spanId: parentId, traceFlags, isRemote: isParentRemote }
    return {
      name,
      kind: KINDS[kind],
      spanContext: () => ({ traceId, spanId, traceFlags }),
      ...(parent === undefined ? {} : { parentSpanContext: parent }),
      startTime: highResolutionTime(startMs),
      endTime: highResolutionTime(endMs),
      duration: highResolutionTime(endMs - startMs),
      ended: true,
      status: { code: error === null ? STATUS.unset : STATUS.error },
      attributes: error === null ? span.attributes : { ...span.attributes, 'error.type': error },
      links: links.map(context => ({ context: { ...context, traceFlags } })),
      events: [],
      resource,
      instrumentationScope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    }
  }
}

/** Seconds and nanoseconds. */
function highResolutionTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)]
}
