import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { readConfig } from '../src/config.ts'
import type { Client } from '../src/http.ts'
import { JobRun } from '../src/job.ts'
import type { StandardSchema } from '../src/standard-schema.ts'
import type { StartOptions } from '../src/types.ts'

const config = readConfig({
  RUNPOD_WEBHOOK_GET_JOB: 'http://stub/job-take/$ID',
  RUNPOD_WEBHOOK_POST_OUTPUT: 'http://stub/job-done/w-1/$ID',
})

/** The final post for a job with this input, its error report, and the input that the handler received. */
async function run(inputSchema: StandardSchema, input: unknown) {
  const posts: { output?: unknown; error?: string }[] = []
  let seen: unknown
  const client: Client = {
    send: async ({ body = '' }) => {
      posts.push(JSON.parse(body))
      return { status: 200, retryAfter: undefined, body: '' }
    },
  }
  const handler: StartOptions['handler'] = job => {
    seen = job.input
    return job.input
  }
  await new JobRun({ id: 'j1', input }, { options: { handler, inputSchema }, config, client, results: client }).run()
  const [post] = posts
  return { post, seen, report: post?.error === undefined ? undefined : JSON.parse(post.error) }
}

describe('checking the input', () => {
  const schema = z.object({
    prompt: z.string(),
    steps: z.number().default(20),
    images: z.array(z.object({ 'file name': z.string() })).optional(),
  })

  it('gives the handler what the schema made of it', async () => {
    const { post, seen } = await run(schema, { prompt: 'a cat', more: 1 })
    assert.deepEqual(seen, { prompt: 'a cat', steps: 20 })
    assert.deepEqual(post?.output, seen)
  })

  it('fails the job with the path of each thing that is wrong, and does not call the handler', async () => {
    const { seen, report } = await run(schema, { steps: 'many', images: [{ 'file name': 'a' }, { 'file name': 1 }] })
    assert.equal(seen, undefined)
    assert.deepEqual([report.error_type, report.error_traceback], ['InputError', ''])
    const paths = report.error_message.split('\n').map((line: string) => line.split(': ')[0])
    assert.deepEqual(paths, ['input.prompt', 'input.steps', 'input.images[1]["file name"]'])
    assert.match(report.error_message, /^input\.prompt: .*expected string/)
    assert.match((await run(schema, null)).report.error_message, /^input: .*expected object/)
  })

  it('takes schemas that answer later, and tells no more than twenty things', async () => {
    const issues = Array.from({ length: 25 }, (_, index) => ({ message: 'no', path: [{ key: 'list' }, index] }))
    const validate = async () => ({ issues })
    const { report } = await run({ '~standard': { version: 1, vendor: 'test', validate } }, {})
    const lines = report.error_message.split('\n')
    assert.deepEqual([lines.length, lines[0], lines.at(-1)], [21, 'input.list[0]: no', 'and 5 more'])
  })
})
