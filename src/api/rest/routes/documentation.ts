import { z } from '@hono/zod-openapi'
import type { Addresses } from '../../addresses.ts'
import { docsPage } from '../docs-page.ts'
import { openApiDocument } from '../openapi.ts'
import { type Route, route } from '../route.ts'

/** The OpenAPI document of all other routes and the page that shows it; both are open to everybody. */
export function documentationRoutes(routes: readonly Route[], addresses: () => Addresses): Route[] {
  let made: { readonly url: string; readonly document: Record<string, unknown> } | null = null
  // Anybody may ask, and making it takes longer than most requests.
  const document = () => {
    const url = addresses().publicUrl
    if (made?.url !== url) made = { url, document: openApiDocument(routes, url) }
    return made.document
  }
  return [
    route(
      {
        ...{ method: 'get', path: '/v2/openapi.json', operationId: 'getOpenApi', tag: 'Documentation', level: 'open' },
        summary: 'The OpenAPI document of this API',
        success: { status: 200, schema: z.record(z.string(), z.unknown()) },
      },
      async () => document(),
    ),
    route(
      {
        ...{ method: 'get', path: '/v2/docs', operationId: 'getDocs', tag: 'Documentation', level: 'open' },
        summary: 'This API as a page for people',
        success: { status: 200, schema: z.string(), mediaType: 'text/html' },
      },
      async () =>
        new Response(docsPage(document()), {
          headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY },
        }),
    ),
  ]
}

/** The page needs its own style and nothing else. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'"
