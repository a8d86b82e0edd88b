/** The server's inspection of its host: the container engine, and the findings of `runyard doctor`. */
import { type ExecFileException, execFile } from 'node:child_process'
import { type Config, SETTINGS } from '../../config/config.ts'
import { AppError } from '../../core/errors.ts'
import type { Finding } from '../../core/observing/diagnosis.ts'
import { compileCacheEnvironment } from '../../disk/compile-cache.ts'
import { programFile } from '../../disk/package-files.ts'
import { inspectEngine } from '../../doctor/engine.ts'
import { connectEngine } from '../../drivers/docker/engine/connection.ts'
import type { HostInspection } from '../../ports/host-inspection.ts'

const HOUR_MS = 3_600_000
/** Time for all checks: the one with a container takes up to 20 s for each of some images. */
const DIAGNOSIS_MS = 120_000
const MAX_BYTES = 1024 * 1024

/** @param processIsolation see {@link HostInspection} */
export function createHostInspection(config: Config, processIsolation: string): HostInspection {
  return {
    processIsolation,
    async engine() {
      const connection = connectEngine(config.docker, process.env)
      return connection === null ? null : inspectEngine(connection)
    },
    diagnose: () => diagnoseBeside(config),
  }
}

/** In a process of its own, since some of the checks stop the process that makes them for a while. */
async function diagnoseBeside(config: Config): Promise<Finding[]> {
  const { promise, resolve } = Promise.withResolvers<{
    readonly output: string
    readonly error: ExecFileException | null
  }>()
  const options = { env: inspectionEnvironment(config), timeout: DIAGNOSIS_MS, maxBuffer: MAX_BYTES }
  execFile(process.execPath, [programFile('cli/runyard'), 'doctor', '--json'], options, (error, stdout) =>
    resolve({ output: stdout, error }),
  )
  const { output, error } = await promise
  const findings = output
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Finding)
  // It exits with 1 if a check fails, after its report.
  if (findings.length > 0 && error?.killed !== true) return findings
  throw new AppError('unavailable', 'the machine could not be diagnosed', error === null ? {} : { cause: error })
}

/** The environment of the checks: this server's settings, and none of its keys. */
function inspectionEnvironment(config: Config): NodeJS.ProcessEnv {
  const given = Object.entries(process.env).filter(([name]) => !name.startsWith('RUNYARD_'))
  const { dataDir, host, port, databaseUrl, docker, dockerNetwork, dockerWorkerAddress, workerNetwork } = config
  const { where, context, namespace, networkPolicy } = config.kubernetes
  const { folder, everyMs } = config.backups
  const values = {
    dataDir,
    host,
    port,
    database: databaseUrl,
    backupFolder: folder,
    backupEvery: everyMs / HOUR_MS,
    docker,
    dockerNetwork,
    dockerWorkerAddress,
    workerNetwork,
    kubernetes: where,
    kubernetesContext: context,
    kubernetesNamespace: namespace,
    kubernetesNetworkPolicy: networkPolicy,
  }
  const settings = Object.entries(values).flatMap(([name, value]) =>
    value === null ? [] : [[`RUNYARD_${SETTINGS[name]!.variable}`, String(value)]],
  )
  return { ...Object.fromEntries([...given, ...settings]), ...compileCacheEnvironment() }
}
