/** Deletion of an app: its endpoints first, then its environments, as the server wants it. */
import { ApiError, api } from '../../client/api.ts'
import type { AppDetail } from '../../client/api-types.d.ts'

/** Limit of the times that endpoints are read and deleted: as many as the server shows, each time. */
const ROUNDS = 20

/** Deletes an app with everything in it. @param environmentId only this environment; null for the whole app */
export async function removeApp({ id, environments }: AppDetail, environmentId: string | null): Promise<void> {
  const path = { id }
  const chosen = environments.filter(one => environmentId === null || one.id === environmentId)
  for (let round = 0; round < ROUNDS; round++) {
    const now = await api('GET /v2/account/apps/{id}', { path })
    const endpoints = now.environments.flatMap(one => (chosen.some(other => other.id === one.id) ? one.endpoints : []))
    if (endpoints.length === 0) break
    for (const endpoint of endpoints) await removed(api('DELETE /v2/serverless/{id}', { path: { id: endpoint.id } }))
  }
  for (const one of chosen) await removed(api('DELETE /v2/account/app-environments/{id}', { path: { id: one.id } }))
  if (environmentId === null) await removed(api('DELETE /v2/account/apps/{id}', { path }))
}

/** A thing that somebody else deleted meanwhile is deleted. */
async function removed(deletion: Promise<unknown>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
  })
}
