/**
 * The served OpenAPI document against the server that serves it, by a tool that makes requests up from the document.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { atExit, temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { schemathesis } from '../support/schemathesis.ts'
import { fixture, type Server, startServer } from '../support/server.ts'

const SECONDS = 500
/** Enough for each rule of the document; the seed is fixed, so what fails once fails again. */
const BOUNDS = ['--seed', '20', '--max-examples', '3']

/** Runs the tool to its end and gives what it prints. */
function run(folder: string, args: readonly string[]): Promise<{ code: number | null; printed: string }> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(schemathesis.program, args, {
    cwd: folder,
    env: { PATH, HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const takeBack = atExit(() => child.kill('SIGKILL'))
  const patience = setTimeout(() => child.kill('SIGKILL'), patient(SECONDS * 1000))
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (printed += text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      clearTimeout(patience)
      takeBack()
      resolve({ code, printed })
    })
  })
}

/** Two accounts, since one must not see what the other has, with keys that have no limits. */
async function accounts(server: Server): Promise<string> {
  const made = async (path: string, body: object) => (await ask(server, `/v2/account/${path}`, { body })).json
  const { id: account } = await made('accounts', { name: 'another' })
  const keys = await Promise.all([{}, { account }].map(more => made('keys', { name: 'tool', exempt: true, ...more })))
  const entries = keys.map(({ key }, n) => ({
    name: `account ${n}`,
    fixedHeaders: [{ name: 'Authorization', value: `Bearer ${key}` }],
  }))
  return JSON.stringify({ auth: entries })
}

/** The rules of the fixture, and the ids of a volume, a registry and a template, which nobody can make up. */
async function configuration(server: Server): Promise<string> {
  const made = async (path: string, body: object) => (await ask(server, `/v2/${path}`, { body })).json.id as string
  const ids = {
    'networkVolumes[*]': await made('network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1' }),
    registry: await made('registries', { name: 'r', username: 'u', password: 'p' }),
    templateId: await made('templates', { name: 't', image: 'image:1', serverless: true }),
  }
  const dictionaries = Object.values(ids).map((id, n) => `[dictionaries.ids${n}]\nvalues = ["${id}"]\n`)
  const places = Object.keys(ids).map((name, n) => `"body.${name}" = { dictionary = "ids${n}", probability = 0.8 }\n`)
  const rules = readFileSync(join(fixture('schemathesis'), 'schemathesis.toml'), 'utf8')
  return `${dictionaries.join('')}[parameters]\n${places.join('')}\n${rules}`
}

test('no request that follows or breaks the document leads to a server error or to an answer that it does not have', {
  skip: schemathesis.skip,
  timeout: patient(600_000),
}, async () => {
  const server = await startServer()
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'accounts.yaml'), await accounts(server))
  writeFileSync(join(folder, 'rules.toml'), await configuration(server))
  const { code, printed } = await run(folder, [
    ...['--config-file', 'rules.toml', 'run', `${server.url}/v2/openapi.json`, '--checks', 'all', '--no-color'],
    // It tries more wrong keys than one address may.
    ...['--exclude-checks', 'ignored_auth'],
    ...['--auth-wfc', 'accounts.yaml', '--generation-database', 'none', ...BOUNDS],
  ])
  assert.equal(code, 0, printed)
  assert.ok(Number(/(\d+) generated/.exec(printed)?.[1]) > 1_000, printed)
  assert.deepEqual(server.events('request.failed'), [])
  const { endpoints } = (await ask(server, '/v2/serverless')).json
  assert.ok(endpoints.length > 3, 'the document says enough to make endpoints')
})
