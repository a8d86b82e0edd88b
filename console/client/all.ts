/** Lists that are read to their end and kept current. */
import { type Answer, api, type Parameters } from './api.ts'
import type { Pagination } from './api-types.d.ts'
import type { LiveEvent } from './live.ts'
import { type Resource, useResource } from './resource.ts'
import { mayManage } from './session.ts'

/** Limit of pages, of 1,000 rows each, that are read of one list. */
const MAX_PAGES = 10

/** Operations that list something of an account, each with the member of its answer that has the rows. */
interface Lists {
  readonly 'GET /v2/serverless': 'endpoints'
  readonly 'GET /v2/templates': 'templates'
  readonly 'GET /v2/account/secrets': 'secrets'
  readonly 'GET /v2/registries': 'registries'
  readonly 'GET /v2/account/alert-receivers': 'alertReceivers'
  readonly 'GET /v2/network-volumes': 'networkVolumes'
  readonly 'GET /v2/global-volumes': 'globalVolumes'
  readonly 'GET /v2/account/apps': 'apps'
  readonly 'GET /v2/pods': 'pods'
  readonly 'GET /v2/account/keys': 'keys'
  readonly 'GET /v2/account/endpoint-keys': 'keys'
  readonly 'GET /v2/account/accounts': 'accounts'
}

type Rows<Of extends keyof Lists> = Answer<Of>[Lists[Of] & keyof Answer<Of>]

/** Reads a list to its end, at most 10,000 rows of it. @param isWanted false reads nothing */
export function useAll<Of extends keyof Lists>(
  operation: Of,
  member: Lists[Of],
  on: (event: LiveEvent) => boolean,
  isWanted = mayManage('read'),
): Resource<Rows<Of>> {
  return useResource(
    isWanted ? operation : null,
    async signal => {
      const all: unknown[] = []
      let cursor: string | null | undefined
      for (let page = 0; page < MAX_PAGES && cursor !== null; page += 1) {
        const answer = (await api(operation, { query: { cursor }, signal } as unknown as Parameters<Of>)) as Page
        all.push(...(answer[member] as readonly unknown[]))
        cursor = (answer.pagination as Pagination | undefined)?.nextCursor ?? null
      }
      return all as Rows<Of>
    },
    { on },
  )
}

type Page = Readonly<Record<string, unknown>>
