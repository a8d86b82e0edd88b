/** The state of a container engine. */
import type { EngineState } from '../core/observing/diagnosis.ts'
import type { EngineConnection } from '../drivers/docker/engine/connection.ts'
import { readFreeBytes } from './machine.ts'

interface Info {
  readonly Driver?: string
  readonly CgroupVersion?: string
  readonly DockerRootDir?: string
  readonly SecurityOptions?: readonly string[] | null
  readonly Runtimes?: Readonly<Record<string, unknown>>
  readonly DiscoveredDevices?: readonly { readonly ID?: string }[] | null
  readonly SystemTime?: string
  readonly MemoryLimit?: boolean
  readonly CpuCfsQuota?: boolean
  readonly PidsLimit?: boolean
}

interface Version {
  readonly Version: string
  readonly ApiVersion: string
  readonly Components?: readonly { readonly Name: string }[]
}

const UNKNOWN: Omit<EngineState, 'address' | 'problem'> = {
  product: 'docker',
  version: '',
  apiVersion: '',
  storageDriver: '',
  cgroupVersion: '',
  rootless: false,
  missingLimits: [],
  freeBytes: null,
  skewMs: null,
  hasNvidiaRuntime: false,
}

/** Reads the version, limits and storage of an engine. */
export async function inspectEngine({ engine, address, local }: EngineConnection): Promise<EngineState> {
  try {
    const askedMs = Date.now()
    const info = await engine.call<Info>({ method: 'GET', path: '/info' })
    const nowMs = (askedMs + Date.now()) / 2
    const version = await engine.call<Version>({ method: 'GET', path: '/version' })
    const isPodman = (version.Components ?? []).some(({ Name }) => /podman/i.test(Name))
    const limits = { memory: info.MemoryLimit, cpu: info.CpuCfsQuota, pids: info.PidsLimit }
    const engineMs = Date.parse(info.SystemTime ?? '')
    return {
      address,
      problem: null,
      product: isPodman ? 'podman' : 'docker',
      version: version.Version,
      apiVersion: version.ApiVersion,
      storageDriver: info.Driver ?? 'unknown',
      cgroupVersion: info.CgroupVersion ?? '1',
      rootless: (info.SecurityOptions ?? []).some(option => option.includes('rootless')),
      missingLimits: Object.entries(limits).flatMap(([name, has]) => (has === false ? [name] : [])),
      freeBytes: local && info.DockerRootDir !== undefined ? readFreeBytes(info.DockerRootDir) : null,
      skewMs: Number.isNaN(engineMs) ? null : engineMs - nowMs,
      hasNvidiaRuntime:
        'nvidia' in (info.Runtimes ?? {}) ||
        (info.DiscoveredDevices ?? []).some(({ ID }) => ID?.startsWith('nvidia.com/') === true),
    }
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException
    return { ...UNKNOWN, address, problem: code ?? message }
  }
}
