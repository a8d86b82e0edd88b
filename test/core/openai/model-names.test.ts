import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import {
  chosenEndpoint,
  modelForWorker,
  modelFromVariables,
  readModelName,
  readServedModels,
  unknownModel,
} from '../../../src/core/openai/model-names.ts'

const id = (text: string) => text as EndpointId

test('a name may be an endpoint, or one of the models of an endpoint', () => {
  assert.deepEqual(readModelName('qwen'), { whole: 'qwen', part: null })
  const part = { endpoint: 'qwen', model: 'Qwen/Qwen3-8B' }
  assert.deepEqual(readModelName('qwen/Qwen/Qwen3-8B'), { whole: 'qwen/Qwen/Qwen3-8B', part })
  for (const whole of ['/x', 'x/']) assert.deepEqual(readModelName(whole), { whole, part: null })
  for (const text of ['', 'x'.repeat(513)]) assert.equal(readModelName(text), null)
})

test('the first endpoint that is ready answers, else the first', () => {
  const [a, b, c] = [id('a'), id('b'), id('c')]
  const chosen = (...ready: boolean[]) =>
    chosenEndpoint([a, b, c].slice(0, ready.length).map((one, at) => ({ id: one, ready: ready[at]! })))
  assert.equal(chosen(false, true, true), b)
  assert.equal(chosen(false, false, false), a)
  assert.equal(chosen(), null)
})

test('a worker reads a name that it knows', () => {
  const known = ['Qwen/Qwen3-8B', 'lora']
  const forWorker = (asked: string, named: string | null, names: string[] = known) =>
    modelForWorker(asked, { named, known: names, name: 'qwen' })
  assert.equal(forWorker('qwen/lora', 'lora'), 'lora')
  assert.equal(forWorker('lora', null), 'lora')
  assert.equal(forWorker('gpt-4o', null), 'Qwen/Qwen3-8B')
  assert.equal(forWorker('gpt-4o', null, []), 'qwen')
})

test('models are read from answers of workers and from variables, within limits', () => {
  assert.deepEqual(readServedModels({ object: 'list', data: [{ id: 'a' }, { id: 1 }, null, { id: 'b' }] }), ['a', 'b'])
  for (const value of [null, 1, [], {}, { data: {} }]) assert.equal(readServedModels(value), null)
  const many = Array.from({ length: 500 }, (_, at) => ({ id: `m${at}` }))
  assert.equal(readServedModels({ data: many })?.length, 100)
  assert.deepEqual(readServedModels({ data: [{ id: 'x'.repeat(257) }] }), [])
  assert.equal(modelFromVariables({ MODEL_NAME: 'a/b', OPENAI_SERVED_MODEL_NAME_OVERRIDE: 'c' }), 'c')
  assert.equal(modelFromVariables({ MODEL_NAME: '{{ RUNPOD_SECRET_x }}' }), null)
  assert.equal(modelFromVariables({}), null)
})

test('an unknown name is refused with what there is, and with the nearest name', () => {
  const error = unknownModel('qwen-32', ['llama', 'qwen-32b'])
  assert.deepEqual(
    [error.code, error.message],
    ['not_found', "there is no model 'qwen-32'; did you mean 'qwen-32b'? there are llama, qwen-32b"],
  )
  assert.match(unknownModel('zzzzzzzz', []).message, /: this key may use none$/)
  const many = Array.from({ length: 12 }, (_, at) => `model-number-${at}`)
  assert.match(
    unknownModel('x'.repeat(200), many).message,
    /^there is no model 'x{100}\.\.\.': there are .* and 2 more$/,
  )
})
