/** Addresses that many people share, so that the bound of one address does not hold. */
import { BlockList, isIPv6 } from 'node:net'

/**
 * Returns a test that is true for addresses of this machine, which a proxy may use for any client, and for
 * addresses of trusted proxies.
 * @param proxies addresses, and networks such as 10.0.0.0/8
 */
export function sharedAddresses(proxies: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const network of ['127.0.0.0/8', '::1', ...proxies]) {
    const [address = '', bits] = network.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return address => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
