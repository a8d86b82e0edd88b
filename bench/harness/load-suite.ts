/** Benchmarks that put the same loads of HTTP requests on several sides. */
import { type LoadCase, type Measured, measureRounds, type Rounds, sideMedian, sideRatio } from './rounds.ts'
import type { Bench, Side } from './sides.ts'
import { type Column, type Suite, type Table, type TableRow, tableText } from './suite.ts'

/** A benchmark of loads. */
export interface LoadSuite {
  readonly name: string
  readonly title: string
  readonly notes?: string
  readonly loads: readonly LoadCase[]
  /** A load before them that is not measured, except in a short run, so that code which runs often is compiled. */
  readonly warmUp?: LoadCase
  /**
   * Names of the loads of a short run. Without them a short run has the suite only if it is named,
   * and then with all its loads.
   */
  readonly quick?: readonly string[]
  /** Name of the side that others are compared with. */
  readonly baseline: string
  /** Figure of its ratios. With a given rate all sides have the same throughput, so p50 is compared. */
  readonly compares: 'throughput' | 'p50'
  /** Starts the sides. */
  start(bench: Bench, wants: (side: string) => boolean): Promise<readonly Side[]>
}

/** Loads of these numbers of connections, each of which sends its next request after a response. */
export function connectionCases(...counts: readonly number[]): LoadCase[] {
  return counts.map(connections => ({
    name: connections === 1 ? '1 connection' : `${connections} connections`,
    connections,
    perSecond: null,
  }))
}

/** The suite of a {@link LoadSuite}. */
export function loadSuite(suite: LoadSuite): Suite {
  const { name, title, notes, loads, warmUp, quick = [], baseline } = suite
  return {
    name,
    title,
    ...(notes === undefined ? {} : { notes }),
    quick: quick.length > 0,
    async run(bench, effort, wants) {
      const sides = await suite.start(bench, side => side === baseline || wants(side))
      const tables: Table[] = []
      if (warmUp !== undefined && !effort.isQuick) await measureRounds(sides, warmUp, { ...effort, rounds: 1 })
      for (const load of loads) {
        if (effort.isQuick && quick.length > 0 && !quick.includes(load.name)) continue
        const table = loadTable(suite, load, await measureRounds(sides, load, effort))
        console.log(tableText(table))
        tables.push(table)
      }
      return tables
    },
  }
}

function loadTable({ baseline, compares }: LoadSuite, { name }: LoadCase, rounds: Rounds): Table {
  const sides = [...rounds.keys()]
  const ratio = (side: string) =>
    compares === 'throughput'
      ? sideRatio(rounds, side, baseline, 'perSecond')
      : 1 / sideRatio(rounds, side, baseline, 'p50')
  const runyardSides = sides.filter(side => side.startsWith('Runyard'))
  const columns: Column[] = [
    { heading: 'per second', decimals: 0 },
    { heading: 'p50 ms', decimals: 2 },
    { heading: 'p99 ms', decimals: 2 },
    { heading: 'processor µs', decimals: 0 },
    { heading: `ratio to ${baseline}`, decimals: 2 },
  ]
  const refuses = sides.some(side => sideMedian(rounds, side, 'refused') + sideMedian(rounds, side, 'failed') > 0)
  if (refuses) columns.push({ heading: 'refused per second', decimals: 0 }, { heading: 'failed', decimals: 0 })
  const rows = sides.map((side): TableRow => {
    const figure = (key: keyof Measured) => sideMedian(rounds, side, key)
    const measured = [figure('perSecond'), figure('p50') / 1_000, figure('p99') / 1_000, figure('cpuUs'), ratio(side)]
    return { name: side, cells: refuses ? [...measured, figure('refusedPerSecond'), figure('failed')] : measured }
  })
  return {
    title: name,
    columns,
    bars: compares === 'throughput' ? 0 : 1,
    rows,
    ratios: Object.fromEntries(runyardSides.map(side => [`${name}: ${side}`, ratio(side)])),
  }
}
