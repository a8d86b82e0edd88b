/**
 * The receiver of the OpenTelemetry Collector, from the folder that `RUNYARD_TEST_COLLECTOR`
 * names; see `.ci/collector`.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../../support/free-ports.ts'
import { atEnd, atExit } from './cleanup.ts'
import { until } from './until.ts'

const folder = process.env.RUNYARD_TEST_COLLECTOR ?? ''

/** Reason why tests with a collector cannot run; false if they can. */
export const noCollector: string | false =
  folder === '' ? 'set RUNYARD_TEST_COLLECTOR to run the tests of traces; .ci/collector build makes it' : false

if (noCollector !== false && process.env.RUNYARD_NO_SKIP === '1') throw new Error(noCollector)

/** A span as it arrived. Instants are epoch milliseconds. */
export interface ReceivedSpan {
  readonly service: string
  readonly traceId: string
  readonly spanId: string
  /** Null for a root. */
  readonly parentId: string | null
  readonly name: string
  /** As in OTLP: 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly isError: boolean
  readonly links: readonly string[]
}

/** A collector that runs. */
export interface Collector {
  /** Value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  /** Spans that arrived so far. */
  spans(): ReceivedSpan[]
  /** The attributes that were sent with all spans of a service. */
  resource(service: string): Readonly<Record<string, unknown>> | undefined
}

/** Starts a collector, which ends with the test file. */
export async function startCollector(port?: number): Promise<Collector> {
  const chosen = port ?? (await freePort())
  const child = spawn(join(folder, 'collector'), [`127.0.0.1:${chosen}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const ended = new Promise(resolve => child.on('close', resolve))
  const takeBack = atExit(() => child.kill('SIGKILL'))
  atEnd(async () => {
    child.kill('SIGKILL')
    await ended
    takeBack()
  })
  const url = `http://127.0.0.1:${chosen}`
  await until('the collector to listen', () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  const requests = () =>
    printed
      .split('\n')
      .slice(0, -1)
      .flatMap(line => (JSON.parse(line) as Otlp).resourceSpans)
  return {
    url,
    spans: () => requests().flatMap(receivedSpans),
    resource: service =>
      requests()
        .map(({ resource }) => attributeValues(resource.attributes))
        .find(values => values['service.name'] === service),
  }
}

interface Otlp {
  readonly resourceSpans: readonly ResourceSpans[]
}

interface ResourceSpans {
  readonly resource: { readonly attributes: readonly Attribute[] }
  readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind?: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes?: readonly Attribute[]
  readonly status?: { readonly code?: number }
  readonly links?: readonly { readonly spanId: string }[]
}

function receivedSpans({ resource, scopeSpans }: ResourceSpans): ReceivedSpan[] {
  const service = String(attributeValues(resource.attributes)['service.name'])
  return scopeSpans
    .flatMap(({ spans }) => spans)
    .map(span => ({
      service,
      traceId: span.traceId,
      spanId: span.spanId,
      parentId: span.parentSpanId === undefined || span.parentSpanId === '' ? null : span.parentSpanId,
      name: span.name,
      kind: span.kind ?? 0,
      startMs: Number(span.startTimeUnixNano) / 1e6,
      endMs: Number(span.endTimeUnixNano) / 1e6,
      attributes: attributeValues(span.attributes ?? []),
      isError: span.status?.code === 2,
      links: (span.links ?? []).map(({ spanId }) => spanId),
    }))
}

function attributeValues(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
