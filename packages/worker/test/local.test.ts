import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { atOnce, Child, fixture } from './support/bench.ts'

const run = async (args: string[], cwd = import.meta.dirname, env: Record<string, string> = {}) => {
  const child = new Child([fixture, ...args], env, cwd)
  const { code } = await child.ended
  return { code, stdout: child.stdout, stderr: child.stderr }
}

describe('trying a handler without a platform', atOnce, () => {
  it('runs one job from --test_input and prints its result', async () => {
    const { code, stdout } = await run(['--test_input', '{"input": {"do": "echo"}}'])
    assert.equal(code, 0)
    assert.deepEqual(JSON.parse(stdout), { output: { echo: { do: 'echo' } } })
  })

  it('runs one job from test_input.json and gathers a stream', async t => {
    const folder = mkdtempSync(join(tmpdir(), 'worker-local-'))
    t.after(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'test_input.json'), '{"input": {"do": "stream", "n": 2}}')
    const { code, stdout } = await run([], folder)
    assert.equal(code, 0)
    assert.deepEqual(JSON.parse(stdout), { output: [{ index: 0 }, { index: 1 }] })
  })

  it('exits with 1 and prints the error when the job fails', async () => {
    const { code, stdout } = await run(['--test_input={"input": {"do": "throw"}}'])
    assert.equal(code, 1)
    assert.match(JSON.parse(stdout).error, /too far/)
  })

  it('says what to do when there is nothing to run', async () => {
    const { code, stderr } = await run([])
    assert.equal(code, 1)
    assert.match(stderr, /--test_input.*[\s\S]*test_input\.json/)
  })

  it('says what is wrong with a test input it cannot use', async () => {
    assert.match((await run(['--test_input', '{oops'])).stderr, /not JSON/)
    assert.match((await run(['--test_input', '{"name": "x"}'])).stderr, /no "input"/)
  })

  it('names the variable that a platform forgot', async () => {
    const { code, stderr } = await run([], undefined, { RUNPOD_WEBHOOK_GET_JOB: 'http://127.0.0.1:9/job-take/$ID' })
    assert.equal(code, 1)
    assert.match(stderr, /RUNPOD_WEBHOOK_POST_OUTPUT is not set/)
  })
})
