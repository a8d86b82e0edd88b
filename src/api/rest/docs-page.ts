import { BY_POST } from './openapi.ts'

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly tags?: readonly string[]
  readonly servers?: readonly { readonly url: string }[]
  readonly security?: readonly unknown[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Record<string, Content> }
  readonly responses: Record<string, { readonly description: string; readonly content?: Record<string, Content> }>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: Schema
  readonly example?: unknown
}

interface Content {
  readonly schema?: Schema
  readonly example?: unknown
}

type Schema = Readonly<Record<string, unknown>>

interface Entry {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}

/**
 * An OpenAPI document as a page, without scripts or external resources: each operation with a request as a curl
 * command, and its response.
 */
export function docsPage(document: Record<string, unknown>): string {
  const paths = document.paths as Record<string, Record<string, Operation>>
  const [{ url: server = '' } = {}] = document.servers as { url: string }[]
  const entries = Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    )
    .filter(({ operation }) => !operation.operationId.endsWith(BY_POST))
  const tags = [...new Set(entries.map(firstTag))]
  const sections = tags.map(tag => {
    const own = entries.filter(entry => firstTag(entry) === tag)
    return `<h2 id="${slug(tag)}">${escaped(tag)}</h2>${own.map(entry => article(entry, server)).join('')}`
  })
  const schemas = Object.entries((document.components as { schemas?: Record<string, unknown> }).schemas ?? {})
  const shapes = schemas.map(
    ([name, schema]) =>
      `<details id="schema-${slug(name)}"><summary>${escaped(name)}</summary>${shape(schema)}</details>`,
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Runyard API</title><style>${STYLE}</style></head><body><nav aria-label="Operations"><a class="home" href="#top">Runyard API</a>
${tags.map(tag => navigation(tag, entries)).join('')}<a href="#schemas">Shapes</a></nav><main id="top"><h1>Runyard API</h1>
<p>Each request carries <code>Authorization: Bearer &lt;API key&gt;</code>. The commands below read the key from <code>$KEY</code>:</p>
<pre>KEY=$(cat .runyard/api-key)</pre><p>Errors of management are problem documents, those of jobs <code>{"error": "..."}</code>. Requests and responses here are real ones:
a test sends them. The machine-readable form of this page is <a href="openapi.json">openapi.json</a>.</p>
${sections.join('')}<h2 id="schemas">Shapes</h2>${shapes.join('')}</main></body></html>`
}

function firstTag({ operation }: Entry): string {
  return operation.tags?.[0] ?? 'Other'
}

function navigation(tag: string, entries: readonly Entry[]): string {
  const own = entries.filter(entry => firstTag(entry) === tag)
  const links = own.map(
    ({ method, path, operation }) =>
      `<li><a href="#${operation.operationId}" title="${escaped(operation.summary ?? '')}"><b class="${method}">${method}</b> ${escaped(shortPath(path))}</a></li>`,
  )
  return `<details open><summary>${escaped(tag)}</summary><ul>${links.join('')}</ul></details>`
}

function shortPath(path: string): string {
  return path.replace(/^\/v2/, '')
}

function article(entry: Entry, server: string): string {
  const { path, method, operation } = entry
  const { operationId, summary = '', parameters = [], requestBody, responses } = operation
  const rows = parameters.map(
    ({ name, in: place, required, schema }) =>
      `<tr><td><code>${escaped(name)}</code></td><td>${place}${required === true ? ', required' : ''}</td><td>${escaped(describeSchema(schema))}</td></tr>`,
  )
  const body = Object.values(requestBody?.content ?? {})[0]?.schema
  const [status = '', done] = Object.entries(responses)[0] ?? []
  const [content] = Object.values(done?.content ?? {})
  const errors = Object.entries(responses).filter(([other]) => other !== status)
  return `<article id="${operationId}"><h3><b class="${method}">${method}</b> <code>${escaped(path)}</code></h3><p>${escaped(sentence(summary))}</p>
<pre>${escaped(curl(entry, server))}</pre>${responseExample(status, content)}
<details><summary>Parameters, body and errors</summary>${rows.length > 0 ? `<table>${rows.join('')}</table>` : ''}${
    body === undefined ? '' : `<p>Body</p>${shape(body)}`
  }${content?.schema === undefined ? '' : `<p>Response</p>${shape(content.schema)}`}<table>${errors
    .map(([error, { description }]) => `<tr><td>${error}</td><td>${escaped(description)}</td></tr>`)
    .join('')}</table></details></article>`
}

function sentence(summary: string): string {
  return /[.!?]$/.test(summary) ? summary : `${summary}.`
}

/** The example of an operation as a command. */
function curl({ path, method, operation }: Entry, server: string): string {
  const { parameters = [], requestBody, security = [], servers = [] } = operation
  const example = (place: string) =>
    parameters.filter(({ in: at, example: value }) => at === place && value !== undefined)
  const filled = example('path').reduce(
    (text, { name, example: value }) => text.replace(`{${name}}`, encodeURIComponent(String(value))),
    path,
  )
  const query = example('query').map(({ name, example: value }) => `${name}=${encodeURIComponent(String(value))}`)
  const url = `${servers[0]?.url ?? server}${filled}${query.length === 0 ? '' : `?${query.join('&')}`}`
  const body = Object.values(requestBody?.content ?? {})[0]?.example
  const parts = [
    `curl -sS ${method === 'GET' || (method === 'POST' && body !== undefined) ? '' : `-X ${method} `}'${url}'`,
    ...(security.length === 0 ? [] : ['  -H "Authorization: Bearer $KEY"']),
    ...(body === undefined
      ? []
      : ["  -H 'Content-Type: application/json'", `  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]),
  ]
  return parts.join(' \\\n')
}

function responseExample(status: string, content: Content | undefined): string {
  if (content?.example === undefined) return `<p class="status">${status}</p>`
  const text = typeof content.example === 'string' ? content.example : JSON.stringify(content.example, null, 2)
  return `<p class="status">${status}</p><pre>${escaped(text)}</pre>`
}

/** A schema of a parameter in a few words. */
function describeSchema(schema: Schema = {}): string {
  const { type, format, minimum, maximum, minLength, maxLength, pattern, default: given } = schema
  const choices = (schema.enum as unknown[] | undefined)?.join(', ')
  return [
    ...(choices === undefined ? [Array.isArray(type) ? type.join(' or ') : type] : [choices]),
    format,
    minimum === undefined && maximum === undefined ? undefined : `${minimum ?? ''} to ${maximum ?? ''}`,
    minLength === undefined && maxLength === undefined
      ? undefined
      : `${minLength ?? 0} to ${maxLength ?? ''} characters`,
    pattern,
    given === undefined ? undefined : `default ${given}`,
  ]
    .filter(word => word !== undefined)
    .join('; ')
}

/** A schema with references as links to the shapes below. */
function shape(schema: unknown): string {
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

const STYLE = `:root{--text:#1b1f24;--soft:#57606a;--line:#d0d7de;--back:#fff;--code:#f6f8fa;--link:#0550ae}
*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;margin:0;color:var(--text);background:var(--back);display:flex}
a{color:var(--link)}nav{position:sticky;top:0;height:100vh;overflow:auto;flex:0 0 21rem;padding:1rem;border-right:1px solid var(--line);font-size:.85rem}
nav ul{list-style:none;margin:.2rem 0 .6rem;padding:0}nav a{text-decoration:none;display:block;padding:.1rem 0;overflow-wrap:anywhere}nav .home{font-size:1.1rem;font-weight:600;margin-bottom:.6rem}
nav summary{font-weight:600}main{flex:1;min-width:0;max-width:62rem;padding:1rem 2rem 6rem}h2{margin-top:3rem}summary{cursor:pointer}
article{border-top:1px solid var(--line);padding:.5rem 0 1rem;scroll-margin-top:.5rem}h3{margin:.6rem 0 .2rem;font-weight:500}
pre{background:var(--code);padding:.7rem;overflow:auto;font-size:.82rem;margin:.3rem 0;border-radius:6px;max-height:24rem}td{vertical-align:top;padding:.15rem .8rem .15rem 0}
.status{margin:.5rem 0 0;color:var(--soft);font-size:.85rem}b[class]{font:600 .75rem ui-monospace,monospace;color:#57606a}.GET{color:#0a7f3f!important}.POST{color:#0550ae!important}.DELETE{color:#b42318!important}.PATCH,.PUT{color:#8a5a00!important}
@media(max-width:50rem){body{display:block}nav{position:static;height:auto;max-height:40vh;border-right:0;border-bottom:1px solid var(--line)}main{padding:1rem}}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#9198a1;--line:#30363d;--back:#0d1117;--code:#161b22;--link:#6cb6ff}.GET{color:#4ac26b!important}.POST{color:#6cb6ff!important}.DELETE{color:#ff7b72!important}.PATCH,.PUT{color:#d4a72c!important}}`
