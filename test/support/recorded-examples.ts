import { writeFileSync } from 'node:fs'
import type { OperationExample } from '../../src/api/rest/openapi.ts'

const FILE = new URL('../../src/api/rest/examples.json', import.meta.url)

/** True if the examples of the OpenAPI document are written instead of compared. */
export const recordsExamples = process.env.RUNYARD_RECORD_EXAMPLES === '1'

/** Writes the examples of the document. */
export function writeExamples(examples: Readonly<Record<string, OperationExample>>): void {
  writeFileSync(FILE, `${JSON.stringify(examples, null, 2)}\n`)
}
