import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { chatBody, chatProgram, FIRST_SETTINGS, newTurn, readAdded } from '../../console/pages/playground/chat.ts'
import { imageBytes, imageProblem, MAX_IMAGE_BYTES } from '../../console/pages/playground/images.ts'
import { modelsFromList, stateWords } from '../../console/pages/playground/models.ts'

const SETTINGS = { ...FIRST_SETTINGS, model: 'qwen' }
const PICTURE = `data:image/png;base64,${'A'.repeat(4_000)}`

describe('a chat', () => {
  test('is sent with what is set alone, and without answers that have no text', () => {
    const turns = [newTurn('user', 'Hi'), newTurn('assistant'), newTurn('user', 'Again')]
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'user', content: 'Again' },
    ]
    assert.deepEqual(chatBody(SETTINGS, turns), { model: 'qwen', messages, stream: true })
    const set = { ...SETTINGS, system: 'Be brief.', temperature: '0.5', maxTokens: '20', isStreamed: false }
    const body = chatBody(set, turns.slice(0, 1))
    assert.deepEqual(body, {
      model: 'qwen',
      messages: [{ role: 'system', content: 'Be brief.' }, messages[0]],
      temperature: 0.5,
      max_tokens: 20,
    })
  })

  test('has images beside their text', () => {
    const { messages } = chatBody(SETTINGS, [newTurn('user', 'What is it?', [PICTURE])]) as { messages: object[] }
    const content = [
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: PICTURE } },
    ]
    assert.deepEqual(messages, [{ role: 'user', content }])
  })

  test('grows by the events of a stream, by a whole answer, and by a text', () => {
    const none = { text: '', reasoning: '', tokens: null, problem: null }
    assert.deepEqual(readAdded('{"choices":[{"delta":{"content":"a"}}]}'), { ...none, text: 'a' })
    assert.deepEqual(readAdded('{"choices":[{"delta":{"reasoning_content":"b"}}]}'), { ...none, reasoning: 'b' })
    assert.deepEqual(readAdded('{"choices":[],"usage":{"completion_tokens":7}}'), { ...none, tokens: 7 })
    assert.deepEqual(readAdded('{"choices":[{"message":{"content":[{"type":"text","text":"c"}]}}]}'), {
      ...none,
      text: 'c',
    })
    assert.deepEqual(readAdded('{"error":{"message":"no"}}'), { ...none, problem: 'no' })
    assert.deepEqual(readAdded('plain'), { ...none, text: 'plain' })
    assert.deepEqual(readAdded('null'), none)
  })

  test('is a program in three languages, without the bytes of images and the key', () => {
    const body = chatBody(SETTINGS, [newTurn('user', "it's", [PICTURE])])
    for (const language of ['curl', 'python', 'javascript'] as const) {
      const program = chatProgram(language, 'http://h/openai/v1', body)
      assert.match(program, /http:\/\/h\/openai\/v1/)
      assert.match(program, /data:image\/png;base64,\.\.\./)
      assert.match(program, /RUNYARD_API_KEY/)
      assert.ok(program.length < 1_200)
    }
    assert.match(chatProgram('curl', 'http://h', body), /it'\\''s/)
    assert.match(chatProgram('python', 'http://h', body), /stream=True,/)
  })
})

test('models are those of the list, with the time of a start', () => {
  const runyard = { endpoint_id: 'e1', type: 'queue', state: 'cold', typical_start_seconds: 41.6 }
  const models = modelsFromList({
    object: 'list',
    data: [{ id: 'qwen', runyard }, { id: 'qwen/a', runyard }, { id: 'foreign' }],
  })
  assert.deepEqual(
    models.map(({ name }) => name),
    ['qwen', 'qwen/a'],
  )
  assert.equal(stateWords(models[0]!), 'cold, starts in about 42 s')
  assert.equal(stateWords({ state: 'ready', startS: 40 }), 'ready')
  assert.deepEqual(modelsFromList({}), [])
})

test('images that no model reads, and more than a request takes, are refused with the reason', () => {
  const png = { type: 'image/png', size: 10, name: 'a.png' }
  assert.equal(imageProblem(png, 0), null)
  assert.match(imageProblem({ ...png, type: 'image/svg+xml' }, 0)!, /a\.png is no PNG/)
  assert.match(imageProblem(png, MAX_IMAGE_BYTES)!, /14 MB/)
  assert.equal(imageBytes(PICTURE), 3_000)
})
