import { lookup } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { Readable } from 'node:stream'
import { SLICE_CHARACTERS, slicesOf } from '../../core/json/text-slices.ts'
import type { Outbound, OutboundRequest, OutboundResult } from '../../ports/outbound.ts'

/** Limit of bytes of a response body that are read and dropped before the connection is cut. */
const MAX_BODY_BYTES = 64 * 1024

/** Never called: link-local addresses, and those where clouds answer machines. The last rows are the same inside IPv6. */
const FORBIDDEN = listOf([
  ...['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...['fe80::/10', 'fd00:ec2::254/128', 'fd00:42::42/128', 'fd20:ce::254/128'],
  ...['64:ff9b::a9fe:0/112', '64:ff9b::6464:64c8/128', '64:ff9b::a83f:8110/128', '64:ff9b::c000:c0/128'],
  ...['2002:a9fe::/32', '2002:6464:64c8::/48', '2002:a83f:8110::/48', '2002:c000:c0::/48'],
  ...['::a9fe:0/112', '::6464:64c8/128', '::a83f:8110/128', '::c000:c0/128'],
])

/** Not on the Internet: this machine, private networks, several receivers at once, and IPv4 inside IPv6. */
const NOT_PUBLIC = listOf([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/96', 'fc00::/7', 'fec0::/10', 'ff00::/8', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16'],
])

/** An address as the resolver gives it. */
export interface OutboundAddress {
  readonly address: string
  readonly family: number
}

/** What the outbound calls depend on. */
export interface OutboundOptions {
  /** Whether private addresses are refused too. */
  readonly publicOnly: boolean
  /** Finds the addresses of a name; the system's resolver unless a test says otherwise. */
  readonly resolve?: (name: string) => Promise<readonly OutboundAddress[]>
}

/** Why this address is never called, as a phrase; null when it may be. */
export function refusalOf(address: string, publicOnly: boolean): string | null {
  const [bare = ''] = address.split('%')
  const family = isIP(bare) === 6 ? 'ipv6' : 'ipv4'
  if (isIP(bare) === 0) return 'is no address'
  if (FORBIDDEN.check(bare, family)) return 'is link-local or serves metadata, and such addresses are never called'
  if (publicOnly && NOT_PUBLIC.check(bare, family)) return 'is not public, and this server calls public ones only'
  return null
}

/** Calls over HTTP and HTTPS. A name is resolved once and the connection goes to the address that was checked. */
export function createOutbound({ publicOnly, resolve = resolveName }: OutboundOptions): Outbound {
  return {
    async post(request) {
      try {
        const url = new URL(request.url)
        const only = publicOnly || request.publicOnly === true
        const allowed = await race(allowedAddresses(url, only, resolve), request.signal)
        if (typeof allowed === 'string') return { problem: allowed }
        request.onTarget?.(allowed.every(({ address }) => refusalOf(address, true) === null))
        return await send(url, request, allowed)
      } catch (thrown) {
        return { problem: phraseOf(thrown) }
      }
    },
  }
}

/** The addresses of a URL that may be called, or why none may. */
async function allowedAddresses(
  url: URL,
  publicOnly: boolean,
  resolve: (name: string) => Promise<readonly OutboundAddress[]>,
): Promise<readonly OutboundAddress[] | string> {
  const name = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const family = isIP(name)
  const found = family === 0 ? await resolve(name) : [{ address: name, family }]
  const allowed = found.filter(({ address }) => refusalOf(address, publicOnly) === null)
  const [first] = found
  if (allowed.length > 0) return allowed
  if (first === undefined) return `${name} has no address`
  const of = family === 0 ? `the address ${first.address} of ${name}` : `the address ${name}`
  return `${of} ${refusalOf(first.address, publicOnly)}`
}

function send(url: URL, request: OutboundRequest, allowed: readonly OutboundAddress[]): Promise<OutboundResult> {
  const { promise, resolve } = Promise.withResolvers<OutboundResult>()
  const open = url.protocol === 'https:' ? requestHttps : requestHttp
  const call = open(url, {
    method: 'POST',
    headers: { ...request.headers, 'content-length': Buffer.byteLength(request.body) },
    // A connection of its own: a kept one could be to an address that was checked for another name.
    agent: false,
    signal: request.signal,
    lookup: (_name, options, callback) => {
      const first = allowed[0]!
      if (options.all === true) callback(null, [...allowed])
      else callback(null, first.address, first.family)
    },
  })
  call.on('error', error => resolve({ problem: phraseOf(error) }))
  call.on('response', answer => {
    const status = answer.statusCode ?? 0
    let bytes = 0
    const end = () => {
      resolve({ status })
      call.destroy()
    }
    answer.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes > MAX_BODY_BYTES) end()
    })
    // Whatever happens to the body, the status is there.
    answer.on('end', end).on('error', end).on('close', end)
  })
  const { body } = request
  if (body.length <= SLICE_CHARACTERS) call.end(body)
  else Readable.from(slicesOf([body])).pipe(call)
  return promise
}

async function resolveName(name: string): Promise<readonly OutboundAddress[]> {
  return lookup(name, { all: true })
}

/** Waits no longer than the signal allows; a question to the resolver cannot be taken back. */
function race<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error('given up'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}

/** An attempt at several addresses fails with an error that has no message of its own. */
function phraseOf(thrown: unknown): string {
  if (thrown instanceof AggregateError) return thrown.errors.map(phraseOf).join(', ')
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.message === '' ? ((thrown as NodeJS.ErrnoException).code ?? thrown.name) : thrown.message
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
