/**
 * The GraphQL schema as one document for tools: `./bin/node scripts/schema.ts` prints it, releases and the site
 * have it as `schema.graphql`.
 */
import { typeDefs } from '../src/api/graphql/sdl/schema.ts'

/** The schema that a server of this source serves. */
export function schemaText(): string {
  return `# The GraphQL schema of Runyard.\n\n${typeDefs.join('\n\n').trim()}\n`
}

if (import.meta.main) process.stdout.write(schemaText())
