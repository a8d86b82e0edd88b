/** The page of the API, from the OpenAPI document. */
import { JOB_OPERATIONS } from '../../src/api/jobs/operations.ts'
import type { ApiParts } from '../../src/api/parts.ts'
import { openApiDocument } from '../../src/api/rest/openapi.ts'
import { restRoutes } from '../../src/api/rest/routes.ts'

interface Operation {
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly responses?: Readonly<Record<string, { readonly description?: string }>>
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly example?: unknown }>> }
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: { readonly type?: string | readonly string[] }
}

/** All operations as a page in Markdown, by their tags. */
export function apiPage(): string {
  // The routes are only described, not called.
  const parts = { addresses: () => ({}) } as unknown as ApiParts
  const document = openApiDocument({ routes: restRoutes(parts), operations: JOB_OPERATIONS })
  return renderApiPage(
    document as unknown as { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> },
  )
}

/** The page of an OpenAPI document. */
export function renderApiPage(document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}): string {
  const groups = new Map<string, string[]>()
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? 'other'
      groups.set(tag, [...(groups.get(tag) ?? []), operationText(method.toUpperCase(), path, operation)])
    }
  const sections = [...groups].map(
    ([tag, texts]) => `## ${tag[0]!.toUpperCase()}${tag.slice(1)}\n\n${texts.join('\n')}`,
  )
  return `# API

Every operation, as a running server describes it at \`/v2/openapi.json\`. At \`/v2/docs\` the server shows each with a request and a response. The key goes into \`Authorization: Bearer\`.

${sections.join('\n')}`
}

function operationText(method: string, path: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses = {} } = operation
  const texts = [...new Set([summary, description])].filter(text => text !== undefined && text !== '')
  const rows = parameters.map(one => {
    const needed = one.required === true ? 'yes' : 'no'
    return `| \`${one.name}\` | ${one.in} | ${needed} | ${[one.schema?.type ?? 'string'].flat().join(' or ')} |\n`
  })
  const table = rows.length === 0 ? '' : `| parameter | in | needed | type |\n|---|---|---|---|\n${rows.join('')}\n`
  const example = Object.values(requestBody?.content ?? {})[0]?.example
  const body = example === undefined ? '' : `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\`\n\n`
  const statuses = Object.keys(responses).sort().join(', ')
  return `### \`${method} ${path}\`\n\n${texts.join('\n\n')}\n\n${table}${body}Statuses: ${statuses}.\n`
}
