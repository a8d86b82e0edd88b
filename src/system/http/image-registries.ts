import { isIP } from 'node:net'
import type { ImageRegistries } from '../../ports/image-registries.ts'
import { addressProblem, type OutboundAddress } from './addresses.ts'
import { resolveName } from './outbound.ts'

/** Registry of images without one in their names. It may be a mirror that the operator has set in the engine. */
const DEFAULT_REGISTRY = 'docker.io'
/** Suffixes of names that no public resolver has. */
const PRIVATE_NAMES =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|svc|test|invalid)$/
const RESOLVE_MS = 5_000

/** Options of the rule for registries. */
export interface ImageRegistriesOptions {
  /** Registries with private addresses that all accounts may use, each a host, with a port or for all ports. */
  readonly allowed: readonly string[]
  /** Finds the addresses of a name; by default the system's resolver. */
  readonly resolve?: (name: string) => Promise<readonly OutboundAddress[]>
  /** Addresses of the interfaces of this machine; by default those of the system. */
  readonly interfaces?: () => readonly string[]
}

/** Registries with public addresses, and those that the operator allows. */
export function createImageRegistries(options: ImageRegistriesOptions): ImageRegistries {
  const { allowed, interfaces, resolve = resolveName } = options
  const named = new Set(allowed.map(text => text.toLowerCase()))
  const rules = { publicOnly: true, notThisMachine: true, ...(interfaces && { interfaces }) }
  const isFree = (registry: string) => {
    const lowerName = registry.toLowerCase()
    return lowerName === DEFAULT_REGISTRY || named.has(lowerName) || named.has(withoutPort(lowerName))
  }
  const isAllowed = (registry: string) => {
    if (isFree(registry)) return true
    const host = registryHost(registry)
    if (host === null) return false
    if (isIP(host) !== 0) return addressProblem(host, rules) === null
    return host.includes('.') && !PRIVATE_NAMES.test(host)
  }
  return {
    isAllowed,
    async reach(registry) {
      if (!isAllowed(registry)) return 'refused'
      const host = registryHost(registry)
      if (isFree(registry) || host === null || isIP(host) !== 0) return 'allowed'
      const addresses = await resolveInTime(host, resolve)
      if (addresses.length === 0) return 'unresolved'
      return addresses.every(({ address }) => addressProblem(address, rules) === null) ? 'allowed' : 'refused'
    },
  }
}

/** The host of a registry as a resolver reads it: `0x7f.1` is 127.0.0.1. Null for other texts. */
function registryHost(registry: string): string | null {
  const url = URL.parse(`http://${registry}`)
  if (url === null || url.hostname === '') return null
  const name = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  return name.endsWith('.') ? name.slice(0, -1) : name
}

/** `[::1]:5000` without `:5000`. */
function withoutPort(registry: string): string {
  const colon = registry.lastIndexOf(':')
  return colon > registry.lastIndexOf(']') ? registry.slice(0, colon) : registry
}

/** Empty for a name without addresses, or a resolver that does not respond in time. */
async function resolveInTime(
  name: string,
  resolve: (name: string) => Promise<readonly OutboundAddress[]>,
): Promise<readonly OutboundAddress[]> {
  const late = Promise.withResolvers<readonly OutboundAddress[]>()
  const timer = setTimeout(() => late.resolve([]), RESOLVE_MS)
  try {
    return await Promise.race([resolve(name), late.promise])
  } catch {
    return []
  } finally {
    clearTimeout(timer)
  }
}
