import type { SurfaceEnv } from '../api/surface.ts'
import type { App } from '../app.ts'

/** A start has more urgent things to do at first. */
const DELAY_MS = 2_000
const PATHS = ['/v2/openapi.json', '/v2/docs', '/graphql']
const ENV: SurfaceEnv = { delivery: { onSettled() {} }, requestId: 'document' }

/** Makes the public documents before the first request for them: each holds the event loop for about 0.1 s, once. */
export function prepareDocuments(app: App): void {
  setTimeout(() => void prepare(app), DELAY_MS).unref()
}

async function prepare(app: App): Promise<void> {
  const surface = app.fetch()
  for (const path of PATHS) {
    const answer = await surface(new Request(`http://localhost${path}`, { headers: { accept: 'text/html' } }), ENV)
    await answer.body?.cancel()
  }
}
