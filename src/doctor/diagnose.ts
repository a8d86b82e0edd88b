/** All checks of `runyard doctor`, with and without a server that runs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { hasTls, type TlsSettings } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import { toAppError } from '../core/errors.ts'
import * as diagnosis from '../core/observing/diagnosis.ts'
import { resumedTime } from '../core/server-time.ts'
import { accessProblem } from '../disk/access-problem.ts'
import { describeLimits, findLimits } from '../drivers/cage/limits.ts'
import { lackWithoutCage, tryOwnNetwork } from '../drivers/cage/network-trial.ts'
import { tryCage } from '../drivers/cage/trial.ts'
import { connectEngine } from '../drivers/docker/engine/connection.ts'
import { findMarker } from '../drivers/process/process-marks.ts'
import { DATABASE_NAME, databaseMismatch } from '../store/data-dir-database.ts'
import { checkFile, checkPostgres, timeOfFile, timeOfPostgres } from '../store/database-check.ts'
import { newestBackup } from '../system/backup/backup-folder.ts'
import { unfinishedRestore } from '../system/backup/unfinished-restore.ts'
import { readPair } from '../system/certificates/key-pair.ts'
import { selfSignedFiles } from '../system/certificates/self-signed.ts'
import { machineClocks } from '../system/clock.ts'
import { readInstallation } from '../system/coordination/identities.ts'
import { openFileLimit } from '../system/hardware/open-files.ts'
import { inspectCluster } from './cluster.ts'
import { inspectEngine } from './engine.ts'
import { suspendLack } from './gpu.ts'
import { inspectDataDir, inspectGpus, inspectMemory, inspectPort } from './machine.ts'
import { type ProbeResult, probeReach } from './probe.ts'

/** The settings of a diagnosis. */
interface DiagnoseOptions {
  readonly config: Pick<
    Config,
    | 'dataDir'
    | 'host'
    | 'port'
    | 'databaseUrl'
    | 'backups'
    | 'docker'
    | 'dockerNetwork'
    | 'dockerWorkerAddress'
    | 'kubernetes'
    | 'workerNetwork'
    | 'workerSandbox'
    | 'tls'
  >
  /** Image of the container that calls this machine; null for a small one that is present. */
  readonly image: string | null
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The reason why a data directory cannot be read, without a full stop; null if it can. */
export function folderRefusal({ dataDir }: Pick<Config, 'dataDir'>): string | null {
  return unfinishedRestore(dataDir)
}

/** Runs the checks in turn and yields their findings. Leaves nothing changed. */
export async function* diagnose({ config, image, env }: DiagnoseOptions): AsyncGenerator<diagnosis.Finding> {
  const { dataDir, host, port, databaseUrl } = config
  yield diagnosis.checkNode(process.versions.node)
  const folder = inspectDataDir(dataDir)
  yield* diagnosis.checkDataDir(folder)
  yield diagnosis.checkMemory(inspectMemory())
  yield diagnosis.checkOpenFiles(openFileLimit())
  const cage = tryCage()
  const { workerSandbox } = config
  const limits = findLimits()
  yield diagnosis.checkCage(workerSandbox, 'problem' in cage ? cage : null, describeLimits(limits))
  const isCaged = 'bwrap' in cage && workerSandbox !== 'off'
  if (!isCaged) yield diagnosis.checkStrays(findMarksLack(env.PATH))
  if ('bwrap' in cage && isCaged) yield inspectWorkerNetwork(config.workerNetwork, cage.bwrap)
  if ('problem' in cage && workerSandbox !== 'off')
    yield diagnosis.checkWorkerNetwork(config.workerNetwork, lackWithoutCage(cage, config.workerNetwork))
  yield diagnosis.checkPort(await inspectPort(dataDir, host, port))
  const certificate = await inspectCertificate(dataDir, config.tls)
  if (certificate !== null) yield diagnosis.checkCertificate(certificate, Date.now())
  // The content of a closed folder cannot be read.
  if (folder.refusal === null || databaseUrl !== null) {
    yield* diagnosis.checkDatabase(await databaseFacts(dataDir, databaseUrl))
    yield* diagnosis.checkServerTime(await timeFacts(dataDir, databaseUrl))
  }
  const { folder: backups, everyMs } = config.backups
  if (backups !== null) yield diagnosis.checkBackups(backupFacts(backups, everyMs, Date.now()))
  if (config.kubernetes.where !== 'off') {
    yield* diagnosis.checkCluster(await inspectCluster(config.kubernetes, env))
    return
  }
  const connection = connectEngine(config.docker, env)
  const engine = connection === null ? null : await inspectEngine(connection)
  yield* diagnosis.checkEngine(engine)
  const gpus = await inspectGpus(env)
  yield diagnosis.checkGpus(gpus, engine)
  if (gpus.nvidia.length > 0) yield diagnosis.checkGpuSuspend(await suspendLack(env), limits.freezer !== null)
  if (connection === null || engine === null || engine.problem !== null) return
  const probed = await probeReach(connection, {
    installation: readInstallation(dataDir),
    image,
    network: config.dockerNetwork,
    address: config.dockerWorkerAddress,
  })
  yield* probeFindings(probed)
}

function findMarksLack(path: string | undefined) {
  const marker = findMarker(path)
  return 'problem' in marker ? marker : null
}

function probeFindings({ reach, network, problem, outcome }: ProbeResult): diagnosis.Finding[] {
  return [diagnosis.checkNetwork(reach, network, problem), diagnosis.checkProbe(outcome, network)]
}

async function databaseFacts(dataDir: string, url: string | null): Promise<diagnosis.DatabaseFacts> {
  // One that does not answer is found below.
  const mismatch = await databaseMismatch(dataDir, url).catch(() => null)
  const kind = url === null ? 'file' : 'PostgreSQL'
  if (mismatch !== null) return { kind, ...mismatch, version: null, skewMs: null }
  if (url === null) return { kind, ...checkFile(join(dataDir, DATABASE_NAME)), skewMs: null }
  const askedMs = Date.now()
  const { nowMs, ...found } = await checkPostgres(url)
  return { kind, ...found, skewMs: nowMs === null ? null : nowMs - (askedMs + Date.now()) / 2 }
}

/** The time by which the machine's clock is ahead of the server's time; null where no server has run. */
async function timeFacts(dataDir: string, url: string | null): Promise<number | null> {
  const storedMark = url === null ? timeOfFile(join(dataDir, DATABASE_NAME)) : await timeOfPostgres(url)
  if (storedMark === null) return null
  const machineMs = Date.now()
  const sinceBootMs = machineClocks.sinceBoot()
  const boot = sinceBootMs === null ? '' : machineClocks.boot
  return machineMs - resumedTime(storedMark, { machineMs, boot, sinceBootMs: sinceBootMs ?? 0 })
}

function backupFacts(folder: string, everyMs: number, nowMs: number): diagnosis.BackupFacts {
  try {
    const { newest, broken } = newestBackup(folder, nowMs)
    return { folder, everyMs, problem: null, newestAgeMs: newest === null ? null : nowMs - newest.atMs, broken }
  } catch (error) {
    const problem = accessProblem(folder, 'write') ?? (error as NodeJS.ErrnoException).code ?? (error as Error).message
    return { folder, everyMs, problem, newestAgeMs: null, broken: [] }
  }
}

function inspectWorkerNetwork(setting: Config['workerNetwork'], bwrap: string): diagnosis.Finding {
  return diagnosis.checkWorkerNetwork(setting, setting === 'shared' ? null : tryOwnNetwork(bwrap, setting === 'open'))
}

/**
 * The certificate of the settings, as a server finds it; null for plain HTTP, and where the server makes one at its
 * first start.
 */
async function inspectCertificate(dataDir: string, tls: TlsSettings): Promise<diagnosis.CertificateState | null> {
  if (!hasTls(tls)) return null
  const { certFile, keyFile } = tls
  const { pair } = selfSignedFiles(dataDir)
  if (tls.selfSigned && !existsSync(pair)) return null
  try {
    const files = { certFile: certFile ?? pair, keyFile: keyFile ?? pair }
    return (await readPair(files, Date.now())).about
  } catch (error) {
    return { problem: toAppError(error).message }
  }
}
