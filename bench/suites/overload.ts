/** Requests at twice the capacity: the number of accepted ones, their latency, and the latency of other calls. */
import { measureRounds, sideMedian } from '../harness/rounds.ts'
import { ask, makeEndpoint, requestTo, SMALL_JOB, startRunyard } from '../harness/runyard.ts'
import type { Side } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

const CONNECTIONS = 512
/** Interval of the calls of `health`, in milliseconds. */
const HEALTH_MS = 50

/** See the head of this file. */
export const overload: Suite = {
  name: 'overload',
  title: 'Twice the capacity: POST /run at fixed rates',
  notes: `The capacity is what ${CONNECTIONS} connections get through when each waits for its response. At a rate, a latency counts from when the request was due, so that it includes the wait for one of the connections. Meanwhile \`health\` of the endpoint is called every ${HEALTH_MS} ms.`,
  quick: false,
  async run(bench, effort) {
    const server = await startRunyard(bench, null)
    const endpoint = await makeEndpoint(server, { workersMax: 0 })
    const request = requestTo(server, `/v2/${endpoint}/run`, SMALL_JOB)
    const side: Side = { name: 'Runyard', port: server.port, request, pids: [server.pid] }
    const rows: TableRow[] = []
    const measured = async (name: string, perSecond: number | null) => {
      const health: number[] = []
      const stop = new AbortController()
      const asking = every(HEALTH_MS, stop.signal, async () => {
        const startMs = performance.now()
        await ask(server, `/v2/${endpoint}/health`)
        health.push(performance.now() - startMs)
      })
      const rounds = await measureRounds([side], { name, connections: CONNECTIONS, perSecond }, effort)
      stop.abort()
      await asking
      const figure = (key: 'perSecond' | 'refusedPerSecond' | 'failed' | 'p50' | 'p99') =>
        sideMedian(rounds, 'Runyard', key)
      const p99 = health.sort((a, b) => a - b)[Math.floor((health.length - 1) * 0.99)] ?? null
      const latencies = [figure('p50') / 1_000, figure('p99') / 1_000]
      const cells = [perSecond, figure('perSecond'), figure('refusedPerSecond'), figure('failed'), ...latencies, p99]
      rows.push({ name, cells })
      return figure('perSecond')
    }
    const capacity = Math.round(await measured('as many as are answered', null))
    await measured('half of the capacity', Math.round(capacity / 2))
    await measured('the capacity', capacity)
    const twice = await measured('twice the capacity', capacity * 2)
    const table: Table = {
      title: `${CONNECTIONS} connections`,
      columns: [
        { heading: 'due per second', decimals: 0 },
        { heading: 'accepted per second', decimals: 0 },
        { heading: 'refused per second', decimals: 0 },
        { heading: 'failed', decimals: 0 },
        { heading: 'p50 ms', decimals: 1 },
        { heading: 'p99 ms', decimals: 1 },
        { heading: 'p99 of health, ms', decimals: 1 },
      ],
      bars: 1,
      rows,
      ratios: { 'accepted at twice the capacity, of the capacity': twice / capacity },
    }
    console.log(tableText(table))
    return [table]
  },
}

async function every(ms: number, stop: AbortSignal, act: () => Promise<void>): Promise<void> {
  while (!stop.aborted) {
    await act()
    await new Promise(resolve => setTimeout(resolve, ms))
  }
}
