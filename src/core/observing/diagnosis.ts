/** Findings about a machine for workers, from facts that were collected on it. */
import { CLOCK_STEP_MS, clockDifference } from '../server-time.ts'
import type { ContainerReach, EngineFacts } from '../workers/container-reach.ts'
import { sharedPortsProblem, strayProblem } from '../workers/isolation.ts'

/** One line of a diagnosis. */
export interface Finding {
  readonly check: string
  /** `skip` if the check could not run. */
  readonly state: 'ok' | 'warn' | 'fail' | 'skip'
  /** A sentence without a full stop. */
  readonly message: string
  /** The remedy; null if none is needed. */
  readonly action: string | null
}

/** A data directory and its disk. */
export interface DataDirFacts {
  readonly path: string
  readonly kind: 'folder' | 'missing' | 'other'
  /** The reason why this user may not use or create it, as a clause; null if this user may. */
  readonly refusal: string | null
  /** Permission bits; null if it does not exist. */
  readonly mode: number | null
  /** Null if the system does not report it. */
  readonly freeBytes: number | null
}

/** The listener at the address of the server. */
export interface PortFacts {
  readonly host: string
  readonly port: number
  /** URL of the running server of the data directory; null if it does not run. */
  readonly serverUrl: string | null
  /** Error code of binding the port; null if the port is free. */
  readonly problem: string | null
  /** The process that uses the port, as "pid 1 (name)". */
  readonly holder: string | null
}

/** State of a database. */
export interface DatabaseFacts {
  readonly kind: 'file' | 'PostgreSQL'
  /** Null if the database works. */
  readonly problem: string | null
  /** The remedy of the problem; null for the general remedy of such a database. */
  readonly remedy: string | null
  /** Null if the database does not exist yet. */
  readonly version: string | null
  /** Its clock minus that of this machine; null if it has no clock. */
  readonly skewMs: number | null
}

/** The folder of the server's scheduled backups. */
export interface BackupFacts {
  readonly folder: string
  readonly everyMs: number
  /** Problem of reading the folder; null if it can be read. */
  readonly problem: string | null
  /** Age of the newest complete backup in it; null if it has no complete backup. */
  readonly newestAgeMs: number | null
  /** Names of newer files that are not complete backups, the newest first. */
  readonly broken: readonly string[]
}

/** A container engine as it describes itself. */
export interface EngineState {
  readonly address: string
  /** Problem of calling it, with an error code such as EACCES if known; null if it answers. */
  readonly problem: string | null
  readonly product: 'docker' | 'podman'
  readonly version: string
  /** The newest version of its API, as `1.41`. */
  readonly apiVersion: string
  readonly storageDriver: string
  readonly cgroupVersion: string
  readonly rootless: boolean
  /** Limits that it cannot enforce on containers: `memory`, `cpu`, `pids`. */
  readonly missingLimits: readonly string[]
  /** Free bytes of the disk with its images; null if this server cannot see that disk. */
  readonly freeBytes: number | null
  readonly skewMs: number | null
  readonly hasNvidiaRuntime: boolean
}

/** A cluster that runs the workers, as this server sees it. */
export interface ClusterState {
  /** Problem of calling it; null if it answers. */
  readonly problem: string | null
  readonly address: string
  readonly version: string
  readonly namespace: string
  /** Required permissions that this server lacks, as "create pods". */
  readonly missing: readonly string[]
  /** Optional permissions that this server lacks. */
  readonly lacking: readonly string[]
}

/** GPUs as far as they can be seen without an engine. */
export interface GpuFacts {
  /** Names of NVIDIA cards, as the vendor's tool lists them. */
  readonly nvidia: readonly string[]
  /** Problem of reading the cards, or of single cards, as a sentence; null without a problem. */
  readonly problem: string | null
  /** True if NVIDIA's driver is loaded. */
  readonly nvidiaDriver: boolean
  readonly amd: boolean
  /** True if devices are described for engines (CDI) on this machine. */
  readonly hasCdi: boolean
}

/** Outcome of a call from inside a container to a listener. */
export type ProbeOutcome =
  | { readonly what: 'reached'; readonly image: string }
  | { readonly what: 'unreached'; readonly image: string; readonly error: string }
  | { readonly what: 'untested'; readonly why: string }

const GB = 1_000_000_000
const HOUR_MS = 3_600_000
/** Number of intervals after which a backup counts as missed. */
const MISSED = 2
const OLDEST_API = 40
const NEWEST_NODE = 26
const SKEW = { warnMs: 2_000, failMs: 30_000 }
const DISK = { warnGb: 5, failGb: 1 }
const ENGINE_DISK = { warnGb: 20, failGb: 2 }
const MEMORY = { warnMb: 512, failMb: 128 }
/**
 * Time before the expiry of a certificate at which a warning starts: renewal normally happens a month before the
 * expiry.
 */
const CERTIFICATE_DAYS = 14
const DAY_MS = 24 * 60 * 60_000
const FILES = { warn: 4_096, fail: 512 }

/** The finding about the version of Node. @param version as `26.10.0` */
export function checkNode(version: string): Finding {
  const isOld = Number(version.split('.')[0]) < NEWEST_NODE
  return isOld
    ? fail('node', `Node ${version} is too old`, `start bin/runyard, which brings Node ${NEWEST_NODE}`)
    : ok('node', `Node ${version}`)
}

/** The finding about the data directory: it must be usable and private to its owner, and the disk must have room. */
export function checkDataDir({ path, kind, refusal, mode, freeBytes }: DataDirFacts): Finding[] {
  return [folderFinding(), diskFinding('disk', freeBytes, DISK, 'database, logs and network volumes')]

  function folderFinding(): Finding {
    if (kind === 'other') return fail('data directory', `${path} is not a folder`, 'give another --data-dir')
    if (refusal !== null)
      return fail(
        'data directory',
        `${path} cannot be used: ${refusal}`,
        'run this as its owner, or give another --data-dir',
      )
    if (kind === 'missing') return ok('data directory', `${path} is made by the first start`)
    if (((mode ?? 0) & 0o077) !== 0)
      return warn('data directory', `${path} can be read by others`, `chmod 700 '${path}'`)
    return ok('data directory', `${path} is writable and for its owner alone`)
  }
}

/**
 * The finding about memory for workers.
 * @param totalBytes the part of the machine's memory that this process may use
 */
export function checkMemory({ totalBytes, freeBytes }: { totalBytes: number; freeBytes: number }): Finding {
  const free = Math.floor(freeBytes / 2 ** 20)
  const message = `${free} MiB of ${Math.floor(totalBytes / 2 ** 20)} MiB are free`
  if (free < MEMORY.failMb) return fail('memory', message, 'end something else, or use a larger machine')
  if (free < MEMORY.warnMb)
    return warn('memory', message, 'few workers will fit; end something else, or use a larger machine')
  return ok('memory', message)
}

/**
 * The finding about cages, which isolate workers that are processes.
 * @param wanted the setting
 * @param lack null if a cage was made; else the problem and its remedy
 * @param limits limits that a cage would enforce, as a clause
 */
export function checkCage(
  wanted: 'auto' | 'required' | 'off',
  lack: { readonly problem: string; readonly action: string } | null,
  limits: string,
): Finding {
  const rights = 'workers that are processes run without a cage, with all rights of the user of the server'
  if (lack === null && wanted === 'off')
    return warn(
      'cage',
      `${rights} because of --worker-sandbox off`,
      'leave --worker-sandbox off out; cages can be made here',
    )
  if (lack === null) return ok('cage', `workers that are processes run in cages, ${limits}`)
  const message = wanted === 'required' ? 'no worker can be a process, since cages are required' : rights
  return warn('cage', `${message}: ${lack.problem}`, lack.action)
}

/**
 * The finding about stray processes: those that workers without a cage started must end with them.
 * @param lack null if their processes get a mark; else the problem and its remedy
 */
export function checkStrays(lack: { readonly problem: string; readonly action: string } | null): Finding {
  if (lack === null)
    return ok('strays', 'what a worker has started ends with it, including processes that left its session')
  return warn('strays', strayProblem(lack), lack.action)
}

/**
 * The finding about networks of workers in cages.
 * @param wanted the part of the network that they should reach
 * @param lack null if such a network was made; else the problem and its remedy
 */
export function checkWorkerNetwork(
  wanted: 'open' | 'server' | 'shared',
  lack: { readonly problem: string; readonly action: string } | null,
): Finding {
  if (wanted === 'shared') return ok('cage network', "workers in cages share the machine's network, as is wanted")
  if (lack === null) return ok('cage network', 'workers in cages can have networks of their own')
  return warn('cage network', sharedPortsProblem(lack), lack.action)
}

/** The finding about the limit of connections. @param limit null if the system does not report it */
export function checkOpenFiles(limit: number | null): Finding {
  if (limit === null) return skip('open files', 'this system does not say how many files may be open')
  const message = `${limit} files and connections may be open`
  const action = 'raise it with ulimit -n, or LimitNOFILE= of the systemd service'
  if (limit < FILES.fail) return fail('open files', message, action)
  return limit < FILES.warn ? warn('open files', message, action) : ok('open files', message)
}

/** The certificate of HTTPS: its names and its expiry, or its problem. */
export type CertificateState =
  | { readonly subject: string; readonly expiresAtMs: number }
  /** A sentence. */
  | { readonly problem: string }

/** The finding about HTTPS, and the expiry of its certificate. */
export function checkCertificate(state: CertificateState, nowMs: number): Finding {
  if ('problem' in state) return fail('certificate', state.problem, 'give files that fit in --tls-cert and --tls-key')
  const { subject, expiresAtMs } = state
  const days = Math.floor((expiresAtMs - nowMs) / DAY_MS)
  const message = `the one of ${subject} is valid for ${days} ${days === 1 ? 'day' : 'days'}`
  if (days >= CERTIFICATE_DAYS) return ok('certificate', message)
  return warn('certificate', message, 'renew its files; a running server takes them up by itself')
}

/** The finding about the port of the server. */
export function checkPort({ host, port, serverUrl, problem, holder }: PortFacts): Finding {
  if (serverUrl !== null) return ok('server', `it runs and answers at ${serverUrl}`)
  if (problem === null) return ok('port', `${host} port ${port} is free; no server runs`)
  if (problem === 'EADDRINUSE')
    return fail(
      'port',
      `port ${port} is in use${holder === null ? '' : ` by ${holder}`}`,
      'end that, or give another --port',
    )
  if (problem === 'EACCES') return fail('port', `this user may not listen on port ${port}`, 'give a --port above 1023')
  if (problem === 'EADDRNOTAVAIL')
    return fail('port', `${host} is not an address of this machine`, 'give another --host')
  return fail('port', `cannot listen on ${host} port ${port}: ${problem}`, 'give another --host or --port')
}

/** The finding about the database and its clock. */
export function checkDatabase({ kind, problem, remedy, version, skewMs }: DatabaseFacts): Finding[] {
  const name = kind === 'file' ? 'the embedded database' : 'PostgreSQL'
  if (problem !== null) {
    const usual = kind === 'file' ? 'restore a backup, or give another --data-dir' : 'see --database'
    return [fail('database', `${name}: ${problem}`, remedy ?? usual)]
  }
  const message = version === null ? `${name} is made by the first start` : `${name} answers (${version})`
  return [ok('database', message), ...(skewMs === null ? [] : [clockFinding('PostgreSQL', skewMs)])]
}

/**
 * The finding about the clock of the machine against the time of the server.
 * @param aheadMs difference by which it is ahead; null if no server has run
 */
export function checkServerTime(aheadMs: number | null): Finding[] {
  if (aheadMs === null) return []
  const agrees = Math.abs(aheadMs) <= CLOCK_STEP_MS
  if (agrees) return [ok('clock', 'the clock of this machine agrees with the time of the server')]
  const message = `the clock of this machine is ${clockDifference(aheadMs)} the time of the server, which goes on as before`
  return [warn('clock', message, 'correct the clock, or let the server take its time: runyard clock accept')]
}

/** The finding about the age of the newest backup. */
export function checkBackups({ folder, everyMs, problem, newestAgeMs, broken }: BackupFacts): Finding {
  if (problem !== null) return fail('backups', `${folder} cannot be read: ${problem}`, 'see --backup-folder')
  const cause = 'the log of the server has the reason at backup.failed'
  if (newestAgeMs === null && broken.length > 0)
    return fail('backups', `${broken[0]} is not a complete backup, and ${folder} has no other`, cause)
  if (newestAgeMs === null) return warn('backups', `${folder} has no backup yet`, `start the server; ${cause}`)
  const age = `the newest backup in ${folder} is ${hoursText(newestAgeMs)} old`
  if (newestAgeMs > MISSED * everyMs) return fail('backups', `${age}, and one is due every ${everyMs / HOUR_MS}`, cause)
  if (broken.length === 0) return ok('backups', age)
  const message = `${broken[0]} in ${folder} is not a complete backup: it was truncated or changed; ${age}`
  return warn('backups', message, 'copy it again from a complete one, or remove it')
}

function hoursText(ms: number): string {
  return `${Math.round(ms / HOUR_MS)} hours`
}

/** The finding about a cluster: it must answer, and permit the required actions. */
export function checkCluster({ problem, address, version, namespace, missing, lacking }: ClusterState): Finding[] {
  if (problem !== null) {
    const action = 'see that kubectl reaches it with the same configuration (kubectl get pods)'
    return [
      fail('cluster', `the cluster${address === '' ? '' : ` at ${address}`} does not respond: ${problem}`, action),
    ]
  }
  const findings = [ok('cluster', `Kubernetes ${version} at ${address}, namespace ${namespace}`)]
  if (missing.length > 0) {
    const message = `this server may not ${missing.join(', ')} in the namespace ${namespace}`
    findings.push(
      fail('cluster rights', message, 'give its account a role with these rights, as deploy/helm/runyard does'),
    )
  } else if (lacking.length > 0) {
    const message = `this server may not ${lacking.join(', ')}; it works without these rights`
    findings.push(warn('cluster rights', message, 'see docs/adr/0060-workers-are-bare-pods.md for the effects'))
  } else findings.push(ok('cluster rights', 'this server has all required rights'))
  return findings
}

/** The findings about an engine and its features that workers need. @param state null if no engine was found */
export function checkEngine(state: EngineState | null): Finding[] {
  if (state === null) {
    return [
      warn(
        'engine',
        'no container engine was found; only folders can be run',
        'install Docker or Podman, or set DOCKER_HOST',
      ),
    ]
  }
  if (state.problem !== null) return [engineAway(state.address, state.problem)]
  const { product, version, apiVersion, storageDriver, cgroupVersion, rootless, missingLimits, freeBytes, skewMs } =
    state
  const engine = `${product === 'podman' ? 'Podman' : 'Docker'} ${version}${rootless ? ', without root' : ''}`
  const findings = [ok('engine', `${engine} at ${state.address} (storage ${storageDriver}, cgroup ${cgroupVersion})`)]
  if (Number(apiVersion.split('.')[1]) < OLDEST_API) {
    findings[0] = fail('engine', `${engine} speaks API ${apiVersion} only`, `use Docker 19.03 or Podman 4 and newer`)
  }
  if (storageDriver === 'vfs') {
    findings.push(
      warn('engine storage', 'vfs copies the whole image for each container', 'set the storage driver overlay2'),
    )
  }
  if (missingLimits.length > 0) {
    const message = `containers cannot be limited in ${missingLimits.join(', ')}`
    findings.push(
      warn(
        'engine limits',
        message,
        rootless
          ? 'delegate the controllers to the user (systemd Delegate=yes)'
          : 'turn the cgroup controllers on in the kernel',
      ),
    )
  }
  if (freeBytes !== null) findings.push(diskFinding('engine disk', freeBytes, ENGINE_DISK, 'images and containers'))
  if (skewMs !== null) findings.push(clockFinding('the engine', skewMs))
  return findings
}

const GPUS_ELSEWHERE = 'none here; workers of GPU endpoints run on nodes of the cluster'
const GPUS_NOWHERE = 'none; workers of GPU endpoints run on the CPU'

/**
 * The finding about GPUs for containers.
 * @param isElsewhere true if containers run on a platform with machines of its own, whose GPUs are not those of this
 * machine
 */
export function checkGpus(
  { nvidia, problem, nvidiaDriver, amd, hasCdi }: GpuFacts,
  engine: EngineState | null,
  isElsewhere = false,
): Finding {
  if (problem !== null) {
    const read = nvidia.length === 0 ? '' : `${nvidia.length} can be read; `
    return warn(
      'gpu',
      `${read}${problem}`,
      'run that tool and read its output; workers get no GPU that the server cannot read',
    )
  }
  if (nvidia.length === 0 && nvidiaDriver) {
    return warn('gpu', "NVIDIA's driver is loaded and nvidia-smi lists no card", 'run nvidia-smi and read its output')
  }
  if (nvidia.length === 0) return ok('gpu', amd ? 'an AMD GPU (/dev/kfd)' : isElsewhere ? GPUS_ELSEWHERE : GPUS_NOWHERE)
  const names = `${nvidia.length} (${[...new Set(nvidia)].join(', ')})`
  if (engine === null || engine.problem !== null) return ok('gpu', names)
  if (engine.hasNvidiaRuntime || hasCdi) return ok('gpu', `${names}, for containers too`)
  const action = "install the NVIDIA Container Toolkit, run 'nvidia-ctk runtime configure' and restart the engine"
  return fail('gpu', `${names}, which the engine cannot give to containers`, action)
}

/**
 * The finding about suspending processes. Missing support is no problem.
 * @param lack the reason, as a clause; null if the driver can suspend
 * @param canHold true if the threads of processes can be held meanwhile
 */
export function checkGpuSuspend(lack: string | null, canHold: boolean): Finding {
  const risk =
    'this server may make no control groups of version 2, so a process whose threads call CUDA while it idles may end'
  if (lack === null && canHold)
    return ok('gpu suspend', 'the driver can suspend processes; runyard doctor --gpu tries it')
  if (lack === null) return ok('gpu suspend', `the driver can suspend processes; ${risk}`)
  return ok('gpu suspend', `processes keep their memory on the GPU while they are frozen: ${lack}`)
}

/**
 * The finding about the network from containers to the server.
 * @param network null with a reason if no network was found
 */
export function checkNetwork(
  reach: ContainerReach | null,
  network: { readonly name: string; readonly isolated: boolean } | null,
  problem: string | null,
): Finding {
  if (problem !== null) return fail('network', problem, null)
  if (reach === null || network === null) return skip('network', 'there is no engine')
  if (reach.how === 'none') {
    return fail('network', `containers cannot reach this server: ${reach.problem}`, reach.action)
  }
  if (!network.isolated) {
    return warn(
      'network',
      `containers in ${network.name} reach each other`,
      'leave --docker-network out, or make the network with com.docker.network.bridge.enable_icc=false',
    )
  }
  return ok('network', `containers call ${reach.host}, and do not reach each other`)
}

/** The finding about a container's call to a listener of this machine. */
export function checkProbe(outcome: ProbeOutcome, facts: Pick<EngineFacts, 'platform'> | null): Finding {
  if (outcome.what === 'untested') return skip('reachability', `not tested: ${outcome.why}`)
  if (outcome.what === 'reached') return ok('reachability', `a container of ${outcome.image} reached this machine`)
  const firewall = 'let the firewall accept what comes from the interface ry-* (its INPUT chain)'
  const action =
    facts?.platform === 'linux' ? firewall : 'give --docker-worker-address a name that leads to this machine'
  return fail(
    'reachability',
    `a container of ${outcome.image} did not reach this machine${outcome.error === '' ? '' : `: ${outcome.error}`}`,
    action,
  )
}

function engineAway(address: string, problem: string): Finding {
  const message = `nothing answers at ${address} (${problem})`
  if (problem === 'EACCES')
    return fail(
      'engine',
      `this user may not use ${address}`,
      'add the user to the group of the socket, often docker, and log in again',
    )
  if (problem === 'ENOENT' || problem === 'ECONNREFUSED')
    return fail('engine', message, 'start the engine (systemctl start docker), or set DOCKER_HOST')
  return fail('engine', message, 'see the log of the engine, or set DOCKER_HOST')
}

function diskFinding(
  check: string,
  freeBytes: number | null,
  limits: { warnGb: number; failGb: number },
  what: string,
): Finding {
  if (freeBytes === null) return skip(check, 'this system does not report the free space')
  const message = `${(freeBytes / GB).toFixed(1)} GB are free for ${what}`
  const action = 'make room, or use another disk'
  if (freeBytes < limits.failGb * GB) return fail(check, message, action)
  return freeBytes < limits.warnGb * GB ? warn(check, message, action) : ok(check, message)
}

function clockFinding(whose: string, skewMs: number): Finding {
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1)
  const message = `the clock of ${whose} is ${seconds} s ${skewMs < 0 ? 'behind' : 'ahead of'} this one`
  const action = 'let both be set over the network (NTP)'
  if (Math.abs(skewMs) >= SKEW.failMs) return fail('clock', message, action)
  return Math.abs(skewMs) >= SKEW.warnMs
    ? warn('clock', message, action)
    : ok('clock', `the clock of ${whose} agrees with this one`)
}

function ok(check: string, message: string): Finding {
  return { check, state: 'ok', message, action: null }
}

function skip(check: string, message: string): Finding {
  return { check, state: 'skip', message, action: null }
}

function warn(check: string, message: string, action: string | null): Finding {
  return { check, state: 'warn', message, action }
}

function fail(check: string, message: string, action: string | null): Finding {
  return { check, state: 'fail', message, action }
}
