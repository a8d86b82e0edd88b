/** The ports and the settings that a term gives to the application. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { AppConfig } from '../app/config.ts'
import type { Config } from '../config/config.ts'
import type { AuditDetail } from '../core/audit/entry.ts'
import { ensureFolder } from '../disk/durable-file.ts'
import { packageVersion } from '../disk/package-files.ts'
import { cagedWords } from '../drivers/cage/caged-tool.ts'
import { type CageTrial, tryCageAside } from '../drivers/cage/trial.ts'
import { BuildCompiler, type Caging } from '../drivers/process/build-compiler.ts'
import type { ArtifactFiles } from '../ports/artifact-files.ts'
import type { Notifier } from '../ports/notifier.ts'
import type { Ports } from '../ports/ports.ts'
import type { VolumeFiles } from '../ports/volume-files.ts'
import type { VolumeFolders } from '../ports/volume-folders.ts'
import { serverNames } from '../server/hosts.ts'
import { AUDIT_HEAD_NAME } from '../store/data-dir-database.ts'
import { createArtifactFiles } from '../system/apps/artifact-files.ts'
import { createAuditHeadNote } from '../system/audit-head.ts'
import { createSpillFiles } from '../system/bodies/spill-files.ts'
import { systemClock } from '../system/clock.ts'
import { createNotifier } from '../system/coordination/notifier.ts'
import { createPostgresNotifier } from '../system/coordination/postgres-notifier.ts'
import { createVolumeFiles } from '../system/files/volume-files.ts'
import { createModelCache, type DiskModelCache } from '../system/models/model-cache.ts'
import type { Log } from '../system/observing/log.ts'
import { createVolumeFolders } from '../system/volume-folders.ts'
import { scheduledBackupFolder, serverBackups } from './commands/backup.ts'
import { serverHosts } from './listening/addresses.ts'
import { modelRoot } from './platform/drivers.ts'

/** Notifications, and the end of their connection, if they have one. */
type Notifications = Notifier & { close?(): Promise<void> }

/** Notifications of this server. */
export function createNotifications(config: Config, log: Log): Notifications {
  const onError = (error: unknown) => log.error({ problem: String(error) }, 'notifier.failed')
  const local = createNotifier({ onError })
  return config.databaseUrl === null ? local : createPostgresNotifier({ url: config.databaseUrl, local, onError })
}

/** The ports of folders of the data directory beside the store. */
export function storageIn(config: Config, log: Log): Pick<Ports, 'volumes' | 'files' | 'artifacts' | 'spill'> {
  const { dataDir, bodyDiskBytes: maxBytes } = config
  const spill = createSpillFiles({ folder: join(dataDir, 'bodies'), maxBytes })
  // Only Linux names open folders by paths.
  const files = process.platform === 'linux' ? filesIn(dataDir) : undefined
  return { volumes: volumesIn(dataDir, log), files, artifacts: artifactsIn(config, log), spill }
}

function filesIn(dataDir: string): VolumeFiles {
  return createVolumeFiles({ root: join(dataDir, 'volumes'), unique: () => randomBytes(16).toString('hex') })
}

function volumesIn(dataDir: string, log: Log): VolumeFolders {
  const folders = createVolumeFolders({
    root: join(dataDir, 'volumes'),
    unique: () => randomBytes(8).toString('hex'),
    onError: error => log.error({ problem: String(error) }, 'volume.not_emptied'),
  })
  void folders.sweep()
  return folders
}

/** Cages of the compiler; null where workers that are processes have none. Tried once, at the first build. */
function cagingFor({ workerSandbox }: Config): Caging | null {
  if (workerSandbox === 'off') return null
  let trying: Promise<CageTrial> | null = null
  return async (program, words, folder) => {
    trying ??= tryCageAside()
    const trial = await trying
    return 'problem' in trial ? [program, ...words] : cagedWords(trial.bwrap, { program, words, folder })
  }
}

function artifactsIn(config: Config, log: Log): ArtifactFiles {
  const { dataDir } = config
  const onError = (error: unknown) => log.error({ problem: String(error) }, 'build.not_emptied')
  const compiler = new BuildCompiler(process.env, systemClock, cagingFor(config))
  const prepare = (folder: string, final: string) => compiler.compile(folder, final)
  const artifacts = createArtifactFiles({ root: join(dataDir, 'apps'), onError, prepare })
  void artifacts.sweep()
  return artifacts
}

/** The models on this machine. */
export function modelsIn(config: Config): DiskModelCache {
  const { modelCacheGb, modelHub } = config
  return createModelCache({
    root: modelRoot(config),
    hub: modelHub,
    limitBytes: modelCacheGb === null ? null : modelCacheGb * 1e9,
    clock: systemClock,
    env: process.env,
  })
}

/** A folder of the data directory, made if it is missing. */
export function folderIn(dataDir: string, name: string): string {
  const folder = join(dataDir, name)
  ensureFolder(folder)
  return folder
}

/** The settings that the application reads. */
export function appConfigFromSettings(config: Config): AppConfig {
  const { rateWindows, limitJobs, drainTimeoutMs, metricsPublic, bodyBytes, placing, pausing, startAware, prices } =
    config
  const admission = { open: config.lbPublic, trustedProxies: config.trustedProxies }
  const { freezing, lbBodyBytes: balancedBodyBytes } = config
  const chosen = { placing, pausing, freezing, startAware, prices: prices ?? undefined, admission, balancedBodyBytes }
  const management = { rateWindows, limitJobs, deleteRunningEndpoints: config.deleteRunningEndpoints }
  const { acceptSharedHost, webhookPrivate, corsOrigins } = config
  const sharing = { acceptSharedHost, webhookPrivate }
  const { accountLimits, artifacts, jobRecords, resultBytes } = config
  const inputBytes = config.inputBytes ?? undefined
  const backups = serverBackups(config)
  const limits = { bodyBytes, resultBytes, inputBytes, accountLimits, artifacts, jobRecords }
  return {
    ...management,
    version: packageVersion(),
    isServerName: serverNames(serverHosts(config)),
    drainTimeoutMs,
    metricsPublic,
    corsOrigins,
    sharing,
    ...limits,
    ...chosen,
    audit: config.audit,
    auditHead: createAuditHeadNote(join(config.dataDir, AUDIT_HEAD_NAME)),
    judgesRollouts: config.rolloutJudge === 'on',
    settings: auditedSettings(config),
    backups,
    backupFolder: scheduledBackupFolder(config, backups),
  }
}

/** The settings in the audit log. */
function auditedSettings({ nonDefaults, apiKey, previousApiKey, metricsKey, masterKeys }: Config): AuditDetail {
  const given = {
    RUNYARD_API_KEY: apiKey !== null,
    RUNYARD_PREVIOUS_API_KEY: previousApiKey !== null,
    RUNYARD_METRICS_KEY: metricsKey !== null,
    RUNYARD_MASTER_KEY: masterKeys.length > 0,
  }
  const named = Object.entries(given).flatMap(([name, isGiven]) => (isGiven ? [[name, ['set']]] : []))
  return { ...nonDefaults, ...Object.fromEntries(named) }
}
