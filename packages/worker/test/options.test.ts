import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import * as sdk from '../index.js'

const start = sdk.start as (options: unknown) => Promise<void>
const handler = () => 'never called'

describe('the entry', () => {
  it('is there for require(), as the same module with the same names', () => {
    const required = createRequire(import.meta.url)('@runyard/worker')
    assert.equal(required.start, sdk.start)
    assert.deepEqual(Object.keys(required).sort(), Object.keys(sdk).sort())
  })

  it('comes with the license of the repository', () => {
    const license = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
    assert.equal(license('../LICENSE'), license('../../../LICENSE'))
  })
})

describe('options', () => {
  it('that do not exist are refused, all at once, with the one that was meant', async () => {
    const meant = {
      concurency: 'concurrency',
      Handlers: 'handler',
      schema: 'inputSchema',
      refresh_worker: 'refreshWorker',
      return_aggregate_stream: 'returnAggregateStream',
      concurrency_modifier: 'concurrency',
    }
    const typed = Object.fromEntries(Object.keys(meant).map(name => [name, 1]))
    const lines = Object.entries(meant).map(
      ([name, other]) => `start has no option "${name}"; did you mean "${other}"?`,
    )
    await assert.rejects(start({ handler, ...typed }), { name: 'TypeError', message: lines.join('\n') })
    await assert.rejects(start({ handler, banana: 1 }), /no option "banana"; the options are handler, .*concurrency/)
  })

  it('that cannot be used are refused with what they should be', async () => {
    await assert.rejects(start(undefined), /handler: a function/)
    await assert.rejects(start({ handler: 'x' }), /handler: a function/)
    await assert.rejects(start({ handler, concurrency: 0 }), /whole number from 1/)
    await assert.rejects(start({ handler, resultRetryMs: -1 }), /milliseconds/)
    await assert.rejects(start({ handler, inputSchema: { type: 'object' } }), /Standard Schema/)
  })
})
