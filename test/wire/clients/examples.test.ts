/** The examples of clients in JavaScript, run as they stand. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { root, type Server, startServer } from '../support/server.ts'

const run = promisify(execFile)

describe('the clients of the examples', () => {
  let server: Server
  let folder: string
  before(async () => {
    server = await startServer({ args: ['--sample', '--worker', `${root}/examples/openai-node`] })
    // The folder of `npm install openai`.
    folder = temporaryFolder()
    cpSync(`${root}/examples/clients`, folder, { recursive: true })
    symlinkSync(`${root}/test/node_modules`, join(folder, 'node_modules'))
  })

  const example = async (name: string, ...words: string[]) => {
    const env = { ...process.env, RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
    return run(process.execPath, [join(folder, name), ...words], { env, timeout: patient(60_000) })
  }

  test('run.mjs runs a job and prints its output', async () => {
    const { stdout } = await example('run.mjs', 'hellonode', '{"name": "Ada"}')
    assert.equal(JSON.parse(stdout).message, 'Hello, Ada!')
  })

  test('run.mjs ends with the sentence of the server where it is refused', async () => {
    await assert.rejects(example('run.mjs', 'nothing', '{}'), /404: .*not found/)
  })

  test('stream.mjs prints each chunk, and the end', async () => {
    const { stdout, stderr } = await example('stream.mjs', 'openainode', '{"openai_route": "/v1/models"}')
    assert.equal(JSON.parse(stdout).data[0].id, 'echo')
    assert.match(stderr, /COMPLETED/)
  })

  test('openai.mjs gets an answer whole and in parts', async () => {
    const { stdout } = await example('openai.mjs', 'openainode', 'echo', 'Hello there')
    assert.equal(stdout, 'You said: Hello there\nYou said: Hello there\n')
  })
})
