import { StaticPage } from '../static-page.ts'

/** Content Security Policy: the page may run its own scripts and connect to this server. */
const POLICY = [
  ...["default-src 'none'", "script-src 'unsafe-inline' blob:", 'worker-src blob:', "style-src 'unsafe-inline'"],
  ...["img-src 'self' data:", 'font-src data:', "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')

const QUERY = `# Put an API key into the headers below: {"Authorization": "Bearer rpa_..."}
{
  myself {
    endpoints {
      id
      name
      workersMin
      workersMax
    }
  }
}
`

/** True for a request of a browser that wants the page. */
export function wantsPage(request: Request, { pathname }: URL): boolean {
  return (
    request.method === 'GET' && pathname === '/graphql' && (request.headers.get('accept') ?? '').includes('text/html')
  )
}

/** GraphiQL as one page without external resources. It has no key: people enter theirs in its headers editor. */
export function graphiql(request: Request): Promise<Response> {
  return page.answer(request)
}

const page = new StaticPage(render, {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
})

/** Nine megabytes, so it is loaded only when the page is opened. */
async function render(): Promise<string> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql')
  return renderGraphiQL({
    title: 'Runyard GraphQL',
    defaultQuery: QUERY,
    headers: JSON.stringify({ Authorization: 'Bearer ' }, null, 2),
    defaultEditorToolsVisibility: 'headers',
    shouldPersistHeaders: false,
    credentials: 'omit',
  })
}
