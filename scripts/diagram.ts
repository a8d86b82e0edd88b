/**
 * Draws the states of a job from the table in src/core/jobs/job.ts into docs/internals/job-lifecycle.md, between two markers.
 * `scripts/diagram.ts` writes the page; a test checks that it is up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { isFinal, JOB_STATUSES, type JobStatus, TRANSITIONS } from '../src/core/jobs/job.ts'

/** The page with the diagram. */
export const PAGE = new URL('../docs/internals/job-lifecycle.md', import.meta.url)

const BEGIN = '<!-- diagram: begin; scripts/diagram.ts writes what is between these marks -->'
const END = '<!-- diagram: end -->'

/** The states and every transition between them, as a Mermaid diagram. */
export function drawJobStates(): string {
  const rules: [string, { from: readonly JobStatus[]; to: readonly JobStatus[] }][] = Object.entries(TRANSITIONS)
  const labels = new Map<string, string[]>()
  for (const [name, { from, to }] of rules) {
    for (const arrow of from.flatMap(start => to.map(end => `${start} --> ${end}`))) {
      labels.set(arrow, [...(labels.get(arrow) ?? []), name])
    }
  }
  const lines = [
    '[*] --> IN_QUEUE: submit',
    ...[...labels].map(([arrow, names]) => `${arrow}: ${names.join(', ')}`),
    ...JOB_STATUSES.filter(isFinal).map(status => `${status} --> [*]`),
  ]
  return ['```mermaid', 'stateDiagram-v2', ...lines.map(line => `    ${line}`), '```'].join('\n')
}

/** The page with the current diagram between its markers. */
export function withDiagram(page: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin === -1 || end < begin) throw new Error('the page has no markers for the diagram')
  return `${page.slice(0, begin + BEGIN.length)}\n\n${drawJobStates()}\n\n${page.slice(end)}`
}

if (import.meta.main) writeFileSync(PAGE, withDiagram(readFileSync(PAGE, 'utf8')))
