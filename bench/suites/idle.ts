/** Costs of an idle server: processor time, memory, and the duration of a start. */
import { median } from '../harness/rounds.ts'
import { makeEndpoint, startRunyard } from '../harness/runyard.ts'
import { type Bench, memoryMb, processorSeconds } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

const STARTS = 5
const CREATING_AT_ONCE = 16

/** See the head of this file. */
export const idle: Suite = {
  name: 'idle',
  title: 'A server that does nothing',
  notes:
    'Processor time of the server with its relay, in percent of one core, from a minute after the last endpoint was made, when what runs is compiled. The start is that of the sources, from the command until the line that says that it is ready; a published program reads fewer files.',
  quick: false,
  async run(bench, effort) {
    const starts = await startTimes(bench)
    const rows: TableRow[] = []
    for (const endpoints of [0, 10, 1_000, ...(effort.isQuick ? [] : [10_000])])
      rows.push({ name: `${endpoints} endpoints`, cells: await idleWith(bench, endpoints, effort.isQuick) })
    const table: Table = {
      title: '',
      columns: [
        { heading: 'processor %', decimals: 2 },
        { heading: 'memory MB', decimals: 0 },
      ],
      bars: null,
      rows,
      ratios: {},
    }
    const start: Table = {
      title: 'start of a server with an empty data folder',
      columns: [
        { heading: 'median ms', decimals: 0 },
        { heading: 'processor ms', decimals: 0 },
      ],
      bars: null,
      rows: [{ name: 'Runyard', cells: starts }],
      ratios: {},
    }
    for (const one of [table, start]) console.log(tableText(one))
    return [table, start]
  },
}

async function startTimes(bench: Bench): Promise<number[]> {
  const took: number[] = []
  const spent: number[] = []
  for (let n = 0; n <= STARTS; n += 1) {
    const startMs = performance.now()
    const { pid } = await startRunyard(bench, null)
    // The first one fills the caches.
    if (n > 0) took.push(performance.now() - startMs)
    if (n > 0) spent.push(processorSeconds([pid]) * 1_000)
    await bench.stopOne(pid)
  }
  return [median(took), median(spent)]
}

async function idleWith(bench: Bench, endpoints: number, isQuick: boolean): Promise<number[]> {
  const [settleMs, seconds] = isQuick ? [5_000, 5] : [60_000, 30]
  const server = await startRunyard(bench, null)
  let remaining = endpoints
  const create = async () => {
    for (; remaining > 0; ) {
      remaining -= 1
      await makeEndpoint(server, { workersMax: 1 })
    }
  }
  await Promise.all(Array.from({ length: CREATING_AT_ONCE }, create))
  await new Promise(resolve => setTimeout(resolve, settleMs))
  const secondsBefore = processorSeconds([server.pid])
  await new Promise(resolve => setTimeout(resolve, seconds * 1_000))
  const percent = ((processorSeconds([server.pid]) - secondsBefore) / seconds) * 100
  const memory = memoryMb(server.pid)
  await bench.stopOne(server.pid)
  return [percent, memory]
}
