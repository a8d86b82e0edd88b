/**
 * Checks the packed program, installed in an empty folder and used as a new user does: `scripts/check-packages.ts
 * [folder with both packages]`, which packs them unless a folder is given. `npx runyard serve --sample` responds, and
 * a handler in that folder that imports @runyard/worker from the server runs a job on the Node of this machine. So
 * does one in TypeScript that is compiled to CommonJS, the former default of `tsc --init`, with the second package
 * installed. Without the package for traces a server prints how to install it, and sends traces once it is installed.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { ready } from '../bench/harness/ready.ts'

const HANDLER = `import { start } from '@runyard/worker'
start({ handler: job => ({ node: process.version, seen: job.input }) })
`
const COMMONJS_HANDLER = `import { start, type Job } from '@runyard/worker'
type Input = { a: number }
start<Input, { node: string; seen: Input }>({
  handler: async (job: Job<Input>) => ({ node: process.version, seen: job.input }),
})
`
/** The environment of a new user: npm scripts put the pinned Node first in the path, a shell does not. */
const env = {
  ...process.env,
  PATH: (process.env.PATH ?? '')
    .split(':')
    .filter(folder => !folder.includes('node_modules'))
    .join(':'),
}

/** A newer version than that of package.json, since users install the newest. */
const TRACES = '@opentelemetry/exporter-trace-otlp-proto@0.301.1'

/** Options of npm without a registry: each request to it fails at once. */
const OFFLINE = ['--registry', 'http://127.0.0.1:9', '--fetch-retries', '0', '--silent', '--no-audit', '--no-fund']

const folder = mkdtempSync(join(tmpdir(), 'runyard-packages-'))
const packed = resolve(process.argv[2] ?? folder)
try {
  if (packed === folder)
    npm(['pack', '--silent', '--pack-destination', folder, '.', './packages/worker'], process.cwd())
  await check(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function check(folder: string): Promise<void> {
  const empty = join(folder, 'empty')
  const handler = join(empty, 'my-worker')
  mkdirSync(handler, { recursive: true })
  writeFileSync(join(empty, 'package.json'), '{"private":true}\n')
  writeFileSync(join(handler, 'handler.mjs'), HANDLER)
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  npm(['install', '--silent', '--no-audit', '--no-fund', join(packed, `runyard-${version}.tgz`)], empty)
  const commonjs = compileToCommonJs(empty, join(packed, `runyard-worker-${version}.tgz`))
  checkLicense(commonjs)
  checkEntries(commonjs)
  checkStarter(empty)
  checkLink(folder)
  checkCommand(folder)
  const collector = await startCollector()
  try {
    await checkServer(empty, handler, commonjs, collector)
    await checkTraces(empty, collector)
  } finally {
    collector.close()
  }
}

/**
 * Runs the sample and two own handlers on a server without the package for traces, which names that
 * package and sends no traces.
 */
async function checkServer(project: string, handler: string, commonjs: string, collector: Collector): Promise<void> {
  const { server, log } = serve(project, collector, ['--worker', handler, '--worker', commonjs])
  const { url, key, pid } = await ready(server)
  try {
    const hello = await runSync(`${url}/v2/hellonode`, key, { name: 'World' })
    if (hello.output?.message !== 'Hello, World!') throw new Error(`the sample returned ${JSON.stringify(hello)}`)
    await checkConsole(new URL(url).port)
    const nodePath = execFileSync('sh', ['-c', 'command -v node'], { env, encoding: 'utf8' }).trim()
    const version = execFileSync(nodePath, ['--version'], { encoding: 'utf8' }).trim()
    // Versions of Node below 20.19 cannot require() ES modules at all.
    const commands = { myworker: nodePath, mycommonjs: `${nodePath} --no-experimental-require-module` }
    for (const [endpoint, command] of Object.entries(commands)) {
      const template = await findTemplate(url, key, endpoint)
      const file = endpoint === 'myworker' ? 'handler.mjs' : 'handler.js'
      const input = `{id: "${template}", dockerArgs: "${command} ${file}"}`
      await graphql(url, key, `mutation { saveTemplate(input: ${input}) { id } }`)
      const job = await runSync(`${url}/v2/${endpoint}`, key, { a: 1 })
      if (job.output?.node !== version)
        throw new Error(`the handler of ${endpoint} returned ${JSON.stringify(job)}, not from Node ${version}`)
    }
    console.log(`the sample ran on the packaged Node, own handlers on Node ${version}, as ES module and as CommonJS`)
  } finally {
    process.kill(pid, 'SIGTERM')
  }
  const missing = await log
  const sentence = 'npm install --global @opentelemetry/exporter-trace-otlp-proto'
  if (!missing.includes(sentence)) throw new Error(`without the package for traces the server printed ${missing}`)
  if (collector.paths.length > 0) throw new Error('a server without the package for traces sends some')
}

/** Checks that a server with the package for traces sends some. */
async function checkTraces(project: string, collector: Collector): Promise<void> {
  npm(['install', '--silent', '--no-audit', '--no-fund', TRACES], project)
  const { server, log } = serve(project, collector, ['--data-dir', mkdtempSync(join(folder, 'data-'))])
  const { url, key, pid } = await ready(server)
  try {
    const hello = await runSync(`${url}/v2/hellonode`, key, { name: 'World' })
    if (hello.status !== 'COMPLETED') throw new Error(`the sample returned ${JSON.stringify(hello)}`)
  } finally {
    process.kill(pid, 'SIGTERM')
  }
  const printed = await log
  if (collector.paths[0] !== '/v1/traces') throw new Error(`the server sent no traces, and printed ${printed}`)
  console.log(`traces are sent once ${TRACES} is installed`)
}

/** A receiver of traces. */
interface Collector {
  readonly port: number
  /** Paths of the requests so far. */
  readonly paths: readonly string[]
  close(): void
}

async function startCollector(): Promise<Collector> {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    request.resume().on('end', () => response.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, paths, close: () => void server.close() }
}

/**
 * Starts a server with the sample that sends traces. Its log, which this process prints too, is complete at its end.
 */
function serve(
  project: string,
  { port }: Collector,
  args: readonly string[],
): { server: ChildProcess; log: Promise<string> } {
  const server = spawn('npx', ['runyard', 'serve', '--sample', ...args, '--port', '0', '--json'], {
    cwd: project,
    env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  server.stderr.setEncoding('utf8').on('data', (part: string) => {
    log += part
    process.stderr.write(part)
  })
  return { server, log: once(server, 'close').then(() => log) }
}

/** @returns the folder with the compiled handler, and the package */
function compileToCommonJs(project: string, packed: string): string {
  const folder = join(project, 'my-commonjs')
  mkdirSync(join(folder, 'src'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
  npm(['install', '--silent', '--no-audit', '--no-fund', packed], folder)
  writeFileSync(join(folder, 'src/handler.ts'), COMMONJS_HANDLER)
  const shared = { strict: true, target: 'es2022', types: ['node'], typeRoots: [resolve('node_modules/@types')] }
  const outDir = { outDir: '..', rootDir: '.' }
  // The newest form, and the form of most existing projects, which runs.
  for (const form of [{ module: 'node16' }, { module: 'commonjs', moduleResolution: 'bundler' }]) {
    const compilerOptions = { ...shared, ...outDir, ...form }
    writeFileSync(join(folder, 'src/tsconfig.json'), JSON.stringify({ compilerOptions, files: ['handler.ts'] }))
    execFileSync(resolve('node_modules/.bin/tsc'), ['-p', 'src'], { cwd: folder, env, stdio: 'inherit' })
    if (!readFileSync(join(folder, 'handler.js'), 'utf8').includes('require("@runyard/worker")'))
      throw new Error(`${form.module} was not compiled to CommonJS`)
  }
  return folder
}

/** Checks that the package has the files of `runyard init`, whose packages can be installed without a registry. */
function checkStarter(project: string): void {
  execFileSync('npx', ['runyard', 'init', 'starter'], { cwd: project, env, stdio: ['ignore', 'ignore', 'inherit'] })
  npm(['install', ...OFFLINE], join(project, 'starter'))
}

/** Checks that the clone can be installed as a command, as `npm link` does. */
function checkCommand(folder: string): void {
  const prefix = join(folder, 'global')
  mkdirSync(join(prefix, 'lib'), { recursive: true })
  npm(['install', '--silent', '--global', '--ignore-scripts', '--prefix', prefix, process.cwd()], folder)
  execFileSync(join(prefix, 'bin/runyard'), ['--version'], { cwd: folder, env, stdio: 'ignore' })
  execFileSync('npx', ['runyard', '--version'], { env, stdio: 'ignore' })
}

/** Checks that the folder of the package can be installed from the clone, and runs on the Node of this machine. */
function checkLink(folder: string): void {
  const project = join(folder, 'linked')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"private":true}\n')
  writeFileSync(join(project, 'handler.mjs'), HANDLER)
  // Its build would delete files that others use. The pack ran the same script.
  npm(['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', resolve('packages/worker')], project)
  const args = ['handler.mjs', '--test_input', '{"input": {"a": 1}}']
  const printed = execFileSync('node', args, { cwd: project, env, encoding: 'utf8' })
  if (!printed.includes('"seen":{"a":1}')) throw new Error(`the linked package printed ${printed}`)
}

function checkLicense(project: string): void {
  const packed = readFileSync(join(project, 'node_modules/@runyard/worker/LICENSE'), 'utf8')
  if (packed !== readFileSync('LICENSE', 'utf8')) throw new Error('the license in the package of the worker differs')
}

/** Checks that bundlers get the same exports as Node for ES modules and for CommonJS. */
function checkEntries(project: string): void {
  const script = `const names = async () => {
    const all = [require('@runyard/worker'), await import('@runyard/worker'), await import('./node_modules/@runyard/worker/dist/bundled/index.js')]
    const lists = all.map(entry => Object.keys(entry).filter(name => name !== '__esModule').sort().join())
    if (lists[0] === '' || new Set(lists).size > 1) throw new Error(lists.join(' | '))
  }
  names()`
  const args = ['--no-experimental-require-module', '--input-type=commonjs', '-e', script]
  execFileSync('node', args, { cwd: project, env, stdio: 'inherit' })
}

/** Checks that the console is part of the package: its page, and the script that the page names. */
async function checkConsole(port: string): Promise<void> {
  const page = await consoleFile(port, '/')
  const script = /<script type="module" src="([^"]+)"/.exec(page)?.[1]
  if (script === undefined) throw new Error(`the console answered ${page}`)
  if (!(await consoleFile(port, script)).includes('Sign in'))
    throw new Error(`${script} is not a script of the console`)
}

/** Fetches a file of the console. Not every system resolves names below localhost to this machine. */
function consoleFile(port: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { host: `console.localhost:${port}` }
    get({ host: '127.0.0.1', port, path, headers }, answer => text(answer).then(resolve, reject)).on('error', reject)
  })
}

interface Answer {
  readonly status: string
  readonly output?: { readonly message?: string; readonly node?: string }
}

async function runSync(endpoint: string, key: string, input: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${endpoint}/runsync?wait=60000`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ input }),
  })
  return (await response.json()) as Answer
}

async function findTemplate(url: string, key: string, endpoint: string): Promise<string> {
  const data = await graphql(url, key, `{ myself { endpoint(id: "${endpoint}") { templateId } } }`)
  return (data as { myself: { endpoint: { templateId: string } } }).myself.endpoint.templateId
}

async function graphql(url: string, key: string, query: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
  const { data, errors } = (await response.json()) as { data: unknown; errors?: unknown }
  if (errors !== undefined) throw new Error(JSON.stringify(errors))
  return data
}

function npm(args: readonly string[], cwd: string): void {
  execFileSync('npm', args, { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] })
}
