/** Events that may change a value, for each kind of value. */
import type { LiveEvent } from './live.ts'

type Topic = (event: LiveEvent) => boolean

/** Anything of an endpoint. */
export function endpointTopic(endpointId: string): Topic {
  return event => event.endpointId === endpointId
}

/** The jobs of an endpoint. */
export function jobTopic(endpointId: string): Topic {
  return event => event.endpointId === endpointId && /^(?:job|webhook)\./.test(event.type)
}

/** The jobs of any endpoint. */
export const anyJobTopic: Topic = event => event.type.startsWith('job.')

/** The jobs of any endpoint that end, and their webhooks. */
export const webhookTopic: Topic = event => /^(?:job|webhook)\./.test(event.type)

/** The workers of an endpoint, and the jobs that they hold. */
export function workerTopic(endpointId: string): Topic {
  return event => event.endpointId === endpointId && !event.type.startsWith('webhook.')
}

/** The configuration of an endpoint and its releases. */
export function releaseTopic(endpointId: string): Topic {
  return event => event.endpointId === endpointId && /^(?:endpoint|rollout|worker)\./.test(event.type)
}

/** Anything of any endpoint. */
export const anyEndpointTopic: Topic = event => event.endpointId !== null

/** Changes of apps, their environments and their endpoints. */
export const appTopic: Topic = event =>
  event.type.startsWith('endpoint.') || changeTopic(/app|flash|environment|artifact/i)(event)

/** Changes by operations whose names match, such as `/Template$/`. */
export function changeTopic(operation: RegExp): Topic {
  return event => event.type === 'change.made' && operation.test(String(event.operation))
}
