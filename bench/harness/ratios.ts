/** The ratios of results, beside the stored ones in bench/ratios.json. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SuiteResult } from './report.ts'

const FILE = join(import.meta.dirname, '..', 'ratios.json')
/**
 * Share of the stored ratio below which a side has collapsed. Ratios of the same code differed by
 * 2.7 on machines of one kind.
 */
const COLLAPSE = 0.25

/** Ratios by suite, load and side. */
export type Ratios = Readonly<Record<string, number>>

/** The ratios of some results. */
export function collectRatios(results: readonly SuiteResult[]): Ratios {
  const all = results.flatMap(({ suite, tables }) =>
    tables.flatMap(({ ratios }) =>
      Object.entries(ratios).map(([name, value]) => [`${suite}, ${name}`, value] as const),
    ),
  )
  return Object.fromEntries(all)
}

/** Names of the ratios that are far below the stored ones. */
export function collapsed(ratios: Ratios): string[] {
  const stored = readRatios()
  return Object.keys(ratios).filter(name => ratios[name]! < (stored[name] ?? 0) * COLLAPSE)
}

/** A line for each ratio with the stored one. */
export function ratioLines(ratios: Ratios): string {
  const stored = readRatios()
  const fallen = new Set(collapsed(ratios))
  const lines = Object.entries(ratios).map(([name, value]) => {
    const end = fallen.has(name) ? '  collapsed' : ''
    return `${name.padEnd(56)} ${value.toFixed(2).padStart(8)}  kept ${stored[name]?.toFixed(2) ?? '-'}${end}`
  })
  return ['ratio', ...lines].join('\n')
}

/** Stores the ratios of results in place of those with the same names. */
export function keepRatios(results: readonly SuiteResult[]): void {
  const all = { ...readRatios(), ...collectRatios(results) }
  const rounded = Object.entries(all).map(([name, value]) => [name, Number(value.toPrecision(3))] as const)
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(rounded.sort()), null, 2)}\n`)
}

function readRatios(): Ratios {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Ratios) : {}
}
