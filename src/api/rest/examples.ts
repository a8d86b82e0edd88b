import recorded from './examples.json' with { type: 'json' }
import type { Examples } from './openapi.ts'

/**
 * A request of each operation with the response of a server. test/app/surfaces/document-examples.test.ts sends the
 * requests and compares the responses; with `RUNYARD_RECORD_EXAMPLES=1` it writes them.
 */
export const EXAMPLES: Examples = recorded as Examples
