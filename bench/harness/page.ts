/** The page `docs/benchmarks.md` and its charts, made of the results of a run. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Row, RunResult, SuiteResult } from './report.ts'

const BAR = { height: 16, gap: 6, label: 230, width: 360, numbers: 70 }
const STYLE = `text { font: 12px system-ui, sans-serif; fill: #57606a } .load { font-weight: 600 } rect { fill: #8c959f } rect.own { fill: #1a7f64 }
  @media (prefers-color-scheme: dark) { text { fill: #9da7b1 } rect { fill: #6e7681 } rect.own { fill: #2ea886 } }`

/** Writes the page and a chart for each suite. @param docs the folder of the documents */
export function writePage({ date, machine, effort, results }: RunResult, docs: string): void {
  mkdirSync(join(docs, 'benchmarks'), { recursive: true })
  const versions = Object.entries(machine).map(([name, version]) => `${name} ${version}`)
  const sections = results.map(result => {
    writeFileSync(join(docs, 'benchmarks', `${result.suite}.svg`), chart(result))
    return section(result)
  })
  const head = `# Benchmarks

Made by \`npm run bench -- --page\` on ${date}; do not edit. Each side is measured in turn in ${effort.rounds} rounds of ${effort.ms / 1_000} s, after ${effort.warmMs / 1_000} s to warm up, from a
process of its own that sends the next request on a connection when the last one is answered. Figures are medians of the rounds, ratios medians of the ratios of a round. Processor time is that of the
server and of the database that only it uses.

${versions.join(', ')}.
`
  writeFileSync(join(docs, 'benchmarks.md'), `${[head, ...sections].join('\n')}`)
}

function section({ suite, title, baseline, cases }: SuiteResult): string {
  const tables = cases.map(({ load, rows }) => {
    const head = `| ${load} | requests a second | p50 ms | p99 ms | processor µs | ratio to ${baseline} |\n|---|---|---|---|---|---|`
    return [head, ...rows.map(rowText)].join('\n')
  })
  return `## ${title}\n\n![requests a second of each side](benchmarks/${suite}.svg)\n\n${tables.join('\n\n')}\n`
}

function rowText({ side, perSecond, p50Ms, p99Ms, cpuUs, ratio }: Row): string {
  return `| ${side} | ${perSecond} | ${p50Ms.toFixed(2)} | ${p99Ms.toFixed(2)} | ${cpuUs} | ${ratio.toFixed(2)} |`
}

/** Bars of requests a second, each load with a scale of its own. */
function chart({ title, cases }: SuiteResult): string {
  const parts: string[] = []
  let y = 4
  for (const { load, rows } of cases) {
    parts.push(`<text class="load" x="0" y="${y + 12}">${escaped(load)}</text>`)
    y += BAR.height + BAR.gap
    const most = Math.max(...rows.map(({ perSecond }) => perSecond))
    for (const { side, perSecond } of rows) {
      const width = Math.max(1, Math.round((perSecond / most) * BAR.width))
      const own = side.startsWith('Runyard') ? ' class="own"' : ''
      parts.push(
        `<text x="${BAR.label - 8}" y="${y + 12}" text-anchor="end">${escaped(side)}</text>`,
        `<rect${own} x="${BAR.label}" y="${y}" width="${width}" height="${BAR.height}"/>`,
        `<text x="${BAR.label + width + 6}" y="${y + 12}">${perSecond}</text>`,
      )
      y += BAR.height + BAR.gap
    }
    y += BAR.gap * 2
  }
  const width = BAR.label + BAR.width + BAR.numbers
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}">\n<title>${escaped(title)}: requests a second</title>\n<style>${STYLE}</style>\n${parts.join('\n')}\n</svg>\n`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
