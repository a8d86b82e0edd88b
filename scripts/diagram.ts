/**
 * Draws the diagrams of the documentation, each as an SVG for both themes in docs/diagrams: those with a
 * text in that folder (`<name>.dot`), and those from the code. `scripts/diagram.ts` writes them; a test
 * checks that they are up to date.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { instance } from '@viz-js/viz'
import { isFinal, JOB_STATUSES, type JobStatus, TRANSITIONS } from '../src/core/jobs/job.ts'
import { drawReferences } from './schema-diagram.ts'

const FOLDER = join(import.meta.dirname, '../docs/diagrams')

/** Attributes of all diagrams. Widths of letters are estimated for this font; others are about as wide. */
const SHARED = `graph [bgcolor=transparent fontname=Arial fontsize=13 nodesep=0.35 ranksep=0.55 pad=0.1]
node [shape=box style=rounded fontname=Arial fontsize=13 margin="0.28,0.1" height=0.3]
edge [fontname=Arial fontsize=11 arrowsize=0.7]`

const STYLE = `text { font-family: Arial, Helvetica, sans-serif; fill: #1f2328 } .edge text, .cluster text { fill: #57606a }
  .node path, .node polygon, .node ellipse { fill: #e6f4f1; stroke: #1a7f64 } .outside path, .outside polygon { fill: #f6f8fa; stroke: #8c959f }
  .refused path { fill: #fff1f0; stroke: #cf4a3e } .start ellipse { fill: #57606a; stroke: #57606a } .edge path { stroke: #57606a } .edge polygon { fill: #57606a; stroke: #57606a } .cluster polygon, .cluster path { fill: none; stroke: #8c959f }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .edge text, .cluster text { fill: #9da7b1 }
  .node path, .node polygon, .node ellipse { fill: #12332d; stroke: #2ea886 } .outside path, .outside polygon { fill: #22272e; stroke: #6e7681 }
  .refused path { fill: #3a1d1b; stroke: #e5685c } .start ellipse { fill: #9da7b1; stroke: #9da7b1 } .edge path { stroke: #9da7b1 } .edge polygon { fill: #9da7b1; stroke: #9da7b1 } .cluster polygon, .cluster path { stroke: #6e7681 } }`

/** The states of a job and every transition between them, in the language of Graphviz. */
export function jobStates(): string {
  const rules: [string, { from: readonly JobStatus[]; to: readonly JobStatus[] }][] = Object.entries(TRANSITIONS)
  const labels = new Map<string, string[]>()
  for (const [name, { from, to }] of rules) {
    for (const arrow of from.flatMap(start => to.map(end => `${start} -> ${end}`))) {
      labels.set(arrow, [...(labels.get(arrow) ?? []), name])
    }
  }
  const lines = [
    'rankdir=LR',
    'submit [label="" shape=point class=start]',
    'submit -> IN_QUEUE [label="submit"]',
    ...JOB_STATUSES.filter(isFinal).map(status => `${status} [class=outside]`),
    ...[...labels].map(([arrow, names]) => `${arrow} [label="${names.join(', ')}"]`),
  ]
  return `digraph "The states of a job" {\n${lines.join('\n')}\n}`
}

/** All diagrams, by the names of their files. */
export async function drawDiagrams(): Promise<ReadonlyMap<string, string>> {
  const viz = await instance()
  const sources = new Map([
    ['job-states', jobStates()],
    ['schema', drawReferences()],
    ...globSync(join(FOLDER, '*.dot'))
      .sort()
      .map(file => [basename(file, '.dot'), readFileSync(file, 'utf8')] as const),
  ])
  const drawn = [...sources].map(([name, source]) => {
    // Labels of arrows keep a distance from them.
    const spaced = source.replaceAll(/(-> .*label=")([^"]*)"/g, (_, prefix: string, label: string) => {
      return `${prefix}${label.replaceAll(/^|$|(?=\\n)|(?<=\\n)/g, '  ')}"`
    })
    const svg = viz.renderString(spaced.replace('{', `{\n${SHARED}\n`), { format: 'svg' })
    return [`${name}.svg`, finished(svg)] as const
  })
  return new Map(drawn)
}

/** The drawing of Graphviz without its comments, in the colors of the theme. */
function finished(svg: string): string {
  const [, title = ''] = /<title>([^<]*)<\/title>/.exec(svg) ?? []
  return svg
    .replace(/^[\s\S]*?(?=<svg)/, '')
    .replace(/<!--[\s\S]*?-->\n?/g, '')
    .replace(/(<svg[^>]*>)/, `$1\n<title>${title}</title>\n<style>${STYLE}</style>`)
    .replaceAll(/ (?:fill|stroke|font-family)="[^"]*"/g, '')
    .replaceAll(/<path /g, '<path fill="none" ')
}

/** File of a diagram. */
export function diagramFile(name: string): string {
  return join(FOLDER, name)
}

if (import.meta.main) for (const [name, svg] of await drawDiagrams()) writeFileSync(diagramFile(name), svg)
