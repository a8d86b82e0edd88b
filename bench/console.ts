/**
 * Speed of the console in Chromium: `./bin/node bench/console.ts [rounds, 5 unless given]`, with the program of
 * Chromium in RUNYARD_TEST_CHROMIUM.
 *
 * Measures, beside a plain HTML page with the same rows that the same browser loads and scrolls in the same rounds:
 * the first contentful paint, the time until a list of 1,000 endpoints is usable, the time until a new job is on the
 * screen, and the frames while 1,000 endpoints, 100,000 requests and 50,000 log lines scroll.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type BrowserContext, launchChromium, type Page } from '../test/wire/support/chromium.ts'
import { type ReadyServer, ready } from './harness/ready.ts'
import { describeMachine } from './harness/report.ts'

const ROUNDS = Number(process.argv[2] ?? 5)
const ENDPOINTS = 1_000
const REQUESTS = 100_000
const LINES = 50_000
const FRAMES = 180
/** Distance that a frame scrolls, in pixels, as with a wheel that turns without a pause. */
const STEP_PX = 240
const SENDERS = 16

const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-console-'))
const children: ChildProcess[] = []

async function main(): Promise<void> {
  const server = await startServer()
  const plain = await startPlainPage()
  const browser = await launchChromium(process.env.RUNYARD_TEST_CHROMIUM ?? '/usr/bin/chromium')
  const origin = `http://console.localhost:${new URL(server.url).port}`
  const figures = new Figures()
  for (let round = 0; round < ROUNDS; round += 1) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
    await signIn(context, origin, server.key)
    await measureLoad(context, `${origin}/endpoints`, `[role=row][data-row="5"]`, 'endpoints', figures)
    await measureLoad(context, `${plain}/rows?${ENDPOINTS}`, 'tr:nth-child(5)', 'plain HTML, 1,000 rows', figures)
    await measureNews(context, `${origin}/endpoints/waiting/requests`, server, figures)
    for (const list of listsAt(origin, plain)) await measureScroll(context, list, figures)
    await context.close()
  }
  const version = browser.version()
  await browser.close()
  figures.print()
  const { processor, kernel, Node: node } = describeMachine()
  console.log(`${processor}, kernel ${kernel}, Node ${node}, Chromium ${version}`)
}

function listsAt(origin: string, plain: string): readonly List[] {
  const [table, lines] = ['.table-scroll', '.log-lines']
  const of = `${origin}/endpoints`
  return [
    { url: of, element: table, rows: ENDPOINTS, name: '1,000 endpoints' },
    { url: `${of}/waiting/requests`, element: table, rows: REQUESTS, name: '100,000 requests' },
    { url: `${of}/printing/logs?from=all`, element: lines, rows: LINES, name: '50,000 log lines' },
    { url: `${plain}/lines?${LINES}`, element: '#scroll', rows: LINES, name: 'plain HTML, 50,000 lines' },
  ]
}

/** Collects the numbers of all rounds by their names. */
class Figures {
  readonly #rounds = new Map<string, number[]>()

  add(name: string, value: number): void {
    this.#rounds.set(name, [...(this.#rounds.get(name) ?? []), value])
  }

  print(): void {
    for (const [name, values] of this.#rounds) {
      const sorted = values.toSorted((a, b) => a - b)
      const [least, middle, most] = [sorted[0]!, sorted[sorted.length >> 1]!, sorted.at(-1)!]
      console.log(`${name}: median ${middle.toFixed(1)}, least ${least.toFixed(1)}, most ${most.toFixed(1)}`)
    }
  }
}

async function signIn(context: BrowserContext, origin: string, key: string): Promise<void> {
  const page = await context.newPage()
  await page.goto(origin)
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  await page.close()
}

async function measureLoad(context: BrowserContext, url: string, row: string, name: string, figures: Figures) {
  const page = await context.newPage()
  await page.goto(url)
  const usableMs = await page.evaluate(async row => {
    // The list is usable once its rows exist and the browser has handled all earlier events.
    while (document.querySelector(row) === null) await new Promise(requestAnimationFrame)
    await new Promise(done => setTimeout(done))
    return performance.now()
  }, row)
  const paintMs = await page.evaluate(async () => {
    const of = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
    while (of() === undefined) await new Promise(requestAnimationFrame)
    return of()!
  })
  figures.add(`${name}: first contentful paint, ms`, paintMs)
  figures.add(`${name}: usable, ms`, usableMs)
  await page.close()
}

/** Number of new jobs of a round that are measured. */
const NEWS = 20

/** Measures the time from the acceptance of a job until it is on the screen. */
async function measureNews(context: BrowserContext, url: string, server: ReadyServer, figures: Figures) {
  const page = await context.newPage()
  await page.goto(url)
  await page.locator('[data-row="5"]').waitFor()
  for (let job = 0; job < NEWS; job += 1) {
    const { id } = (await ask(server, 'POST', '/v2/waiting/run', { input: {} })) as { id: string }
    const acceptedMs = performance.now()
    await page.waitForFunction(end => document.body.textContent.includes(end), id.slice(-10), { polling: 'raf' })
    figures.add('a job that was accepted is on the screen after, ms', performance.now() - acceptedMs)
  }
  await page.close()
}

/** Smallest height of a row, in pixels: a list of at least that height for each row has all rows. */
const ROW_PX = 15
/** Longest time in which a list loads all rows. */
const READ_MS = 180_000

/** A list to scroll. */
interface List {
  readonly url: string
  /** Selector of the element that scrolls. */
  readonly element: string
  readonly rows: number
  readonly name: string
}

async function measureScroll(context: BrowserContext, { url, element, rows, name }: List, figures: Figures) {
  const page: Page = await context.newPage()
  await page.goto(url)
  // Some lists load more rows when their end is visible.
  await page.waitForFunction(
    ([element, least]) => {
      const scrolled = document.querySelector(element as string)
      if (scrolled === null) return false
      scrolled.scrollTop = scrolled.scrollHeight
      return scrolled.scrollHeight > (least as number)
    },
    [element, rows * ROW_PX] as const,
    { timeout: READ_MS, polling: 20 },
  )
  const times = await page.evaluate(
    async ([element, frames, step]) => {
      const scrolled = document.querySelector(element)!
      scrolled.scrollTop = 0
      const times: number[] = []
      let lastMs = performance.now()
      for (let frame = 0; frame < frames; frame += 1) {
        scrolled.scrollTop += step
        await new Promise(requestAnimationFrame)
        const nowMs = performance.now()
        times.push(nowMs - lastMs)
        lastMs = nowMs
      }
      return times.sort((a, b) => a - b)
    },
    [element, FRAMES, STEP_PX] as const,
  )
  figures.add(`${name}: frames a second while scrolling`, 1_000 / (times.reduce((sum, ms) => sum + ms, 0) / FRAMES))
  figures.add(`${name}: slowest of 20 frames, ms`, times[Math.floor(FRAMES * 0.95)]!)
  await page.close()
}

async function startServer(): Promise<ReadyServer> {
  const printing = workerFolder(
    'printing',
    `for (let n = 0; n < ${LINES}; n += 1) console.log(\`line \${n} of what a worker prints\`); return {}`,
  )
  const options = ['--port', '0', '--json', '--log-level', 'silent', '--data-dir', join(folder, 'data')]
  const folders = ['--worker', printing, '--worker', workerFolder('waiting', 'return {}')]
  const child = spawn('./bin/runyard', ['serve', ...options, ...folders], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const server = await ready(child)
  await ask(server, 'PATCH', '/v2/serverless/waiting', { workers: { max: 0 } })
  await ask(server, 'POST', '/v2/printing/runsync?wait=120000', { input: {} })
  const common = { type: 'QUEUE', image: `dir:${printing}`, cpu: [{ id: 'cpu3g', vcpuCount: 2 }] }
  const scaling = { type: 'QUEUE_DELAY', queueDelay: 4 }
  await inParallel(ENDPOINTS, n => ask(server, 'POST', '/v2/serverless', { name: `model-${n}`, ...common, scaling }))
  await inParallel(REQUESTS, n => ask(server, 'POST', '/v2/waiting/run', { input: { n } }))
  return server
}

function workerFolder(name: string, code: string): string {
  const worker = join(folder, name)
  mkdirSync(join(worker, 'node_modules', '@runyard'), { recursive: true })
  symlinkSync(resolve('packages/worker'), join(worker, 'node_modules', '@runyard', 'worker'))
  writeFileSync(
    join(worker, 'handler.mjs'),
    `import { start } from '@runyard/worker'\nstart({ handler: () => { ${code} } })\n`,
  )
  return worker
}

async function inParallel(times: number, act: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const send = async () => {
    for (let n = next++; n < times; n = next++) await act(n)
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
}

async function ask({ url, key }: ReadyServer, method: string, path: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} got ${response.status}: ${text}`)
  return JSON.parse(text)
}

/** Starts the page to compare with, which has all rows at once and no script. */
async function startPlainPage(): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const [path, number] = url.split('?')
    const row = (n: number) =>
      path === '/rows'
        ? `<tr><td>model-${n}<td>Scaled to zero<td>0/3<td>0</tr>`
        : `<div>line ${n} of what a worker prints</div>`
    const rows = Array.from({ length: Number(number) }, (_, n) => row(n)).join('')
    const style = '<style>#scroll { height: 700px; overflow: auto } td, div { font: 14px sans-serif }</style>'
    response.setHeader('content-type', 'text/html')
    response.end(`<!doctype html>${style}<div id="scroll">${path === '/rows' ? `<table>${rows}</table>` : rows}</div>`)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  server.unref()
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

try {
  await main()
} finally {
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map(child => new Promise(done => child.once('exit', done))))
  rmSync(folder, { recursive: true, force: true })
}
