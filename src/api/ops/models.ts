import type { Hono } from 'hono'
import type { Caller } from '../../core/accounts/permission.ts'
import type { CachedModel, ModelDownload } from '../../ports/model-cache.ts'
import type { ModelOperations } from '../../services/models/model-operations.ts'
import { type AuditParts, audited } from '../audited.ts'
import { jsonText, type SurfaceEnv } from '../surface.ts'

/** What the routes of models need. */
export interface ModelRouteParts extends AuditParts {
  readonly models: ModelOperations
  /** The caller of a request, with a right on management. */
  readonly caller: (request: Request, env: SurfaceEnv, right: 'read' | 'write') => Promise<Caller>
}

/** `/ops/models`: the models on the machine, for the operator. */
export function addModelRoutes(app: Hono<{ Bindings: SurfaceEnv }>, parts: ModelRouteParts): void {
  const { models, caller } = parts
  app.get('/ops/models', async ({ req, env }) => {
    const { owner } = await caller(req.raw, env, 'read')
    const { models: cached, downloads, usedBytes, limitBytes } = await models.content(owner)
    const shown = { models: cached.map(modelView), downloads: downloads.map(downloadView), usedBytes, limitBytes }
    return jsonText(JSON.stringify(shown))
  })
  app.post('/ops/models/:owner/:name', async ({ req, env }) => {
    const asking = await caller(req.raw, env, 'write')
    const revision = req.query('revision')
    const text = `${req.param('owner')}/${req.param('name')}${revision === undefined ? '' : `:${revision}`}`
    const pull = () => models.pull(asking.owner, text)
    const object = { kind: 'model', id: text }
    const asked = { surface: 'ops', operation: 'pullModel', caller: asking, env, object } as const
    // Commands ask again and again how far it is.
    const { snapshot, receivedBytes, totalBytes } = await (models.isPulled(text) ? pull() : audited(parts, asked, pull))
    return jsonText(
      JSON.stringify({ done: snapshot !== null, commit: snapshot?.commit ?? null, receivedBytes, totalBytes }),
    )
  })
  app.delete('/ops/models/:owner/:name', async ({ req, env }) => {
    const asking = await caller(req.raw, env, 'write')
    const name = `${req.param('owner')}/${req.param('name')}`
    const commit = req.query('commit') ?? null
    const object = { kind: 'model', id: name }
    const asked = { surface: 'ops', operation: 'removeModel', caller: asking, env, object, detail: { commit } } as const
    await audited(parts, asked, () => models.remove(asking.owner, name, commit))
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
