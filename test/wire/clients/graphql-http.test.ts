/** GraphQL over HTTP as its specification has it, by the audits of graphql-http. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverAudits } from 'graphql-http'
import { startServer } from '../support/server.ts'

const server = await startServer()

const callers = { 'an anonymous caller': '', 'a caller with a key': `?api_key=${server.apiKey}` }

for (const [caller, query] of Object.entries(callers)) {
  for (const audit of serverAudits({ url: `${server.url}/graphql${query}` })) {
    test(`${caller} ${audit.name} (${audit.id})`, async () => {
      const result = await audit.fn()
      assert.equal(result.status, 'ok', result.status === 'ok' ? '' : result.reason)
    })
  }
}
