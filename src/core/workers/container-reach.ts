/** The way from containers to this server, from the facts of their engine and its network. */

/** Facts of an engine, of one of its networks, and of this machine. */
export interface EngineFacts {
  /** Platform of this process: `linux`, `darwin`, `win32`. */
  readonly platform: string
  readonly product: 'docker' | 'podman'
  /** The engine's own description of its operating system. */
  readonly operatingSystem: string
  /** True if the engine runs without the rights of root. */
  readonly rootless: boolean
  /** True if its socket is a file of this machine and not a network address. */
  readonly local: boolean
  /** Address of the network's gateway; null without one. */
  readonly gateway: string | null
  /** The addresses of this machine. */
  readonly addresses: readonly string[]
}

/** A way from containers to this server, and back. */
export interface ContainerWay {
  readonly how: 'gateway' | 'virtual_machine' | 'given'
  /** The address of this machine on which the worker surface listens. */
  readonly listenOn: string
  /** The name or address that containers call. */
  readonly host: string
  /** Entries for the hosts file of containers, as `name:address`. */
  readonly extraHosts: readonly string[]
  readonly serving: ContainerServing
}

/**
 * The way from this machine to the programs of containers: their own addresses (`direct`), ports that are
 * published on its loopback address because no route to them exists, or none, since their engine is on another
 * machine.
 */
export type ContainerServing = 'direct' | 'published' | 'none'

/** A way, or the problem and its remedy; `action` is null if the problem includes it. */
export type ContainerReach =
  | ContainerWay
  | { readonly how: 'none'; readonly problem: string; readonly action: string | null }

const LOOPBACK = '127.0.0.1'
/** Names of the host that engines in virtual machines give their containers. */
const HOST_NAMES = { docker: 'host.docker.internal', podman: 'host.containers.internal' } as const
const IN_VIRTUAL_MACHINE = /docker desktop|orbstack|rancher desktop/i
const GIVE_ADDRESS = 'give --docker-worker-address an address of this machine that its containers reach'

/**
 * The way from containers of an engine to this server.
 * @param given configured address or name; null to find one
 */
export function containerReach(facts: EngineFacts, given: string | null): ContainerReach {
  if (given !== null) return givenWay(facts, given)
  const { platform, product, operatingSystem, rootless, local, gateway, addresses } = facts
  if (!local) return { how: 'none', problem: 'the engine is on another machine', action: GIVE_ADDRESS }
  if (platform !== 'linux' || IN_VIRTUAL_MACHINE.test(operatingSystem))
    return throughVirtualMachine(HOST_NAMES[product])
  if (gateway !== null && addresses.includes(gateway)) {
    return { how: 'gateway', listenOn: gateway, host: gateway, extraHosts: [], serving: 'direct' }
  }
  if (rootless)
    return { how: 'none', problem: 'the engine runs without root, so its networks end in it', action: GIVE_ADDRESS }
  if (product === 'podman') {
    const problem = 'Podman makes the address of a network only while a container is in it'
    return { how: 'none', problem, action: GIVE_ADDRESS }
  }
  const problem =
    gateway === null ? 'the network has no gateway' : `the network's gateway ${gateway} is not on this machine`
  return { how: 'none', problem, action: GIVE_ADDRESS }
}

/** A name stands for the loopback address, to which the engine of a virtual machine forwards it. */
function givenWay({ rootless, local, platform, gateway, addresses }: EngineFacts, given: string): ContainerReach {
  if (!isAddress(given)) return throughVirtualMachine(given)
  if (!addresses.includes(given)) {
    return { how: 'none', problem: `--docker-worker-address ${given} is not an address of this machine`, action: null }
  }
  if (given.startsWith('127.')) {
    return { how: 'none', problem: `--docker-worker-address ${given} leads containers to themselves`, action: null }
  }
  const routed = local && !rootless && platform === 'linux' && gateway !== null && addresses.includes(gateway)
  const serving = routed ? 'direct' : local ? 'published' : 'none'
  return { how: 'given', listenOn: given, host: given, extraHosts: [], serving }
}

function throughVirtualMachine(name: string): ContainerWay {
  // Podman writes its name into the hosts file by itself, and so do engines with names of their own.
  const extraHosts = name === HOST_NAMES.docker ? [`${name}:host-gateway`] : []
  return { how: 'virtual_machine', listenOn: LOOPBACK, host: name, extraHosts, serving: 'published' }
}

/** True for an IPv4 address in digits. */
export function isAddress(text: string): boolean {
  const parts = text.split('.')
  return parts.length === 4 && parts.every(part => /^\d{1,3}$/.test(part) && Number(part) <= 255)
}

/**
 * True if an address lies in one of the networks, which have the form `172.18.0.0/16`.
 * @param address in the form of a socket; IPv4 within IPv6 is understood
 */
export function isWithin(address: string, networks: readonly string[]): boolean {
  if (networks.length === 0) return false
  const plain = address.replace(/^::ffff:/i, '')
  if (!isAddress(plain)) return false
  return networks.some(network => {
    const [base = '', length = '32'] = network.split('/')
    if (!isAddress(base) || !/^\d{1,2}$/.test(length)) return false
    const size = 2 ** (32 - Math.min(32, Number(length)))
    return Math.floor(addressNumber(plain) / size) === Math.floor(addressNumber(base) / size)
  })
}

function addressNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}
