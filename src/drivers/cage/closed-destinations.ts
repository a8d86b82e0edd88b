/** Destinations that a worker with a network of its own does not reach, although it reaches the outside. */

/** Addresses of cloud metadata, which have credentials, and addresses that belong to no other machine. */
const NEVER: readonly string[] = [
  // Link-local, with 169.254.169.254 of most clouds and 169.254.170.2 of Amazon's containers.
  '169.254.0.0/16',
  // Alibaba, Azure, Oracle.
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  '0.0.0.0/8',
  '224.0.0.0/4',
  '240.0.0.0/4',
]

/**
 * The networks that a worker does not reach: metadata, all addresses of this machine, and networks of containers on
 * it.
 * @param local `ip -4 route show table local`, the addresses of this machine
 * @param main `ip -4 route show table main`
 * @param isBridge returns true if a device is a bridge without a port to the outside
 */
export function closedDestinations(local: string, main: string, isBridge: (device: string) => boolean): string[] {
  const ownAddresses = local.split('\n').flatMap(line => {
    const address = /^local (\S+) /.exec(line)?.[1]
    return address === undefined || address.startsWith('127.')
      ? []
      : [address.includes('/') ? address : `${address}/32`]
  })
  const bridgedNetworks = main.split('\n').flatMap(line => {
    const [, network, device] = /^(\d+\.\d+\.\d+\.\d+\/\d+) (?:.* )?dev (\S+)/.exec(line) ?? []
    return network !== undefined && device !== undefined && isBridge(device) ? [network] : []
  })
  return [...new Set([...NEVER, ...ownAddresses, ...bridgedNetworks])]
}

/** The commands for `ip -batch` that close them. */
export function closingCommands(networks: readonly string[]): string {
  return networks.map(network => `route replace unreachable ${network}\n`).join('')
}
