import { Counter, Gauge, type Registry } from 'prom-client'
import type { Events } from '../../events.ts'

/** Metrics of the backups that the server makes by itself. All are 0 on a server without scheduled backups. */
export class BackupMetrics {
  readonly #interval
  readonly #last
  readonly #bytes
  readonly #failures

  constructor(registry: Registry) {
    const registers = [registry]
    this.#interval = new Gauge({
      registers,
      name: 'runyard_backup_interval_seconds',
      help: 'Time from one backup to the next; 0 where this server makes none',
    })
    this.#last = new Gauge({
      registers,
      name: 'runyard_backup_last_success_timestamp_seconds',
      help: 'When the newest backup was made; 0 for none',
    })
    this.#bytes = new Gauge({ registers, name: 'runyard_backup_bytes', help: 'Bytes of the newest backup' })
    this.#failures = new Counter({
      registers,
      name: 'runyard_backup_failures_total',
      help: 'Backups that could not be made',
    })
  }

  /** Begins the metrics of a server that makes backups. */
  scheduled({ everyMs, newestAtMs, bytes }: Events['backup.scheduled']): void {
    this.#interval.set(everyMs / 1_000)
    this.#newest(newestAtMs ?? 0, bytes ?? 0)
  }

  /** Records a new backup. */
  made({ atMs, bytes }: Events['backup.made']): void {
    this.#newest(atMs, bytes)
  }

  /** Records that a due backup failed. */
  failed(): void {
    this.#failures.inc()
  }

  /** Ends the metrics: another server makes the backups. */
  ended(): void {
    this.#interval.set(0)
    this.#newest(0, 0)
  }

  #newest(atMs: number, bytes: number): void {
    this.#last.set(atMs / 1_000)
    this.#bytes.set(bytes)
  }
}
