/** What the application gets of the settings. */
import { join } from 'node:path'
import type { AppConfig } from '../app.ts'
import { givenConsoleUrl } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import type { AuditDetail } from '../core/audit/entry.ts'
import { packageVersion } from '../disk/package-files.ts'
import { serverNames } from '../server/hosts.ts'
import { AUDIT_HEAD_NAME } from '../store/data-dir-database.ts'
import { createAuditHeadNote } from '../system/audit-head.ts'
import { backupFolderOf, backupsOf } from './commands/backup.ts'
import { hostsOf } from './listening/hosts.ts'

/** The settings that the application reads. */
export function appConfigOf(config: Config): AppConfig {
  const { rateWindows, limitJobs, drainTimeoutMs, metricsPublic, bodyBytes, placing, startAware, prices } = config
  const admission = { open: config.lbPublic, trustedProxies: config.trustedProxies }
  const { freezing, lbBodyBytes: balancedBodyBytes } = config
  const chosen = { placing, freezing, startAware, prices: prices ?? undefined, admission, balancedBodyBytes }
  const management = { rateWindows, limitJobs, deleteRunningEndpoints: config.deleteRunningEndpoints }
  const { acceptSharedHost, webhookPrivate, corsOrigins } = config
  const sharing = { acceptSharedHost, webhookPrivate }
  const { accountLimits, jobRecords } = config
  const backups = backupsOf(config)
  const limits = { bodyBytes, accountLimits, jobRecords }
  return {
    ...management,
    version: packageVersion(),
    consoleUrl: givenConsoleUrl(config),
    isServerName: serverNames(hostsOf(config)),
    drainTimeoutMs,
    metricsPublic,
    corsOrigins,
    sharing,
    ...limits,
    ...chosen,
    audit: config.audit,
    auditHead: createAuditHeadNote(join(config.dataDir, AUDIT_HEAD_NAME)),
    judgesRollouts: config.rolloutJudge === 'on',
    settings: settingsOf(config),
    backups,
    backupFolder: backupFolderOf(config, backups),
  }
}

/** What the audit log says of the settings. */
function settingsOf({ differing, apiKey, previousApiKey, metricsKey, masterKeys }: Config): AuditDetail {
  const given = {
    RUNYARD_API_KEY: apiKey !== null,
    RUNYARD_PREVIOUS_API_KEY: previousApiKey !== null,
    RUNYARD_METRICS_KEY: metricsKey !== null,
    RUNYARD_MASTER_KEY: masterKeys.length > 0,
  }
  const named = Object.entries(given).flatMap(([name, isGiven]) => (isGiven ? [[name, ['set']]] : []))
  return { ...differing, ...Object.fromEntries(named) }
}
