import { z } from '@hono/zod-openapi'
import type { Addresses } from '../../addresses.ts'
import { StaticPage } from '../../static-page.ts'
import { docsPage } from '../docs-page.ts'
import { openApiDocument } from '../openapi.ts'
import { type RestRoute, route } from '../route.ts'

/** The OpenAPI document of all other routes and the page that shows it; both are open to everybody. */
export function documentationRoutes(routes: readonly RestRoute[], addresses: () => Addresses): RestRoute[] {
  let document: Record<string, unknown> | null = null
  let made: ReturnType<typeof documentation> | null = null
  // Made once: the route needs no key, and making the document takes longer than most requests.
  const current = () => {
    const url = addresses().publicUrl
    document ??= openApiDocument(routes)
    if (made?.url !== url) made = documentation({ ...document, servers: [{ url }] }, url)
    return made
  }
  return [
    route(
      {
        method: 'get',
        path: '/v2/openapi.json',
        operationId: 'getOpenApi',
        tag: 'Documentation',
        level: 'open',
        summary: 'The OpenAPI document of this API',
        success: { status: 200, schema: z.record(z.string(), z.unknown()) },
      },
      ({ request }) => current().document.answer(request),
    ),
    route(
      {
        method: 'get',
        path: '/v2/docs',
        operationId: 'getDocs',
        tag: 'Documentation',
        level: 'open',
        summary: 'This API as a page for people',
        success: { status: 200, schema: z.string(), mediaType: 'text/html' },
      },
      ({ request }) => current().page.answer(request),
    ),
  ]
}

function documentation(document: Record<string, unknown>, url: string) {
  const html = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY }
  return {
    url,
    document: new StaticPage(() => JSON.stringify(document), { 'content-type': 'application/json' }),
    page: new StaticPage(() => docsPage(document), html),
  }
}

/** Content Security Policy: allows only the page's own style. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'"
