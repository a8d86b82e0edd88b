/** The API of a cluster for one of several servers: only the active one changes anything in it. */
import type { Leader } from '../../ports/leader.ts'
import { type KubernetesApi, KubernetesError } from './api.ts'

/**
 * An API whose changes are confirmed one by one. A start has several, and pauses between them: a server that was
 * stopped in one of these must not go on with the start when another server has long given its worker up.
 */
export function fencedApi(api: KubernetesApi, leader: Pick<Leader, 'confirm'>): KubernetesApi {
  return {
    call: async call => {
      if (call.method !== 'GET' && !(await leader.confirm()))
        throw new KubernetesError('this server is not the active one for the moment', null)
      return api.call(call)
    },
    stream: call => api.stream(call),
  }
}
