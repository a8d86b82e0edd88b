/** All checks of `runyard doctor`, with and without a server that runs. */
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import * as diagnosis from '../core/observing/diagnosis.ts'
import { describeLimits, findLimits } from '../drivers/cage/limits.ts'
import { tryOwnNetwork } from '../drivers/cage/network-trial.ts'
import { tryCage } from '../drivers/cage/trial.ts'
import { connectEngine } from '../drivers/docker/connection.ts'
import { checkFile, checkPostgres } from '../store/database-check.ts'
import { knownInstallation } from '../system/coordination/installation.ts'
import { openFileLimit } from '../system/hardware/open-files.ts'
import { lookAtEngine } from './engine.ts'
import { lookAtDataDir, lookAtGpus, lookAtMemory, lookAtPort } from './machine.ts'
import { type Probed, probeReach } from './probe.ts'

/** What is looked at, and with what. */
export interface DiagnoseOptions {
  readonly config: Pick<
    Config,
    'dataDir' | 'host' | 'port' | 'databaseUrl' | 'docker' | 'dockerNetwork' | 'dockerWorkerAddress' | 'workerNetwork'
  >
  /** The image that the container is of which calls this machine; null for a small one that is there. */
  readonly image: string | null
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Looks at one thing after the other and says what it found. Changes nothing that stays. */
export async function* diagnose({ config, image, env }: DiagnoseOptions): AsyncGenerator<diagnosis.Finding> {
  const { dataDir, host, port, databaseUrl } = config
  yield diagnosis.ofNode(process.versions.node)
  yield* diagnosis.ofDataDir(lookAtDataDir(dataDir))
  yield diagnosis.ofMemory(lookAtMemory())
  yield diagnosis.ofOpenFiles(openFileLimit())
  const cage = tryCage()
  yield diagnosis.ofCage('problem' in cage ? cage : null, describeLimits(findLimits()))
  if ('bwrap' in cage) yield workerNetworkHere(config.workerNetwork, cage.bwrap)
  yield diagnosis.ofPort(await lookAtPort(dataDir, host, port))
  yield* diagnosis.ofDatabase(await databaseFacts(dataDir, databaseUrl))
  const connection = connectEngine(config.docker, env)
  const engine = connection === null ? null : await lookAtEngine(connection)
  yield* diagnosis.ofEngine(engine)
  yield diagnosis.ofGpus(await lookAtGpus(env), engine)
  if (connection === null || engine === null || engine.problem !== null) return
  const probed = await probeReach(connection, {
    installation: knownInstallation(dataDir),
    image,
    network: config.dockerNetwork,
    address: config.dockerWorkerAddress,
  })
  yield* ofProbed(probed)
}

function ofProbed({ reach, network, problem, outcome }: Probed): diagnosis.Finding[] {
  return [diagnosis.ofNetwork(reach, network, problem), diagnosis.ofProbe(outcome, network)]
}

async function databaseFacts(dataDir: string, url: string | null): Promise<diagnosis.DatabaseFacts> {
  if (url === null) return { kind: 'file', ...checkFile(join(dataDir, 'runyard.sqlite')), skewMs: null }
  const before = Date.now()
  const { nowMs, ...look } = await checkPostgres(url)
  return { kind: 'PostgreSQL', ...look, skewMs: nowMs === null ? null : nowMs - (before + Date.now()) / 2 }
}

function workerNetworkHere(wanted: Config['workerNetwork'], bwrap: string): diagnosis.Finding {
  return diagnosis.ofWorkerNetwork(wanted, wanted === 'shared' ? null : tryOwnNetwork(bwrap, wanted === 'open'))
}
