import { lookup } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import { gatherSlices, SLICE_CHARACTERS } from '../../core/json/text-slices.ts'
import type { Outbound, OutboundRequest, OutboundResult } from '../../ports/outbound.ts'
import { type AddressRules, addressProblem, isPublic, type OutboundAddress } from './addresses.ts'

/** Limit of bytes of a response body that are read and dropped before the connection is cut. */
const MAX_BODY_BYTES = 64 * 1024

/** Options of outbound calls. */
export interface OutboundOptions {
  /** True to refuse private addresses, too. */
  readonly publicOnly: boolean
  /** Addresses of the interfaces of this machine; by default those of the system. */
  readonly interfaces?: () => readonly string[]
  /** Finds the addresses of a name; by default the system's resolver. */
  readonly resolve?: (name: string) => Promise<readonly OutboundAddress[]>
}

/** Calls over HTTP and HTTPS. A name is resolved once and the connection goes to the address that was checked. */
export function createOutbound({ publicOnly, interfaces, resolve = resolveName }: OutboundOptions): Outbound {
  return {
    async post(request) {
      try {
        const url = new URL(request.url)
        const rules = {
          publicOnly: publicOnly || request.publicOnly === true,
          notThisMachine: request.notThisMachine === true,
          ...(interfaces && { interfaces }),
        }
        const allowed = await race(allowedAddresses(url, rules, resolve), request.signal)
        if (typeof allowed === 'string') return { problem: allowed }
        request.onTarget?.(allowed.every(({ address }) => isPublic(address)))
        return await send(url, request, allowed)
      } catch (thrown) {
        return { problem: errorPhrase(thrown) }
      }
    },
  }
}

/** The addresses of a URL that may be called, or the reason why none may. */
async function allowedAddresses(
  url: URL,
  rules: AddressRules,
  resolve: (name: string) => Promise<readonly OutboundAddress[]>,
): Promise<readonly OutboundAddress[] | string> {
  const name = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const family = isIP(name)
  const addresses = family === 0 ? await resolve(name) : [{ address: name, family }]
  const allowed = addresses.filter(({ address }) => addressProblem(address, rules) === null)
  const [first] = addresses
  if (allowed.length > 0) return allowed
  if (first === undefined) return `${name} has no address`
  const of = family === 0 ? `the address ${first.address} of ${name}` : `the address ${name}`
  return `${of} ${addressProblem(first.address, rules)}`
}

function send(url: URL, request: OutboundRequest, allowed: readonly OutboundAddress[]): Promise<OutboundResult> {
  const { promise, resolve } = Promise.withResolvers<OutboundResult>()
  const open = url.protocol === 'https:' ? requestHttps : requestHttp
  const call = open(url, {
    method: 'POST',
    headers: { ...request.headers, 'content-length': Buffer.byteLength(request.body) },
    // A connection of its own: a kept one could have an address that was checked for another name.
    agent: false,
    signal: request.signal,
    lookup: (_name, options, callback) => {
      const first = allowed[0]!
      if (options.all === true) callback(null, [...allowed])
      else callback(null, first.address, first.family)
    },
  })
  call.on('error', error => resolve({ problem: errorPhrase(error) }))
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
    // The status counts, even if the body fails.
    answer.on('end', end).on('error', end).on('close', end)
  })
  const { body } = request
  if (body.length <= SLICE_CHARACTERS) call.end(body)
  else Readable.from(gatherSlices([body])).pipe(call)
  return promise
}

/** The addresses of a name, as the system finds them. */
export async function resolveName(name: string): Promise<readonly OutboundAddress[]> {
  return lookup(name, { all: true })
}

/** Waits no longer than the signal allows; a query of the resolver cannot be canceled. */
function race<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error('given up'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}

/** An attempt at several addresses fails with an error that has no message of its own. */
function errorPhrase(thrown: unknown): string {
  if (thrown instanceof AggregateError) return thrown.errors.map(errorPhrase).join(', ')
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.message === '' ? ((thrown as NodeJS.ErrnoException).code ?? thrown.name) : thrown.message
}
