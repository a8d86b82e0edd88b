import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formInput, readBoundary, readForm } from '../../../src/core/openai/form.ts'

const encoder = new TextEncoder()

/** A form as clients write it. */
async function sent(form: FormData): Promise<{ bytes: Uint8Array; boundary: string }> {
  const response = new Response(form)
  const boundary = readBoundary(response.headers.get('content-type')!)
  assert.ok(boundary)
  return { bytes: new Uint8Array(await response.arrayBuffer()), boundary }
}

test('a form has its parts, with any bytes in its files', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.string(), async (content, prompt) => {
      const form = new FormData()
      form.append('model', 'whisper')
      form.append('prompt', prompt)
      form.append('file', new File([content as BlobPart], 'a "b".wav', { type: 'audio/wav' }))
      const { bytes, boundary } = await sent(form)
      const parts = readForm(bytes, boundary)
      assert.deepEqual(
        parts.map(({ name, filename }) => [name, filename]),
        [
          ['model', null],
          ['prompt', null],
          ['file', 'a "b".wav'],
        ],
      )
      const file = parts[2]!
      assert.equal(file.contentType, 'audio/wav')
      assert.deepEqual(bytes.slice(file.start, file.end), content)
    }),
  )
})

test('a handler reads texts, files and lists', async () => {
  const form = new FormData()
  for (const [name, value] of [
    ['model', 'edit'],
    ['stream', 'true'],
    ['n', '2'],
  ] as const)
    form.append(name, value)
  form.append('image[]', new File(['a'], 'a.png', { type: 'image/png' }))
  form.append('image[]', new File(['b'], 'b.png', { type: 'image/png' }))
  form.append('tag', 'x')
  form.append('tag', 'y')
  const { bytes, boundary } = await sent(form)
  const file = (name: string, base64: string) => ({ filename: `${name}.png`, content_type: 'image/png', base64 })
  assert.deepEqual(JSON.parse(formInput(bytes, readForm(bytes, boundary), 'flux')), {
    model: 'flux',
    stream: true,
    n: '2',
    image: [file('a', 'YQ=='), file('b', 'Yg==')],
    tag: ['x', 'y'],
  })
})

test('bytes that are no form are refused', () => {
  const head = 'content-disposition: form-data; name="a"\r\n\r\nx'
  const refused = (text: string) =>
    assert.throws(() => readForm(encoder.encode(text), 'b'), { code: 'invalid', message: /^the body is not a form: / })
  for (const text of ['', '--b', `--b\r\n${head}`, `--b\r\n${head}\r\n--b`, '--b\r\nx\r\n\r\n\r\n--b--', '--b x\r\n'])
    refused(text)
  refused(`--b${`\r\n${head}\r\n--b`.repeat(201)}--`)
  refused(`--b\r\nx: ${'y'.repeat(9_000)}\r\n\r\n\r\n--b--`)
  assert.deepEqual(readForm(encoder.encode('--b--'), 'b'), [])
  for (const type of ['application/json', 'multipart/form-data', 'multipart/form-data; boundary=""'])
    assert.equal(readBoundary(type), null)
  assert.equal(readBoundary('Multipart/Form-Data; boundary="a b"'), 'a b')
})
