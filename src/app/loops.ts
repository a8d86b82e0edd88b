import { Autoscaler } from '../control/autoscaler.ts'
import { BackupScheduler } from '../control/backup-scheduler.ts'
import { Freezer } from '../control/freezer.ts'
import { HealthChecker } from '../control/health-checker.ts'
import { Loop } from '../control/loop.ts'
import { Placer } from '../control/placer.ts'
import { Reaper } from '../control/reaper.ts'
import { Remover } from '../control/remover.ts'
import { Sweeper } from '../control/sweeper.ts'
import { WebhookDispatcher } from '../control/webhook-dispatcher.ts'
import { WorkerUsageMeter } from '../control/worker-usage-meter.ts'
import { WorkerWatchdog } from '../control/worker-watchdog.ts'
import { SERVER_ORIGIN } from '../core/audit/entry.ts'
import { PLACEMENT_RULES } from '../core/placement/placement-input.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { BackupFolder } from '../ports/backups.ts'
import type { AuditLog } from '../services/audit/audit-log.ts'
import type { TimeKeeper } from '../services/observing/server-time.ts'
import type { AppConfig } from './config.ts'
import type { AppServices } from './services.ts'

/** The control loops. They are made here, and do nothing before {@link start}. */
export class Loops {
  readonly #quotas: AppServices['quotas']
  readonly #autoscaling: Loop
  readonly #healthChecking: Loop
  readonly #reaping: Loop
  readonly #sweeping: Loop
  readonly #removing: Loop
  readonly #dispatching: Loop
  readonly #backingUp: Loop
  readonly #timing: Loop
  readonly #autoscaler: Autoscaler
  readonly #healthChecker: HealthChecker
  readonly #meter: WorkerUsageMeter
  readonly #reaper: Reaper
  readonly #sweeper: Sweeper
  readonly #remover: Remover
  readonly #dispatcher: WebhookDispatcher
  /** Null if no backups are made. */
  readonly #backups: BackupScheduler | null
  readonly #timeKeeper: TimeKeeper | null
  readonly #unwatch: () => void

  constructor(services: AppServices, { placing, backupFolder }: AppConfig) {
    const { ports, quotas, jobs, batches, webhooks, fleet, models, running, workerFreezer, balancing } = services
    const { freezeRules: rules, recordRules, recorders, audit } = services
    this.#quotas = quotas
    this.#autoscaling = new Loop('autoscaler', ports)
    this.#healthChecking = new Loop('prober', ports)
    this.#reaping = new Loop('reaper', ports)
    this.#sweeping = new Loop('sweeper', ports)
    this.#removing = new Loop('remover', ports)
    this.#dispatching = new Loop('courier', ports)
    this.#backingUp = new Loop('backups', ports)
    this.#timing = new Loop('clock', ports)
    this.#timeKeeper = services.timeKeeper
    this.#meter = new WorkerUsageMeter(ports, balancing)
    const freezer = new Freezer(ports, { fleet, workerFreezer, balancing, served: this.#meter }, rules)
    const placer = new Placer(
      ports,
      { fleet, freezer, workerFreezer, balancing, quotas },
      { ...PLACEMENT_RULES, ...placing },
    )
    const scaled = { fleet, models, balancing, placer, freezer, served: this.#meter, rules }
    this.#autoscaler = new Autoscaler(ports, scaled, this.#autoscaling.wake)
    this.#healthChecker = new HealthChecker(ports, { fleet, balancing, workerFreezer }, this.#healthChecking.wake)
    this.#reaper = new Reaper(
      ports,
      { fleet, workerFreezer, running, quotas },
      new WorkerWatchdog(ports, services),
      recordRules,
      recorders,
    )
    this.#sweeper = new Sweeper(ports, jobs, batches)
    this.#remover = new Remover(ports, jobs)
    this.#dispatcher = new WebhookDispatcher(ports, webhooks, this.#dispatching.wake)
    this.#backups = backupFolder === undefined ? null : new BackupScheduler(ports, inAuditLog(backupFolder, audit))
    ports.notifier.subscribe('fleet', this.#reaping.wake)
    ports.notifier.subscribe('webhooks', this.#dispatching.wake)
    ports.notifier.subscribe('endpoints', this.#removing.wake)
    this.#unwatch = ports.leader.watch(now => {
      if (now === 'active') this.#lead()
    })
  }

  /** Starts all of them. */
  start(): void {
    this.#autoscaling.start(nowMs => this.#autoscaler.step(nowMs))
    this.#healthChecking.start(async nowMs =>
      earliest([await this.#healthChecker.step(nowMs), await this.#meter.step(nowMs)]),
    )
    this.#reaping.start(nowMs => this.#reaper.step(nowMs))
    this.#sweeping.start(nowMs => this.#sweeper.step(nowMs))
    this.#removing.start(() => this.#remover.step())
    this.#dispatching.start(nowMs => this.#dispatcher.step(nowMs))
    const backups = this.#backups
    if (backups !== null) this.#backingUp.start(nowMs => backups.step(nowMs))
    const timeKeeper = this.#timeKeeper
    if (timeKeeper !== null) this.#timing.start(nowMs => timeKeeper.step(nowMs))
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
    this.#backups?.end()
    await Promise.all([...this.#all().map(loop => loop.stop()), this.#healthChecker.end(), this.stopDispatching(0)])
  }

  /** Another server may have changed anything in the meantime. */
  #lead(): void {
    for (const loop of this.#all()) loop.wake()
    // If the store fails, the limits that were read at the start stay.
    this.#quotas.readLimits().catch(() => {})
  }

  #all(): Loop[] {
    const ofBackupsAndTime = [this.#backingUp, this.#timing]
    return [
      this.#autoscaling,
      this.#healthChecking,
      this.#reaping,
      this.#sweeping,
      this.#removing,
      this.#dispatching,
      ...ofBackupsAndTime,
    ]
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
