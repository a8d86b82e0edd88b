/** Times of the server's own backups, their reports, and a server that continues without a backup. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BackupScheduler } from '../../../src/control/backup-scheduler.ts'
import { Loop } from '../../../src/control/loop.ts'
import { AppError } from '../../../src/core/errors.ts'
import type { Emit } from '../../../src/events.ts'
import type { BackupFolder, KeptBackup } from '../../../src/ports/backups.ts'
import { singleLeader } from '../../../src/system/coordination/leader.ts'
import { createMetrics } from '../../../src/system/observing/metrics.ts'
import { portsWith } from '../../support/ports.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

class World {
  readonly clock = new VirtualClock()
  readonly kept: KeptBackup[] = []
  readonly said: { name: string; fields: Record<string, unknown> }[] = []
  readonly metrics = createMetrics({ clock: this.clock, ofProcess: false })
  problem: AppError | null = null
  /** Duration of a backup; null for one that ends only when it is aborted. */
  takesMs: number | null = 1_000
  readonly #emit: Emit = (name, fields) => {
    this.said.push({ name, fields: { ...fields } })
    this.metrics.emit(name, fields)
  }

  /** A server with the existing files. */
  start(): () => Promise<void> {
    const folder: BackupFolder = {
      path: '/backups',
      everyMs: DAY_MS,
      newest: async nowMs => {
        if (this.problem !== null) throw this.problem
        return this.kept.findLast(({ atMs }) => atMs <= nowMs) ?? null
      },
      make: async signal => {
        const atMs = this.clock.now()
        await new Promise<void>((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          if (this.takesMs !== null) this.clock.after(this.takesMs, resolve)
        })
        const made = { file: `/backups/${atMs}`, atMs, bytes: 7 }
        this.kept.push(made)
        return made
      },
    }
    const ports = portsWith({ clock: this.clock, leader: singleLeader, emit: this.#emit })
    const scheduler = new BackupScheduler(ports, folder)
    const loop = new Loop('backups', ports)
    loop.start(nowMs => scheduler.step(nowMs))
    return async () => {
      scheduler.end()
      await loop.stop()
    }
  }

  names(): string[] {
    return this.said.map(({ name }) => name)
  }

  ages(): number[] {
    const [first] = this.kept
    return this.kept.map(({ atMs }) => Math.round((atMs - first!.atMs) / HOUR_MS))
  }

  async metric(name: string): Promise<number> {
    const { text } = await this.metrics.expose([], () => ({ requests: 0, sockets: 0, waiting: 0, busyWorkers: 0 }))
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  }
}

test('the first backup is made at once, and one each interval from then on', async () => {
  const world = new World()
  const stop = world.start()
  await world.clock.advance(3 * DAY_MS + HOUR_MS)
  assert.deepEqual(world.ages(), [0, 24, 48, 72])
  assert.deepEqual(world.names(), ['backup.scheduled', ...Array(4).fill('backup.made')])
  assert.deepEqual(world.said[1]?.fields, {
    file: world.kept[0]!.file,
    atMs: world.kept[0]!.atMs,
    bytes: 7,
    tookMs: 1_000,
  })
  assert.equal(await world.metric('runyard_backup_interval_seconds'), DAY_MS / 1_000)
  assert.equal(await world.metric('runyard_backup_last_success_timestamp_seconds'), world.kept.at(-1)!.atMs / 1_000)
  assert.equal(await world.metric('runyard_backup_bytes'), 7)
  await stop()
})

test('a restart neither makes one early nor skips one', async () => {
  const world = new World()
  let stop = world.start()
  await world.clock.advance(HOUR_MS)
  for (let restart = 0; restart < 30; restart += 1) {
    await stop()
    stop = world.start()
    await world.clock.advance(HOUR_MS)
  }
  assert.deepEqual(world.ages(), [0, 24])
  await stop()
  await world.clock.advance(2 * DAY_MS)
  stop = world.start()
  await world.clock.advance(HOUR_MS)
  assert.deepEqual(world.ages().slice(2), [79])
  assert.equal(world.said.findLast(({ name }) => name === 'backup.scheduled')?.fields.newestAtMs, world.kept[1]!.atMs)
  await stop()
})

test('a failed one is reported, and tried again each quarter of an hour', async () => {
  const world = new World()
  world.problem = new AppError('unavailable', 'there is no folder /backups')
  const stop = world.start()
  await world.clock.advance(50 * 60_000)
  assert.deepEqual(world.names(), ['backup.scheduled', ...Array(4).fill('backup.failed')])
  assert.deepEqual(world.said[1]?.fields, { folder: '/backups', problem: 'there is no folder /backups' })
  assert.equal(await world.metric('runyard_backup_failures_total'), 4)
  world.problem = null
  await world.clock.advance(15 * 60_000)
  assert.equal(world.kept.length, 1)
  await stop()
})

test('while another backup is being made it waits, and says nothing', async () => {
  const world = new World()
  world.problem = new AppError('conflict', 'another backup is being made')
  const stop = world.start()
  await world.clock.advance(5 * 60_000)
  world.problem = null
  await world.clock.advance(2 * 60_000)
  assert.deepEqual(world.names(), ['backup.scheduled', 'backup.made'])
  await stop()
})

test('a stop gives up the one that is being made, which is no failure', async () => {
  const world = new World()
  world.takesMs = null
  const stop = world.start()
  await world.clock.advance(HOUR_MS)
  await stop()
  assert.deepEqual([world.names(), world.kept], [['backup.scheduled'], []])
})

test('a deposed server shows no backups', async () => {
  const world = new World()
  const stop = world.start()
  await world.clock.advance(HOUR_MS)
  await stop()
  world.metrics.emit('leader.changed', { now: 'deposed', problem: null, epoch: 2 })
  for (const name of ['interval_seconds', 'last_success_timestamp_seconds', 'bytes']) {
    assert.equal(await world.metric(`runyard_backup_${name}`), 0, name)
  }
})

test('a truncated newest backup is made again within an hour, and the metric shows the previous one until then', async () => {
  const world = new World()
  const stop = world.start()
  await world.clock.advance(DAY_MS + 10 * HOUR_MS)
  const [first] = world.kept
  world.kept.pop()
  world.takesMs = null
  await world.clock.advance(HOUR_MS)
  assert.equal(await world.metric('runyard_backup_last_success_timestamp_seconds'), first!.atMs / 1_000)
  assert.deepEqual(world.names().slice(-2), ['backup.made', 'backup.scheduled'])
  await stop()
})
