/** What of an account uses a secret, a credential or a volume, as it is now. */
import { useAll } from './all.ts'
import type { Endpoint } from './api-types.d.ts'
import type { Resource } from './resource.ts'
import { ofChange } from './topics.ts'
import { type Used, type User, usersOf } from './users.ts'

/** All endpoints of the account, where the key may see them. */
export function useEndpoints(): Resource<readonly Endpoint[]> {
  return useAll('GET /v2/serverless', 'endpoints', event => event.type.startsWith('endpoint.'))
}

/** What uses it, endpoints first; null before it is known. */
export function useUsers(used: Used): Resource<readonly User[]> {
  const endpoints = useEndpoints()
  const templates = useAll('GET /v2/templates', 'templates', ofChange(/template/i))
  return {
    data: endpoints.data && templates.data && usersOf(used, endpoints.data, templates.data),
    error: endpoints.error ?? templates.error,
    reload: () => {
      endpoints.reload()
      templates.reload()
    },
  }
}
