/**
 * One run of the server: it listens, acts when it may, and stands by while another server on its database acts, until
 * a signal comes.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { isDiskFull } from '../disk/full-disk.ts'
import { requireUsable } from '../store/database-check.ts'
import type { CertificateInUse } from '../system/certificates/certificate-in-use.ts'
import { selfSignedFiles } from '../system/certificates/self-signed.ts'
import { acquire, openLease, refuseOtherDatabase, refuseUnfinishedRestore } from './database/store.ts'
import { refusePostgres } from './database/upgrade.ts'
import { setUpFolder } from './folders/folder-setup.ts'
import { foldersIn } from './folders/folders.ts'
import { openCertificate } from './listening/certificate.ts'
import { listenerAddresses, serverOrigins, tryPorts } from './listening/listeners.ts'
import { configuredActiveLabel } from './platform/active-label.ts'
import { loadTracing, Shell, serverLog } from './shell.ts'
import { StartError, startProblem } from './start-error.ts'
import type { ActingServer } from './term.ts'
import { Terms } from './terms.ts'

/** The certificate of a server, for those who connect to it. */
interface ServedCertificate {
  /** SHA-256 of it. */
  readonly fingerprint: string
  /** The file to trust, of one that the server has made for itself; null for others. */
  readonly trustFile: string | null
  /** Reads its files now, as at each change of them. */
  reload(): Promise<void>
}

/** A server that answers. */
export interface RunningServer {
  /** Of the job operations and load-balancing endpoints. */
  readonly url: string
  /** Of GraphQL, REST and the requests of commands; the same unless --admin-port is given. */
  readonly managementUrl: string
  readonly apiKeyFile: string
  /** The address of the console; null without one. */
  readonly consoleUrl: string | null
  /** Its term as the active server; null while it stands by. */
  readonly acting: ActingServer | null
  /** Watches for changes of its role. @param changed receives its new term; null in standby */
  watch(changed: (acting: ActingServer | null) => void): void
  /** Rejects if it cannot act although no other server does; its process should end. */
  readonly failed: Promise<never>
  /** The address that redirects plain HTTP to HTTPS; null without one. */
  readonly redirectUrl: string | null
  /** The certificate of its HTTPS; null for plain HTTP. */
  readonly certificate: ServedCertificate | null
  /** Stops in order; a second call hurries. Resolves when everything is over. */
  stop(): Promise<void>
}

/**
 * Starts the server. Resolves once it acts, or stands by for another one.
 * @param sampleFolder folder of the sample handler
 * @param beforeListening called once, when it can be reached from then on
 * @throws StartError when it cannot start; everything that was opened until then is released
 */
export async function startServer(
  config: Config,
  sampleFolder: string,
  beforeListening: () => void = () => {},
): Promise<RunningServer> {
  const opened = new AsyncDisposableStack()
  try {
    return await openServer({ config, sampleFolder, beforeListening, opened })
  } catch (error) {
    // People need the reason of the failed start, not errors of the cleanup.
    await Promise.allSettled([opened.disposeAsync()])
    throw startError(error, config.dataDir)
  }
}

interface Start {
  readonly config: Config
  readonly sampleFolder: string
  readonly beforeListening: () => void
  readonly opened: AsyncDisposableStack
}

async function openServer({ config, sampleFolder, beforeListening, opened }: Start): Promise<RunningServer> {
  const log = serverLog(config)
  // A server that runs on this data directory has the port: people need to know that it runs.
  const isFresh = !existsSync(config.dataDir)
  if (isFresh) await tryPorts(config)
  await refuseOtherDatabase(config, log)
  if (config.databaseUrl !== null) await requireUsable(config.databaseUrl)
  const lock = acquire(config, true)
  opened.defer(() => lock.release())
  // One may have begun before the lock was taken, and may have been killed.
  refuseUnfinishedRestore(config)
  if (!isFresh) await tryPorts(config)
  const { databaseUrl } = config
  const candidate = databaseUrl === null ? null : await openLease(config, databaseUrl, lock.first)
  opened.defer(() => candidate?.close())
  const certificate = await openCertificate(config)
  opened.defer(() => certificate?.close())
  if (databaseUrl !== null) await refusePostgres(config, databaseUrl)
  const folders = foldersIn(config, sampleFolder)
  for (const folder of folders.inProcesses) await setUpFolder(resolve(folder), config.folderSetup, log)

  const tracing = await loadTracing(config.tracing, log)
  const shell = new Shell({ config, log, lock, folders, certificate, tracing, beforeListening })
  opened.defer(() => shell.traces?.close())
  opened.defer(() => shell.endListeners(0))
  certificate?.follow(shell.emit)
  const terms = new Terms(shell, candidate, configuredActiveLabel(config, log))
  opened.defer(() => terms.abandon())
  await terms.begin()
  const listeners = await shell.listen()
  const { url, managementUrl } = listenerAddresses(listeners)
  const { consoleUrl = null } = serverOrigins(config, url, managementUrl)
  const stop = async (hurry: AbortSignal) => {
    await terms.stop(hurry)
    await opened.disposeAsync()
  }
  return {
    url,
    managementUrl,
    apiKeyFile: shell.apiKeyFile,
    consoleUrl,
    get acting() {
      return terms.acting
    },
    watch: changed => terms.watch(changed),
    redirectUrl: listeners.redirect?.url ?? null,
    certificate: certificate === null ? null : servedCertificate(certificate, config),
    failed: terms.failed.catch(error => Promise.reject(startError(error, config.dataDir))),
    stop: onceOrHurried(stop),
  }
}

function servedCertificate(certificate: CertificateInUse, { tls, dataDir }: Config): ServedCertificate {
  return {
    get fingerprint() {
      return certificate.current.about.fingerprint
    },
    trustFile: tls.selfSigned ? selfSignedFiles(dataDir).certificate : null,
    reload: () => certificate.look(),
  }
}

/** The reason of a failed start: on a full disk, the lack of room. */
function startError(error: unknown, dataDir: string): StartError {
  if (error instanceof StartError) return error
  const problem = startProblem(error)
  const message = isDiskFull(dataDir)
    ? `the data directory ${dataDir} cannot be used: its disk is full; make room there (${problem})`
    : problem
  return new StartError(message, { cause: error })
}

/** The first call begins, further ones hurry; all wait for the same end. */
function onceOrHurried(stop: (hurry: AbortSignal) => Promise<void>): () => Promise<void> {
  const hurry = new AbortController()
  let stopping: Promise<void> | null = null
  return () => {
    if (stopping !== null) hurry.abort()
    stopping ??= stop(hurry.signal)
    return stopping
  }
}
