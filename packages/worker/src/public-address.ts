import { lookup } from 'node:dns'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'

/** Ranges of IPv4 outside the internet, such as private networks and the metadata of clouds. */
const notPublic = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
]
/** The only public range of IPv6; parts of it stand for addresses of IPv4 or for examples. */
const publicV6 = ['2000::/3']
const notPublicV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const blockedV4 = blockList(notPublic, 'ipv4')
const allowedV6 = blockList(publicV6, 'ipv6')
const blockedV6 = blockList(notPublicV6, 'ipv6')

/** The error of an address that a worker must not call for a job. */
export class AddressError extends Error {
  override name = 'AddressError'
}

/** Throws an `AddressError` if the host of the address is an IP address that is not public. */
export function requirePublicHost({ hostname }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) requirePublic(host, host)
}

/** Resolves a name for a socket, and fails if any of its addresses is not public: the socket connects to these. */
export const publicLookup: LookupFunction = (hostname, options, done) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return done(error, [])
    try {
      for (const { address } of addresses) requirePublic(address, hostname)
    } catch (refused) {
      return done(refused as Error, [])
    }
    const [first] = addresses
    if (options.all) done(null, addresses)
    else done(null, first?.address ?? '', first?.family)
  })
}

/** True if the address is part of the internet. */
export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !blockedV4.check(address)
  return isIP(address) === 6 && allowedV6.check(address, 'ipv6') && !blockedV6.check(address, 'ipv6')
}

function requirePublic(address: string, host: string): void {
  if (!isPublic(address)) throw new AddressError(`${host} is at ${address}, which is not a public address`)
}

function blockList(ranges: string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network, bits] = range.split('/') as [string, string]
    list.addSubnet(network, Number(bits), family)
  }
  return list
}
