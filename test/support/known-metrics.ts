/** The metrics of the server as Prometheus sees them, and which of them a query names. */
import { readFileSync } from 'node:fs'
import { systemClock } from '../../src/system/clock.ts'
import { createMetrics } from '../../src/system/observing/metrics.ts'

/** Labels that Prometheus adds to every series. */
const OF_PROMETHEUS = ['job', 'instance', 'le']
/** Words of PromQL that look like names. */
const WORDS = new Set(['by', 'on', 'or', 'and', 'unless', 'without', 'ignoring', 'group_left', 'group_right', 'bool'])
const SUFFIXES = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] } as const

/** Names of series, with the labels of each; null where they are not known. */
export type KnownMetrics = ReadonlyMap<string, ReadonlyMap<string, readonly string[]> | null>

/** Every series that a server shows, read from one, with the labels of docs/reference/metrics.md. */
export async function knownMetrics(): Promise<KnownMetrics> {
  const nothing = () => ({ requests: 0, sockets: 0, waiting: 0, busyWorkers: 0 })
  const { text } = await createMetrics({ clock: systemClock, ofProcess: true }).expose([], nothing)
  const labels = documentedLabels()
  const metrics = new Map<string, ReadonlyMap<string, readonly string[]> | null>([['up', new Map()]])
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)/gm)) {
    const suffixes = SUFFIXES[type as keyof typeof SUFFIXES] ?? ['']
    for (const suffix of suffixes) metrics.set(`${name}${suffix}`, labels.get(name!) ?? null)
  }
  return metrics
}

/** Values by metric and label; empty if the page does not list them all. */
function documentedLabels(): Map<string, ReadonlyMap<string, readonly string[]>> {
  const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8')
  const metrics = new Map<string, ReadonlyMap<string, readonly string[]>>()
  for (const [, name, cell] of page.matchAll(/^\| `(runyard_\w+)` \| ([^|]*) \|/gm)) {
    const labels = new Map<string, readonly string[]>()
    for (const [, label, list = ''] of cell!.matchAll(/(\w+)(?: \(([^)]*)\))?(?:, |$)/g)) {
      const isWhole = /^(?:`\w+`(?:, )?)+$/.test(list)
      labels.set(label!, isWhole ? [...list.matchAll(/`(\w+)`/g)].map(([, value]) => value!) : [])
    }
    metrics.set(name!, labels)
  }
  return metrics
}

/** Wrong names of a query: metrics that do not exist, labels that they lack, values that these labels never have. */
export function strayNames(query: string, metrics: KnownMetrics): string[] {
  const plain = query.replaceAll(/"[^"]*"/g, text => text.replaceAll(/[^"]/g, '_'))
  const stray: string[] = []
  const names: string[] = []
  for (const match of plain.matchAll(/([a-zA-Z_:][\w:]*)(\s*(?:\(|by\b|without\b))?/g)) {
    const [, name = '', call] = match
    const prefix = plain.slice(0, match.index)
    if (call !== undefined || WORDS.has(name) || /[\d$]$/.test(prefix) || isInside(prefix)) continue
    if (!metrics.has(name)) stray.push(`no metric ${name}`)
    else names.push(name)
    const selector = /^\s*\{([^}]*)\}/.exec(plain.slice(match.index + name.length))
    if (selector === null) continue
    const at = match.index + name.length + selector[0].indexOf('{') + 1
    stray.push(...strayMatchers(name, query.slice(at, at + selector[1]!.length), metrics.get(name) ?? null))
  }
  if (names.length === 0) stray.push(`no metric in ${query}`)
  const labels = new Set(names.flatMap(name => [...(metrics.get(name)?.keys() ?? [])]))
  for (const [, list] of plain.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g)) {
    for (const label of list!.split(',').map(part => part.trim()))
      if (!labels.has(label) && !OF_PROMETHEUS.includes(label)) stray.push(`no label ${label} in ${query}`)
  }
  return stray
}

/** True for a place within a selector, a range or a list of labels, in which words are not metrics. */
function isInside(prefix: string): boolean {
  const last = (text: string) => prefix.lastIndexOf(text)
  if (last('{') > last('}') || last('[') > last(']')) return true
  return /\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*$/.test(prefix)
}

function strayMatchers(
  name: string,
  matchers: string,
  labels: ReadonlyMap<string, readonly string[]> | null,
): string[] {
  return [...matchers.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].flatMap(([, label, , text]) => {
    if (OF_PROMETHEUS.includes(label!) || labels === null) return []
    const values = labels.get(label!)
    if (values === undefined) return [`${name} has no label ${label}`]
    if (values.length === 0) return []
    const wrong = text!.split('|').filter(value => !values.includes(value))
    return wrong.map(value => `${label} of ${name} is never ${value}`)
  })
}
