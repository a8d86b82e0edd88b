/**
 * The GraphQL documents of RunPod's clients are valid for our schema, within all limits: a collection of documents,
 * and all that the Python SDKs send.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { buildSchema, type DocumentNode, Kind, parse, print, validate } from 'graphql'
import { parseWithinLimits, validationRules } from '../../../src/api/graphql/limits.ts'
import { typeDefs } from '../../../src/api/graphql/sdl/schema.ts'
import { OLD_SDKS, oldSdk, oldSdksSkip, python, sdk2, sdk2Skip, skip } from '../support/python.ts'
import { fixture } from '../support/server.ts'

const schema = buildSchema(typeDefs.join('\n'))
const KNOWN = new URL('../../contract/reference/graphql-documents.graphql', import.meta.url)

/** The errors of a document, each with the document. */
function problemsOf(document: string): string[] {
  return validate(schema, parseWithinLimits(document), validationRules).map(({ message }) => `${message}\n${document}`)
}

/** The documents of a file: each operation with the fragments that it uses. */
function operationsOf({ definitions }: DocumentNode): string[] {
  const fragments = definitions.filter(each => each.kind === Kind.FRAGMENT_DEFINITION)
  return definitions.flatMap(each => {
    if (each.kind !== Kind.OPERATION_DEFINITION) return []
    const text = print(each)
    return [text, ...fragments.filter(({ name }) => text.includes(`...${name.value}`)).map(print)].join('\n')
  })
}

/** The documents of the SDKs in these folders; an empty name is the one that the Python has. */
function documentsOf(program: string, folders: readonly string[]): string[] {
  const out = execFileSync(program, [`${fixture('python-client')}/documents.py`, ...folders], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const byFolder = JSON.parse(out) as Record<string, string[]>
  for (const folder of folders) assert.ok(byFolder[folder]!.length > 5, `${folder} has documents`)
  return [...new Set(Object.values(byFolder).flat())]
}

test('the documents of runpodctl, the MCP server, flash and Pulumi are valid', () => {
  const operations = operationsOf(parse(readFileSync(KNOWN, 'utf8')))
  assert.ok(operations.length > 80)
  assert.deepEqual(operations.flatMap(problemsOf), [])
})

test('the documents of the Python SDK are valid in each of its versions 1', { skip }, () => {
  const older = oldSdksSkip === false ? OLD_SDKS.map(oldSdk) : []
  assert.deepEqual(documentsOf(python, ['', ...older]).flatMap(problemsOf), [])
})

test('the documents of the Python SDK are valid in version 2.0', { skip: sdk2Skip }, () => {
  assert.deepEqual(documentsOf(sdk2, ['']).flatMap(problemsOf), [])
})
