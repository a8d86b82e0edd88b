/** Endpoints and templates that use a secret, a credential or a volume, kept current. */
import { useAll } from './all.ts'
import type { Endpoint } from './api-types.d.ts'
import type { Resource } from './resource.ts'
import { mayManage } from './session.ts'
import { changeTopic } from './topics.ts'
import { findUsers, type Used, type User } from './users.ts'

/** All endpoints of the account, if the key may see them. */
export function useEndpoints(): Resource<readonly Endpoint[]> {
  return useAll('GET /v2/serverless', 'endpoints', event => event.type.startsWith('endpoint.'))
}

/** Users of a thing, endpoints first; null until they were read. */
export function useUsers(used: Used): Resource<readonly User[]> {
  const endpoints = useEndpoints()
  const templates = useAll('GET /v2/templates', 'templates', changeTopic(/template/i))
  const hasTasks = 'volume' in used && mayManage('read')
  const tasks = useAll('GET /v2/pods', 'pods', event => event.type.startsWith('endpoint.'), hasTasks)
  const pods = hasTasks ? tasks.data : []
  return {
    data: endpoints.data && templates.data && pods && findUsers(used, endpoints.data, templates.data, pods),
    error: endpoints.error ?? templates.error ?? tasks.error,
    reload: () => {
      endpoints.reload()
      templates.reload()
      tasks.reload()
    },
  }
}
