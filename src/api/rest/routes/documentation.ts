import { z } from '@hono/zod-openapi'
import type { Addresses } from '../../addresses.ts'
import type { DocumentedOperation } from '../../operation.ts'
import { StaticPage } from '../../static-page.ts'
import { docsPage } from '../docs-page.ts'
import { type DocumentParts, type OpenApiDocument, openApiDocument } from '../openapi.ts'
import { type RestRoute, route } from '../route.ts'

/** The OpenAPI document of all other operations and the page that shows it; both are open to everybody. */
export function documentationRoutes(parts: DocumentParts, addresses: Addresses): RestRoute[] {
  let document: OpenApiDocument | null = null
  let made: ReturnType<typeof documentation> | null = null
  // Made once: the route needs no key, and making the document takes longer than most requests.
  const current = () => {
    const { publicUrl, queueUrl } = addresses
    document ??= openApiDocument(parts)
    if (made?.publicUrl !== publicUrl || made.queueUrl !== queueUrl) {
      made = documentation(withServers(document, parts.operations ?? [], { publicUrl, queueUrl }), {
        publicUrl,
        queueUrl,
      })
    }
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

type ServerUrls = Pick<Addresses, 'publicUrl' | 'queueUrl'>

function documentation(document: Record<string, unknown>, urls: ServerUrls) {
  const html = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY }
  return {
    ...urls,
    document: new StaticPage(() => JSON.stringify(document), { 'content-type': 'application/json' }),
    page: new StaticPage(() => docsPage(document), html),
  }
}

/** Names the server of the document, and for job operations another one if they have an address of their own. */
function withServers(
  document: OpenApiDocument,
  operations: readonly DocumentedOperation[],
  { publicUrl, queueUrl }: ServerUrls,
): Record<string, unknown> {
  const servers = [{ url: publicUrl }]
  if (queueUrl === publicUrl) return { ...document, servers }
  const ofJobs = new Set(operations.map(({ operationId }) => operationId))
  const paths = Object.entries(document.paths).map(([path, methods]) => {
    const located = Object.entries(methods).map(([method, operation]) => [
      method,
      ofJobs.has(operation.operationId) ? { ...operation, servers: [{ url: queueUrl }] } : operation,
    ])
    return [path, Object.fromEntries(located)]
  })
  return { ...document, servers, paths: Object.fromEntries(paths) }
}

/** Content Security Policy: allows only the page's own style. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'"
