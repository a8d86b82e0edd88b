/** The ratios of results, beside those that are kept in bench/ratios.json. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SuiteResult } from './report.ts'

const FILE = join(import.meta.dirname, '..', 'ratios.json')
/** Below this share of the kept ratio, something has collapsed. The same code has had ratios that differ by 2.7 on machines of one kind. */
const COLLAPSE = 0.25

/** Ratios by suite, load and side. */
export type Ratios = Readonly<Record<string, number>>

/** The ratios of some results. */
export function ratiosOf(results: readonly SuiteResult[]): Ratios {
  const all = results.flatMap(({ suite, tables }) =>
    tables.flatMap(({ ratios }) =>
      Object.entries(ratios).map(([name, value]) => [`${suite}, ${name}`, value] as const),
    ),
  )
  return Object.fromEntries(all)
}

/** Names of the ratios that are far below the kept ones. */
export function collapsed(ratios: Ratios): string[] {
  const kept = keptRatios()
  return Object.keys(ratios).filter(name => ratios[name]! < (kept[name] ?? 0) * COLLAPSE)
}

/** Each ratio beside the kept one. */
export function ratioLines(ratios: Ratios): string {
  const kept = keptRatios()
  const fallen = new Set(collapsed(ratios))
  const lines = Object.entries(ratios).map(([name, value]) => {
    const end = fallen.has(name) ? '  collapsed' : ''
    return `${name.padEnd(56)} ${value.toFixed(2).padStart(8)}  kept ${kept[name]?.toFixed(2) ?? '-'}${end}`
  })
  return ['ratio', ...lines].join('\n')
}

/** Keeps the ratios of results in place of those of the same names. */
export function keepRatios(results: readonly SuiteResult[]): void {
  const all = { ...keptRatios(), ...ratiosOf(results) }
  const rounded = Object.entries(all).map(([name, value]) => [name, Number(value.toPrecision(3))] as const)
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(rounded.sort()), null, 2)}\n`)
}

function keptRatios(): Ratios {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Ratios) : {}
}
