/** Writes the GraphQL schema to schema/schema.graphql, where tools look for it; a test checks that it is up to date. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { typeDefs } from '../src/api/graphql/sdl/schema.ts'

/** The file with the schema. */
export const SCHEMA_FILE = new URL('../schema/schema.graphql', import.meta.url)

/** The content that the file should have. */
export function schemaFile(): string {
  const head =
    '# The GraphQL schema of Runyard. Its source is src/api/graphql/sdl; scripts/schema.ts writes this file.\n\n'
  return `${head}${typeDefs.join('\n\n').trim()}\n`
}

if (import.meta.main) {
  mkdirSync(new URL('.', SCHEMA_FILE), { recursive: true })
  writeFileSync(SCHEMA_FILE, schemaFile())
}
