/** The page `docs/benchmarks.md` and its charts, from the results of a run. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunResult, SuiteResult } from './report.ts'
import { cellText, type Table } from './suite.ts'

const BAR = { height: 16, gap: 6, label: 230, width: 360, numbers: 70 }
const STYLE = `text { font: 12px system-ui, sans-serif; fill: #57606a } .load { font-weight: 600 } rect { fill: #8c959f } rect.own { fill: #1a7f64 }
  @media (prefers-color-scheme: dark) { text { fill: #9da7b1 } rect { fill: #6e7681 } rect.own { fill: #2ea886 } }`

const HEAD = `# Benchmarks

Made by \`npm run bench -- --page\`; do not edit. Each side is measured in turn, round by round, by a process of its own that sends the load. Where no rate is given, a
connection sends its next request when the last one is answered. With a rate, a latency counts from when its request was due. Figures are medians of the
rounds, ratios medians of the ratios of a round. Processor time is that of the server, its workers and the database that only it uses, for each request.
`

/**
 * Writes the sections and charts of the suites of a run into the page; the sections of others stay.
 * @param docs the folder of the documents
 */
export function writePage(run: RunResult, docs: string): void {
  mkdirSync(join(docs, 'benchmarks'), { recursive: true })
  const file = join(docs, 'benchmarks.md')
  const sections = new Map<string, string>()
  for (const text of existsSync(file)
    ? readFileSync(file, 'utf8')
        .split(/^(?=## )/m)
        .slice(1)
    : [])
    sections.set(text.slice('## '.length, text.indexOf('\n')), text.trimEnd())
  for (const result of run.results) {
    if (result.tables.some(({ bars }) => bars !== null))
      writeFileSync(join(docs, 'benchmarks', `${result.suite}.svg`), chart(result))
    sections.set(result.title, section(result, run))
  }
  writeFileSync(file, `${[HEAD, ...sections.values()].join('\n\n').replaceAll(/\n{3,}/g, '\n\n')}\n`)
}

function section({ suite, title, notes, tables }: SuiteResult, { date, machine, effort }: RunResult): string {
  const versions = Object.entries(machine).map(([name, version]) => `${name} ${version}`)
  const how = `${date}, ${effort.rounds} rounds of ${effort.ms / 1_000} s. ${versions.join(', ')}.`
  const image = tables.some(({ bars }) => bars !== null) ? `![${title}](benchmarks/${suite}.svg)` : ''
  const parts = [`## ${title}`, notes, image, ...tables.map(markdown), how]
  return parts.filter(part => part !== '').join('\n\n')
}

function markdown({ title, columns, rows }: Table): string {
  const head = `| ${[title, ...columns.map(({ heading }) => heading)].join(' | ')} |\n|${'---|'.repeat(columns.length + 1)}`
  const lines = rows.map(({ name, cells }) => {
    const texts = columns.map((column, index) => cellText(cells[index], column))
    return `| ${[name, ...texts].join(' | ')} |`
  })
  return [head, ...lines].join('\n')
}

/** Chart with bars of one column of each table, each table with its own scale. */
function chart({ title, tables }: SuiteResult): string {
  const parts: string[] = []
  let y = 4
  for (const { title: load, columns, bars, rows } of tables) {
    if (bars === null) continue
    const column = columns[bars]!
    parts.push(`<text class="load" x="0" y="${y + 12}">${escaped(`${load}, ${column.heading}`)}</text>`)
    y += BAR.height + BAR.gap
    const most = Math.max(...rows.map(({ cells }) => cells[bars] ?? 0))
    for (const { name, cells } of rows) {
      const width = Math.max(1, Math.round(((cells[bars] ?? 0) / most) * BAR.width))
      const classAttribute = name.startsWith('Runyard') ? ' class="own"' : ''
      parts.push(
        `<text x="${BAR.label - 8}" y="${y + 12}" text-anchor="end">${escaped(name)}</text>`,
        `<rect${classAttribute} x="${BAR.label}" y="${y}" width="${width}" height="${BAR.height}"/>`,
        `<text x="${BAR.label + width + 6}" y="${y + 12}">${cellText(cells[bars], column)}</text>`,
      )
      y += BAR.height + BAR.gap
    }
    y += BAR.gap * 2
  }
  const width = BAR.label + BAR.width + BAR.numbers
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}">\n<title>${escaped(title)}</title>\n<style>${STYLE}</style>\n${parts.join('\n')}\n</svg>\n`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
