/** The calls of functions of apps, from networks in which nothing else of this machine exists. */
import type { IncomingMessage } from 'node:http'
import { WORKER_TOKEN } from '../core/workers/worker.ts'
import { presentedKeys } from '../gateway/entrance/credentials.ts'
import type { GatewayRoute } from '../gateway/entrance/route.ts'
import type { HostRefusal } from './hosts.ts'
import type { AddressedRequest } from './mount.ts'

const REFUSAL: HostRefusal = {
  status: 403,
  error: 'functions of an app call this server from here with the token of their worker alone',
}

/**
 * The reason to refuse a call that has another key than the token of a worker, or none; null for the others. So a
 * worker with the key of a person reaches no more than its app. The program of a task asks for its own token.
 * @param routeOf the endpoint or task that a request names by its host or its path, as the listener finds it
 */
export function functionCalls(
  routeOf: (asked: AddressedRequest) => GatewayRoute | null,
): (incoming: Pick<IncomingMessage, 'url' | 'headers' | 'rawHeaders'>) => HostRefusal | null {
  return incoming => {
    const { url = '', rawHeaders } = incoming
    const keys = presentedKeys({ path: url, rawHeaders })
    const isOfWorker = keys.length > 0 && keys.every(key => key.startsWith(WORKER_TOKEN))
    return isOfWorker || routeOf(incoming)?.isTask === true ? null : REFUSAL
  }
}
