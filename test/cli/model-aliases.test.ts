/** `runyard models alias|aliases|unalias`: other names of models, by the words that a person types. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandsOn } from '../support/command-line.ts'
import { openRig } from '../support/rig.ts'

test('a model gets another name for one endpoint or several, is listed with them, and loses it', async t => {
  const rig = await openRig(t)
  const runyard = commandsOn(rig)
  for (const name of ['qwen', 'llama']) await rig.endpoint({ name })
  const one = await runyard('models', 'alias', 'gpt-4o=qwen')
  assert.deepEqual([one.code, one.stdout], [0, 'gpt-4o is qwen\n'], one.stderr)
  const several = await runyard('models', 'alias', 'gpt-4o=qwen,llama')
  assert.deepEqual([several.code, several.stdout], [0, 'gpt-4o is qwen, else llama\n'], several.stderr)
  assert.match((await runyard('models', 'aliases')).stdout, /^NAME +ENDPOINTS\ngpt-4o +qwen, llama\n$/)
  const removed = await runyard('models', 'unalias', 'gpt-4o')
  assert.deepEqual([removed.code, removed.stdout], [0, 'gpt-4o is removed\n'], removed.stderr)
  assert.match((await runyard('models', 'aliases')).stdout, /there are no aliases/)
})

test('words that are no alias, and an endpoint that does not exist, are named in a sentence', async t => {
  const runyard = commandsOn(await openRig(t))
  for (const text of ['gpt-4o', '=qwen', 'gpt-4o=qwen,']) {
    const { code, stderr } = await runyard('models', 'alias', text)
    assert.equal(code, 64, stderr)
    assert.ok(stderr.includes(`'${text}' is no alias; its form is name=endpoint or name=endpoint,endpoint`), stderr)
  }
  const unknown = await runyard('models', 'alias', 'gpt-4o=nothing')
  assert.notEqual(unknown.code, 0)
  assert.match(unknown.stderr, /nothing/)
  assert.doesNotMatch(unknown.stderr, /at .*\.ts:/)
})
