/**
 * The metrics of requests through the gateway. Each request counts, so the counters of each endpoint are kept at hand;
 * the counters of prom-client look for it by the text of all labels each time.
 */
import type { Metric, Registry } from 'prom-client'
import type { AccessLogEntry } from '../../core/balancing/access-log-entry.ts'

/** In seconds: milliseconds of a fast server, and minutes of a stream or of a wait for a start. */
const BUCKETS = [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 120, 600]
/** By their first digit, which is never 0. */
const STATUSES = ['aborted', ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(digit => `${digit}xx`)]

/** Counts of one endpoint. */
interface Series {
  /** By {@link STATUSES}. */
  readonly over: number[]
  broken: number
  retries: number
  bytesIn: number
  bytesOut: number
  readonly wait: Times
  readonly connect: Times
  readonly firstByte: Times
  readonly total: Times
}

/** Times in seconds, by bucket. */
class Times {
  /** The number of times within each bucket and above the one before. */
  readonly counts = BUCKETS.map(() => 0)
  sum = 0
  count = 0

  add(ms: number): void {
    const seconds = ms / 1_000
    this.sum += seconds
    this.count += 1
    for (let at = 0; at < BUCKETS.length; at += 1) {
      if (seconds > BUCKETS[at]!) continue
      this.counts[at]! += 1
      return
    }
  }
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
}

/** Counts requests and upgraded connections that have ended, by the label of their endpoint. */
export class GatewayMetrics {
  readonly #series = new Map<string, Series>()
  readonly #registry

  constructor(registry: Registry) {
    this.#registry = registry
    this.#counter('requests_total', 'Requests that were admitted and have ended', ({ over }) =>
      over.map((count, at) => ({ labels: { status: STATUSES[at]! }, value: count })),
    )
    this.#counter('broken_total', 'Responses that broke off', ({ broken }) => [{ labels: {}, value: broken }])
    this.#counter('retries_total', 'Requests that were sent to another worker', ({ retries }) => [
      { labels: {}, value: retries },
    ])
    this.#counter('bytes_total', 'Bytes of bodies and upgraded connections', ({ bytesIn, bytesOut }) => [
      { labels: { direction: 'in' }, value: bytesIn },
      { labels: { direction: 'out' }, value: bytesOut },
    ])
    this.#histogram('wait_seconds', 'How long requests waited for a worker', ({ wait }) => wait)
    this.#histogram('connect_seconds', 'Time to open a new connection to a worker', ({ connect }) => connect)
    this.#histogram('first_byte_seconds', 'Time to the start of a response', ({ firstByte }) => firstByte)
    this.#histogram('request_seconds', 'Time to the last byte of a response', ({ total }) => total)
  }

  /** True if the endpoint has series. */
  has(endpoint: string): boolean {
    return this.#series.has(endpoint)
  }

  /** Removes the series of the endpoint. */
  remove(endpoint: string): void {
    this.#series.delete(endpoint)
  }

  /** Counts a request. */
  count(endpoint: string, passed: AccessLogEntry): void {
    let series = this.#series.get(endpoint)
    if (series === undefined) {
      series = nothing()
      this.#series.set(endpoint, series)
    }
    const { status, tries, connectMs, firstByteMs } = passed
    series.over[status === 499 ? 0 : Math.floor(status / 100)]! += 1
    if (!passed.complete && firstByteMs !== null && status !== 499) series.broken += 1
    if (tries > 1) series.retries += tries - 1
    series.bytesIn += passed.bytesIn
    series.bytesOut += passed.bytesOut
    series.wait.add(passed.waitMs)
    if (connectMs !== null) series.connect.add(connectMs)
    if (firstByteMs !== null) series.firstByte.add(firstByteMs)
    if (passed.kind === 'request') series.total.add(passed.totalMs)
  }

  #counter(name: string, help: string, valuesOf: (series: Series) => Value[]): void {
    this.#show(name, help, 'counter', (endpoint, series) =>
      valuesOf(series)
        .filter(({ value }) => value > 0)
        .map(({ labels, value }) => ({ labels: { endpoint, ...labels }, value })),
    )
  }

  #histogram(name: string, help: string, timesOf: (series: Series) => Times): void {
    this.#show(name, help, 'histogram', (endpoint, series) =>
      listBuckets(`runyard_gateway_${name}`, endpoint, timesOf(series)),
    )
  }

  /** A registry calls no other method of a metric. */
  #show(rest: string, help: string, type: string, valuesOf: (endpoint: string, series: Series) => Value[]): void {
    const name = `runyard_gateway_${rest}`
    const get = async () => {
      const values = [...this.#series].flatMap(([endpoint, series]) => valuesOf(endpoint, series))
      return { name, help, type, values, aggregator: 'sum' }
    }
    this.#registry.registerMetric({ name, help, type, get } as unknown as Metric)
  }
}

function nothing(): Series {
  const [wait, connect, firstByte, total] = [new Times(), new Times(), new Times(), new Times()]
  const counts = { broken: 0, retries: 0, bytesIn: 0, bytesOut: 0 }
  return { over: STATUSES.map(() => 0), ...counts, wait, connect, firstByte, total }
}

/** Each bucket includes the shorter ones. */
function listBuckets(name: string, endpoint: string, { counts, sum, count }: Times): Value[] {
  if (count === 0) return []
  let upTo = 0
  const buckets = BUCKETS.map((le, at) => {
    upTo += counts[at]!
    return { metricName: `${name}_bucket`, labels: { le, endpoint }, value: upTo }
  })
  return [
    ...buckets,
    { metricName: `${name}_bucket`, labels: { le: '+Inf', endpoint }, value: count },
    { metricName: `${name}_sum`, labels: { endpoint }, value: sum },
    { metricName: `${name}_count`, labels: { endpoint }, value: count },
  ]
}
