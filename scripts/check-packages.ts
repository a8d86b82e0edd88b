/**
 * Packs both packages, installs them in an empty folder and uses them as a stranger would: `npx runyard serve --sample`
 * answers, and a handler in that folder that imports @runyard/worker runs a job on the Node of this machine.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ready } from '../bench/ready.ts'

const HANDLER = `import { start } from '@runyard/worker'
start({ handler: job => ({ node: process.version, seen: job.input }) })
`
/** npm scripts put the pinned Node first in the path; a stranger's shell does not. */
const env = {
  ...process.env,
  PATH: (process.env.PATH ?? '')
    .split(':')
    .filter(folder => !folder.includes('node_modules'))
    .join(':'),
}

const folder = mkdtempSync(join(tmpdir(), 'runyard-packages-'))
try {
  await check(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function check(folder: string): Promise<void> {
  const empty = join(folder, 'empty')
  const handler = join(empty, 'my-worker')
  mkdirSync(handler, { recursive: true })
  npm(['pack', '--silent', '--pack-destination', folder], process.cwd())
  npm(['pack', '--silent', '--pack-destination', folder], 'packages/worker')
  writeFileSync(join(empty, 'package.json'), '{"private":true}\n')
  writeFileSync(join(handler, 'handler.mjs'), HANDLER)
  npm(['install', '--silent', '--no-audit', '--no-fund', '../runyard-0.1.0.tgz', '../runyard-worker-0.1.0.tgz'], empty)
  const server = spawn('npx', ['runyard', 'serve', '--sample', '--worker', handler, '--port', '0', '--json'], {
    cwd: empty,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { url, key, pid } = await ready(server)
  try {
    const hello = await runSync(`${url}/v2/hellonode`, key, { name: 'World' })
    if (hello.output?.message !== 'Hello, World!') throw new Error(`the sample answered ${JSON.stringify(hello)}`)
    const nodePath = execFileSync('sh', ['-c', 'command -v node'], { env, encoding: 'utf8' }).trim()
    await graphql(
      url,
      key,
      `mutation { saveTemplate(input: {id: "${await templateOf(url, key, 'myworker')}", dockerArgs: "${nodePath} handler.mjs"}) { id } }`,
    )
    const own = await runSync(`${url}/v2/myworker`, key, { a: 1 })
    const version = execFileSync(nodePath, ['--version'], { encoding: 'utf8' }).trim()
    if (own.output?.node !== version)
      throw new Error(`the handler answered ${JSON.stringify(own)}, not from Node ${version}`)
    console.log(`the sample ran on the packaged Node, a handler of one's own on Node ${version}`)
  } finally {
    process.kill(pid, 'SIGTERM')
  }
}

interface Answer {
  readonly status: string
  readonly output?: { readonly message?: string; readonly node?: string }
}

async function runSync(endpoint: string, key: string, input: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(`${endpoint}/runsync?wait=60000`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ input }),
  })
  return (await answer.json()) as Answer
}

async function templateOf(url: string, key: string, endpoint: string): Promise<string> {
  const data = await graphql(url, key, `{ myself { endpoint(id: "${endpoint}") { templateId } } }`)
  return (data as { myself: { endpoint: { templateId: string } } }).myself.endpoint.templateId
}

async function graphql(url: string, key: string, query: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
  const { data, errors } = (await answer.json()) as { data: unknown; errors?: unknown }
  if (errors !== undefined) throw new Error(JSON.stringify(errors))
  return data
}

function npm(args: readonly string[], cwd: string): void {
  execFileSync('npm', args, { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] })
}
