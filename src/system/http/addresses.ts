/** Addresses that the server may call on behalf of a user. */
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/** Never called: link-local addresses, and the metadata services of clouds. The last rows are the same inside IPv6. */
const FORBIDDEN = blockList([
  ...['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...['fe80::/10', 'fd00:ec2::254/128', 'fd00:42::42/128', 'fd20:ce::254/128'],
  ...['64:ff9b::a9fe:0/112', '64:ff9b::6464:64c8/128', '64:ff9b::a83f:8110/128', '64:ff9b::c000:c0/128'],
  ...['2002:a9fe::/32', '2002:6464:64c8::/48', '2002:a83f:8110::/48', '2002:c000:c0::/48'],
  ...['::a9fe:0/112', '::6464:64c8/128', '::a83f:8110/128', '::c000:c0/128'],
])

/** Not on the Internet: this machine, private networks, multicast, and IPv4 inside IPv6. */
const NOT_PUBLIC = blockList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/96', 'fc00::/7', 'fec0::/10', 'ff00::/8', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16'],
])

/** Always this machine, whatever its interfaces are. The last rows are the same inside IPv6. */
const LOOPBACK = ['127.0.0.0/8', '0.0.0.0/8', '::/128', '::1/128'].concat(
  ...['127.0.0.0/8', '0.0.0.0/8'].map(network => insideIpv6(network)),
)

/** An address as returned by the resolver. */
export interface OutboundAddress {
  readonly address: string
  readonly family: number
}

/** Addresses that are refused in addition to those that are always refused. */
export interface AddressRules {
  /** Private networks and this machine. */
  readonly publicOnly: boolean
  /** This machine, at any of its addresses. */
  readonly notThisMachine: boolean
  /** Addresses of the interfaces of this machine; by default those of the system. */
  readonly interfaces?: () => readonly string[]
}

/** Reason why this address is not called, as a phrase; null when it may be. */
export function addressProblem(address: string, rules: AddressRules): string | null {
  const [bare = ''] = address.split('%')
  const family = isIP(bare) === 6 ? 'ipv6' : 'ipv4'
  if (isIP(bare) === 0) return 'is not an address'
  if (FORBIDDEN.check(bare, family)) return 'is link-local or serves metadata, and such addresses are never called'
  if (rules.publicOnly && NOT_PUBLIC.check(bare, family)) {
    return 'is not public, and this server calls public ones only'
  }
  if (rules.notThisMachine && thisMachine(rules.interfaces ?? interfaceAddresses).check(bare, family)) {
    return 'is one of this machine, which is called for its operator only'
  }
  return null
}

/** True when everybody on the Internet can reach this address. */
export function isPublic(address: string): boolean {
  return addressProblem(address, { publicOnly: true, notThisMachine: false }) === null
}

function thisMachine(interfaces: () => readonly string[]): BlockList {
  const networks = interfaces().flatMap(address => {
    const network = `${address}/${isIP(address) === 6 ? 128 : 32}`
    return isIP(address) === 4 ? [network, ...insideIpv6(network)] : [network]
  })
  return blockList([...LOOPBACK, ...networks])
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(list => (list ?? []).map(({ address }) => withoutZone(address)))
}

function withoutZone(address: string): string {
  return address.split('%')[0] ?? ''
}

/** The IPv6 networks in which translators put an IPv4 network: NAT64, 6to4 and addresses that end with one. */
function insideIpv6(network: string): string[] {
  const [address = '', prefix = '32'] = network.split('/')
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const [high, low] = [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)]
  const bits = Number(prefix)
  return [`64:ff9b::${high}:${low}/${96 + bits}`, `::${high}:${low}/${96 + bits}`, `2002:${high}:${low}::/${16 + bits}`]
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
