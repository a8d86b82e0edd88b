import type { CachedModel, ModelDownload } from '../../ports/model-cache.ts'
import { audited } from '../audited.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText } from '../surface.ts'
import { addRoute, type OpsApp } from './route-access.ts'

/** `/ops/models`: the models on the machine, for the operator. */
export function addModelRoutes(app: OpsApp, parts: ApiParts): void {
  const { access, modelOperations: models } = parts
  addRoute(app, access, 'GET /ops/models', async (_, caller) => {
    const { models: cached, downloads, usedBytes, limitBytes } = await models.content(caller)
    const shown = { models: cached.map(modelView), downloads: downloads.map(downloadView), usedBytes, limitBytes }
    return jsonText(JSON.stringify(shown))
  })
  addRoute(app, access, 'POST /ops/models/:owner/:name', async ({ req, env }, caller) => {
    const revision = req.query('revision')
    const text = `${req.param('owner')}/${req.param('name')}${revision === undefined ? '' : `:${revision}`}`
    const pull = () => models.pull(caller, text)
    const object = { kind: 'model', id: text }
    const asked = { surface: 'ops', operation: 'pullModel', caller, env, object } as const
    // Commands poll the progress.
    const { snapshot, receivedBytes, totalBytes } = await (models.isPulled(text) ? pull() : audited(parts, asked, pull))
    return jsonText(
      JSON.stringify({ done: snapshot !== null, commit: snapshot?.commit ?? null, receivedBytes, totalBytes }),
    )
  })
  addRoute(app, access, 'DELETE /ops/models/:owner/:name', async ({ req, env }, caller) => {
    const name = `${req.param('owner')}/${req.param('name')}`
    const commit = req.query('commit') ?? null
    const object = { kind: 'model', id: name }
    const asked = { surface: 'ops', operation: 'removeModel', caller, env, object, detail: { commit } } as const
    await audited(parts, asked, () => models.remove(caller, name, commit))
    return jsonText(JSON.stringify({ name }))
  })
}

function modelView({ name, commit, refs, bytes, usedAtMs, workers, isRestricted }: CachedModel) {
  const usedAt = usedAtMs === 0 ? null : new Date(usedAtMs).toISOString()
  return { name, commit, refs, bytes, usedAt, workers, restricted: isRestricted }
}

function downloadView({ name, revision, receivedBytes, totalBytes }: ModelDownload) {
  return { name, revision, receivedBytes, totalBytes }
}
