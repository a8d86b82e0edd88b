/** The compose file: valid, with settings and files that exist, and open to this machine alone. */
import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { readConfig, strayVariables } from '../../src/config/config.ts'
import { composeConfig, noCompose } from '../support/compose.ts'
import { noPromtool, promtool } from '../support/promtool.ts'

const KIT = fileURLToPath(new URL('../../deploy/compose', import.meta.url))
const FILE = join(KIT, 'compose.yml')
const PASSWORDS = { POSTGRES_PASSWORD: 'first', GRAFANA_PASSWORD: 'second' }

interface Service {
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
}

const yaml = (file: string) => parse(readFileSync(join(KIT, file), 'utf8'))
const { services } = yaml('compose.yml') as { services: Readonly<Record<string, Service>> }

test('Docker Compose takes it, and not without passwords', { skip: noCompose }, () => {
  const { status, stderr } = composeConfig(FILE, PASSWORDS)
  assert.deepEqual([status, stderr], [0, ''])
  const without = composeConfig(FILE, { GRAFANA_PASSWORD: 'second' })
  assert.notEqual(without.status, 0)
  assert.match(without.stderr, /set it in \.env/)
})

test('the settings of the server exist', () => {
  const { environment } = services.server!
  assert.match(environment?.RUNYARD_MIGRATE_TO ?? '', /^\$\{RUNYARD_MIGRATE_TO:-\}$/, 'permitted for one command')
  const given = { RUNYARD_DATABASE: 'postgres://runyard:first@database:5432/runyard', RUNYARD_MIGRATE_TO: '' }
  const env = { ...environment, ...given }
  assert.deepEqual(strayVariables(env), [])
  const reading = readConfig({ options: {}, env, absolute: path => path, read: () => '' })
  assert.ok('config' in reading, JSON.stringify(reading))
  assert.deepEqual([reading.config.metricsPublic, reading.config.allowedHosts], [true, ['server']])
})

test('ports are open to this machine alone', () => {
  const ports = Object.values(services).flatMap(service => service.ports ?? [])
  assert.equal(ports.length, 2)
  for (const port of ports) assert.match(port, /^127\.0\.0\.1:/)
})

test('files that are mounted exist', () => {
  const paths = Object.values(services).flatMap(({ volumes = [] }) => volumes.map(volume => volume.split(':')[0]!))
  const own = paths.filter(path => path.startsWith('.'))
  assert.ok(own.length >= 4)
  for (const path of own) assert.ok(statSync(join(KIT, path)), path)
})

test('Prometheus calls the server by a name that it has, with the job of the rules; Grafana reads that Prometheus', () => {
  const [scrape] = yaml('prometheus.yml').scrape_configs
  assert.deepEqual([scrape.job_name, scrape.static_configs[0].targets], ['runyard', ['server:8080']])
  assert.equal(yaml('grafana/datasources/prometheus.yml').datasources[0].url, 'http://prometheus:9090')
  const { path } = yaml('grafana/dashboards/runyard.yml').providers[0].options
  assert.ok(services.grafana!.volumes!.some(volume => volume === `../monitoring/dashboards:${path}:ro`))
})

test('Prometheus takes its configuration', { skip: noPromtool }, () => {
  const { status, stderr } = promtool(['check', 'config', '--syntax-only', join(KIT, 'prometheus.yml')])
  assert.equal(status, 0, stderr)
})
