interface Operation {
  readonly summary?: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema?: unknown }[]
  readonly requestBody?: { content: Record<string, { schema: unknown }> }
  readonly responses: Record<string, { description: string; content?: Record<string, { schema: unknown }> }>
}

/** An OpenAPI document as a page, without scripts or external resources. */
export function docsPage(document: Record<string, unknown>): string {
  const paths = document.paths as Record<string, Record<string, Operation>>
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? 'Other'))]
  const sections = tags.map(tag => {
    const own = operations.filter(({ operation }) => (operation.tags?.[0] ?? 'Other') === tag)
    return `<h2 id="${slug(tag)}">${escaped(tag)}</h2>${own.map(({ path, method, operation }) => article(path, method, operation)).join('')}`
  })
  const schemas = Object.entries((document.components as { schemas?: Record<string, unknown> }).schemas ?? {})
  const shapes = schemas.map(
    ([name, schema]) =>
      `<details id="schema-${slug(name)}"><summary>${escaped(name)}</summary>${code(schema)}</details>`,
  )
  const links = tags.map(tag => `<a href="#${slug(tag)}">${escaped(tag)}</a>`).join(' ')
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Runyard REST API</title><style>${STYLE}</style></head><body><h1>Runyard REST API</h1>
<p>Every request carries <code>Authorization: Bearer &lt;API key&gt;</code>. Errors are problem documents. The machine-readable form of
this page is <a href="openapi.json">openapi.json</a>.</p><nav>${links} <a href="#schemas">Shapes</a></nav>
${sections.join('')}<h2 id="schemas">Shapes</h2>${shapes.join('')}</body></html>`
}

function article(path: string, method: string, operation: Operation): string {
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: place, required, schema }) =>
      `<tr><td><code>${escaped(name)}</code></td><td>${place}${required ? ', required' : ''}</td><td>${code(schema)}</td></tr>`,
  )
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema
  const answers = Object.entries(operation.responses).map(([status, { description, content }]) => {
    const schema = Object.values(content ?? {})[0]?.schema
    return `<tr><td>${status}</td><td>${escaped(description)}</td><td>${schema === undefined ? '' : code(schema)}</td></tr>`
  })
  return `<details><summary><b>${method}</b> <code>${escaped(path)}</code> ${escaped(operation.summary ?? '')}</summary>
${parameters.length > 0 ? `<table>${parameters.join('')}</table>` : ''}${body === undefined ? '' : `<p>Body</p>${code(body)}`}
<table>${answers.join('')}</table></details>`
}

/** Turns references into links to the schemas below. */
function code(schema: unknown): string {
  const text = escaped(JSON.stringify(schema, null, 2))
  const linked = text.replaceAll(
    /&quot;\$ref&quot;: &quot;#\/components\/schemas\/(\w+)&quot;/g,
    (_, name: string) => `<a href="#schema-${slug(name)}">${name}</a>`,
  )
  return `<pre>${linked}</pre>`
}

function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h2{margin-top:2rem}details{border:1px solid #d0d7de;border-radius:6px;padding:.4rem .8rem;margin:.4rem 0}summary{cursor:pointer}
pre{background:#f6f8fa;padding:.6rem;overflow:auto;font-size:.85rem;margin:.2rem 0}td{vertical-align:top;padding:.2rem .6rem .2rem 0}
nav a{margin-right:.8rem}@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}a{color:#6cb6ff}}`
