import { AlertKeeper } from '../control/alert-keeper.ts'
import { Autoscaler } from '../control/autoscaler.ts'
import { BackupScheduler } from '../control/backup-scheduler.ts'
import { Freezer } from '../control/freezer.ts'
import { HealthChecker } from '../control/health-checker.ts'
import { Loop, type Step } from '../control/loop.ts'
import { OrphanEnder } from '../control/orphan-ender.ts'
import { Placer } from '../control/placer.ts'
import { Reaper } from '../control/reaper.ts'
import { Remover } from '../control/remover.ts'
import { ShareKeeper } from '../control/share-keeper.ts'
import { Sweeper } from '../control/sweeper.ts'
import { TaskKeeper } from '../control/task-keeper.ts'
import { Upkeep } from '../control/upkeep.ts'
import { WebhookDispatcher } from '../control/webhook-dispatcher.ts'
import { WorkerUsageMeter } from '../control/worker-usage-meter.ts'
import { WorkerWatchdog } from '../control/worker-watchdog.ts'
import { SERVER_ORIGIN } from '../core/audit/entry.ts'
import { PAUSE_RULES, PLACEMENT_RULES } from '../core/placement/placement-input.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { BackupFolder } from '../ports/backups.ts'
import type { AuditLog } from '../services/audit/audit-log.ts'
import { InOrder } from '../services/in-order.ts'
import { WorkerOutputs } from '../services/workers/worker-outputs.ts'
import type { AppConfig } from './config.ts'
import type { AppServices } from './services.ts'

/** The control loops. They are made here, and do nothing before {@link start}. */
export class Loops {
  readonly #quotas
  readonly #autoscaling
  readonly #reaping
  readonly #sweeping
  readonly #dispatching
  readonly #healthChecker: HealthChecker
  readonly #dispatcher: WebhookDispatcher
  readonly #alertKeeper: AlertKeeper
  /** Null if no backups are made. */
  readonly #backups: BackupScheduler | null
  /** All loops with their steps. */
  readonly #steps: ReadonlyMap<Loop, Step>
  readonly #unwatch: () => void
  /** Ends the reading of events. */
  readonly #unread: () => void = () => {}

  constructor(services: AppServices, { placing, pausing, backupFolder }: AppConfig) {
    const { ports, quotas, jobs, batches, webhooks, fleet, models, running, balancing, cards } = services
    const {
      suspender,
      workerFreezer,
      freezeRules: rules,
      recordRules,
      recorders,
      audit,
      timeKeeper,
      largeTexts,
    } = services
    this.#quotas = quotas
    this.#autoscaling = new Loop('autoscaler', ports)
    this.#reaping = new Loop('reaper', ports)
    this.#sweeping = new Loop('sweeper', ports)
    this.#dispatching = new Loop('courier', ports)
    const healthChecking = new Loop('prober', ports)
    const removing = new Loop('remover', ports)
    const served = new WorkerUsageMeter(ports, balancing)
    const freezer = new Freezer(ports, { fleet, workerFreezer, balancing, served }, rules)
    const claiming = new InOrder<'cards'>()
    const placer = new Placer(
      ports,
      { fleet, freezer, suspender, workerFreezer, balancing, quotas, cards, claiming },
      { placing: { ...PLACEMENT_RULES, ...placing }, pausing: { ...PAUSE_RULES, ...pausing } },
    )
    const scaled = { fleet, models, balancing, placer, freezer, served, rules }
    const autoscaler = new Autoscaler(ports, scaled, this.#autoscaling.wake)
    const healthChecker = new HealthChecker(ports, { fleet, balancing, workerFreezer }, healthChecking.wake)
    const upkeep = new Upkeep(ports, recordRules, recorders, {
      outputs: new WorkerOutputs(ports, quotas),
      largeTexts,
      appBuilds: services.appBuilds,
      tasks: services.tasks,
    })
    const watchdog = new WorkerWatchdog(ports, services)
    const taskKeeper = new TaskKeeper(ports, { fleet, balancing })
    const reaper = new Reaper(ports, { fleet, workerFreezer, running, watchdog, upkeep })
    const sweeper = new Sweeper(ports, jobs, batches)
    const remover = new Remover(ports, jobs)
    const orphanEnder = new OrphanEnder(ports, services.tasks)
    const dispatcher = new WebhookDispatcher(ports, webhooks, this.#dispatching.wake)
    const backups = backupFolder === undefined ? null : new BackupScheduler(ports, inAuditLog(backupFolder, audit))
    const alerting = new Loop('alerts', ports)
    this.#alertKeeper = new AlertKeeper(services.alerts)
    this.#healthChecker = healthChecker
    this.#dispatcher = dispatcher
    this.#backups = backups
    const steps: [Loop, Step][] = [
      [this.#autoscaling, nowMs => autoscaler.step(nowMs)],
      [
        healthChecking,
        async nowMs =>
          earliest([await healthChecker.step(nowMs), await served.step(nowMs), await taskKeeper.step(nowMs)]),
      ],
      [this.#reaping, nowMs => reaper.step(nowMs)],
      [this.#sweeping, nowMs => sweeper.step(nowMs)],
      [removing, async nowMs => earliest([await orphanEnder.step(nowMs), await remover.step()])],
      [this.#dispatching, nowMs => dispatcher.step(nowMs)],
      [alerting, nowMs => this.#alertKeeper.step(nowMs)],
    ]
    const unread = [services.events.add(autoscaler.emit)]
    if (ports.gpuMeter !== undefined) {
      const keeping = new Loop('shares', ports)
      const shareKeeper = new ShareKeeper(ports, { fleet, cards, quotas, claiming }, keeping.wake)
      unread.push(services.events.add(shareKeeper.emit))
      steps.push([keeping, nowMs => shareKeeper.step(nowMs)])
    }
    this.#unread = () => {
      for (const end of unread) end()
    }
    if (backups !== null) steps.push([new Loop('backups', ports), nowMs => backups.step(nowMs)])
    if (timeKeeper !== null) steps.push([new Loop('clock', ports), nowMs => timeKeeper.step(nowMs)])
    this.#steps = new Map(steps)
    ports.notifier.subscribe('fleet', this.#reaping.wake)
    ports.notifier.subscribe('webhooks', this.#dispatching.wake)
    ports.notifier.subscribe('alerts', alerting.wake)
    ports.notifier.subscribe('endpoints', removing.wake)
    this.#unwatch = ports.leader.watch(now => {
      if (now === 'active') this.#lead()
    })
  }

  /** Starts all of them. */
  start(): void {
    for (const [loop, step] of this.#steps) loop.start(step)
  }

  /** Stops the start of workers. */
  stopAutoscaling(): Promise<void> {
    return this.#autoscaling.stop()
  }

  /** Stops the reaper: exits of workers are no longer noticed, and jobs no longer time out. */
  async stopReaping(): Promise<void> {
    await Promise.all([this.#reaping.stop(), this.#sweeping.stop()])
  }

  /** Stops the calls of webhooks. @param forMs longest time for open calls to end */
  async stopDispatching(forMs: number): Promise<void> {
    await this.#dispatching.stop()
    await this.#dispatcher.end(forMs)
  }

  /** Ends all of them at once. */
  async stop(): Promise<void> {
    this.#unwatch()
    this.#unread()
    this.#backups?.end()
    this.#alertKeeper.end()
    const ended = [...this.#steps.keys()].map(loop => loop.stop())
    await Promise.all([...ended, this.#healthChecker.end(), this.stopDispatching(0)])
  }

  /** Another server may have changed anything in the meantime. */
  #lead(): void {
    for (const loop of this.#steps.keys()) loop.wake()
    // If the store fails, the limits that were read at the start stay.
    this.#quotas.readLimits().catch(() => {})
  }
}

/** A folder of backups, each of which has its entry. */
function inAuditLog(folder: BackupFolder, audit: AuditLog): BackupFolder {
  const asked = { surface: 'server', operation: 'makeBackup', origin: SERVER_ORIGIN, object: null } as const
  return {
    path: folder.path,
    everyMs: folder.everyMs,
    newest: nowMs => folder.newest(nowMs),
    make: signal =>
      audit.change(asked, () => folder.make(signal), { detailFromResult: ({ file, bytes }) => ({ file, bytes }) }),
  }
}
