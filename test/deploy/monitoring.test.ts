/** Dashboards, alert rules and documents speak of metrics and events that exist. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { type KnownMetrics, knownMetrics, strayNames } from '../support/known-metrics.ts'
import { noPromtool, promtool } from '../support/promtool.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RULES = 'deploy/monitoring/alerts.yml'
const BOARDS = 'deploy/monitoring/dashboards'
/** Names of fields, settings and files that begin like an event. */
const NO_EVENTS = ['rollout.state', 'rollout.canary', 'rollout.failures', 'schema.graphql']

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: Readonly<Record<string, string>>
}

interface Board {
  readonly uid: string
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] }
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly description?: string
    readonly gridPos: { readonly x: number; readonly w: number }
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
  }[]
}

const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')
const rules = (parse(read(RULES)) as { groups: { rules: Rule[] }[] }).groups.flatMap(group => group.rules)
const boards = readdirSync(`${ROOT}/${BOARDS}`).map(
  name => [name, JSON.parse(read(`${BOARDS}/${name}`)) as Board] as const,
)
const queries = boards.flatMap(([name, { panels }]) =>
  panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [`${name}: ${title}`, expr] as const)),
)
/** The site, where it was built, has a copy of them. */
const pages = readdirSync(`${ROOT}/docs`, { recursive: true, encoding: 'utf8' })
  .filter(path => path.endsWith('.md') && !path.startsWith('site/'))
  .map(path => `docs/${path}`)

describe('metrics that are named', () => {
  let known: KnownMetrics
  before(async () => {
    known = await knownMetrics()
  })

  test('a name, a label or a value that does not exist is found', () => {
    const stray = (query: string) => strayNames(query, known)
    assert.deepEqual(stray('rate(runyard_jobs_ended_total[5m])')[0], 'no metric runyard_jobs_ended_total')
    assert.deepEqual(stray('runyard_store_call_seconds'), [
      'no metric runyard_store_call_seconds',
      'no metric in runyard_store_call_seconds',
    ])
    assert.deepEqual(stray('runyard_workers{kind="x"}'), ['runyard_workers has no label kind'])
    assert.deepEqual(stray('runyard_workers{state=~"idle|lost"}'), ['state of runyard_workers is never lost'])
    assert.deepEqual(stray('sum by (queue) (runyard_leader)'), ['no label queue in sum by (queue) (runyard_leader)'])
    assert.deepEqual(stray('sum by (endpoint) (runyard_workers{endpoint=~"$endpoint"}) > 0.5e3'), [])
  })

  test('in dashboards', () => {
    const stray = queries.flatMap(([where, expr]) => strayNames(expr, known).map(problem => `${where}: ${problem}`))
    const variables = boards.flatMap(([, { templating }]) => templating.list.map(({ query }) => query))
    for (const query of variables) {
      if (typeof query === 'string') continue
      const [, name, label] = /^label_values\((\w+), (\w+)\)$/.exec(query.query) ?? []
      if (known.get(name ?? '')?.has(label ?? '') !== true) stray.push(query.query)
    }
    assert.deepEqual(stray, [])
  })

  test('in alert rules', () => {
    const stray = rules.flatMap(({ alert, expr }) => strayNames(expr, known).map(problem => `${alert}: ${problem}`))
    assert.deepEqual(stray, [])
  })

  test('in documents', () => {
    const stray = pages.flatMap(path => {
      const names = [...read(path).matchAll(/\brunyard_[a-z_]+[a-z](?![\w.*])/g)].map(([name]) => name)
      const isKnown = (name: string) => known.has(name) || known.has(`${name}_count`)
      return names.filter(name => isMetric(name) && !isKnown(name)).map(name => `${path}: ${name}`)
    })
    assert.deepEqual(stray, [])
  })

  /** Metrics have an area that some metric has: names of databases, networks and fields do not. */
  function isMetric(name: string): boolean {
    const area = name.split('_').slice(0, 2).join('_')
    return [...known.keys()].some(metric => metric.startsWith(`${area}_`))
  }

  test('every metric of the server is in a dashboard or a rule', () => {
    const all = [...queries.map(([, expr]) => expr), ...rules.map(({ expr }) => expr)].join('\n')
    const own = [...known.keys()].filter(name => name.startsWith('runyard_'))
    const families = new Set(own.map(name => name.replace(/(_seconds)_(?:bucket|sum|count)$/, '$1')))
    assert.deepEqual(
      [...families].filter(family => !all.includes(family)),
      [],
    )
  })
})

test('events that documents name exist', () => {
  const events = new Set([...read('src/events.ts').matchAll(/^ {2}'(\w+\.\w+)':/gm)].map(([, name]) => name!))
  assert.ok(events.size > 40, 'the events could not be read')
  const subjects = new Set([...events].map(name => name.split('.')[0]!))
  const texts = [...pages.filter(path => !path.startsWith('docs/adr/')), RULES]
  const stray = texts.flatMap(path =>
    [...read(path).matchAll(/`((\w+)\.[a-z_]+)`/g)]
      .filter(([, name, subject]) => subjects.has(subject!) && !events.has(name!) && !NO_EVENTS.includes(name!))
      .map(([, name]) => `${path}: ${name}`),
  )
  assert.deepEqual(stray, [])
})

test('dashboards can be imported beside each other, and every panel says what it shows', () => {
  assert.equal(new Set(boards.map(([, { uid }]) => uid)).size, boards.length)
  for (const [name, { panels }] of boards) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, name)
    for (const { title, description, gridPos, targets } of panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, `${name}: ${title}`)
      if (targets === undefined) continue
      assert.ok((description ?? '') !== '', `${name}: ${title}`)
    }
  }
})

test('commands in alerts exist', () => {
  const words = rules.flatMap(({ annotations }) => Object.values(annotations)).join('\n')
  const commands = [...words.matchAll(/`runyard (\w+)/g)].map(([, command]) => command!)
  const page = read('docs/reference/commands.md')
  for (const command of new Set(commands)) assert.ok(page.includes(`runyard ${command}`), command)
})

describe('what Prometheus says', { skip: noPromtool }, () => {
  test('the rules and the configuration are valid', () => {
    const ofRules = promtool(['check', 'rules', `${ROOT}/${RULES}`])
    assert.equal(ofRules.status, 0, ofRules.stderr)
    const config = promtool(['check', 'config', '--syntax-only', `${ROOT}/deploy/monitoring/prometheus.yml`])
    assert.equal(config.status, 0, config.stderr)
  })

  test('alerts are raised when they should be, and only then', () => {
    const { status, stdout, stderr } = promtool(['test', 'rules', `${ROOT}/test/deploy/alerts.yml`])
    assert.equal(status, 0, stdout + stderr)
  })

  test('the queries of dashboards are valid', t => {
    // As Grafana sends them, as rules: those are what promtool reads.
    const sent = (expr: string) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$endpoint', '.*')
    const group = {
      name: 'queries',
      rules: queries.map(([, expr], at) => ({ record: `query:${at}`, expr: sent(expr) })),
    }
    const folder = mkdtempSync(join(tmpdir(), 'runyard-rules-'))
    t.after(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'queries.yml'), JSON.stringify({ groups: [group] }))
    const { status, stderr } = promtool(['check', 'rules', join(folder, 'queries.yml')])
    assert.equal(status, 0, stderr)
  })
})
