import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readText } from '../../src/cli/client/text-files.ts'
import { readHubTests } from '../../src/cli/hub-tests.ts'
import { JsonText } from '../../src/core/json/json-format.ts'

const read = (value: unknown) => readHubTests(JSON.stringify(value))

test('a byte order mark at the beginning of a file is skipped, and other bytes than UTF-8 are refused', t => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-hub-tests-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'tests.json')
  const text = JSON.stringify({ tests: [{ name: 'one', input: {} }] })
  writeFileSync(file, `\ufeff${text}`)
  assert.deepEqual(readHubTests(readText(file)), readHubTests(text))
  writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]))
  assert.throws(() => readText(file), /tests\.json is not UTF-8/)
})

test('a file of the hub is read; what asks for certain hardware is left out', () => {
  const file = {
    tests: [
      { name: 'one', input: { prompt: 'a cat' }, timeout: 10_000 },
      { name: 'two', input: null },
    ],
    config: {
      gpuTypeId: 'NVIDIA GeForce RTX 4090',
      gpuCount: 1,
      allowedCudaVersions: ['12.7'],
      env: [{ key: 'TEST_MODE', value: 'true' }],
    },
  }
  assert.deepEqual(read(file), {
    tests: [
      { name: 'one', input: new JsonText('{"prompt":"a cat"}'), timeoutMs: 10_000 },
      { name: 'two', input: new JsonText('null'), timeoutMs: null },
    ],
    env: { TEST_MODE: 'true' },
  })
  assert.deepEqual(read({ tests: [{ name: 'one', input: {} }] }), {
    tests: [{ name: 'one', input: new JsonText('{}'), timeoutMs: null }],
    env: {},
  })
})

test('the input of a test is what its file says, to the character', () => {
  const input = '{"n":18446744073709551615, "f":1.0,"e":1e400,"10":1,"9":2,"__proto__":{}}'
  const reading = readHubTests(`{"tests":[{"name":"one","input":{}},{"input": ${input} ,"name":"two"}]}`)
  assert.ok('tests' in reading)
  assert.deepEqual(
    reading.tests.map(test => test.input.text),
    ['{}', input],
  )
})

test('all mistakes of a file are reported at once', () => {
  const tests = [{ name: 'one', input: 1 }, { name: 'one', timeout: '10s' }, { name: ' ', input: 1 }, 'three']
  assert.deepEqual(
    read({
      tests,
      config: {
        env: [
          { key: 'A B', value: '1' },
          { key: 'A', value: 1 },
        ],
      },
    }),
    {
      mistakes: [
        'tests[1].name is that of tests[0] too',
        'tests[1].input is missing',
        'tests[1].timeout must be a whole number of milliseconds from 1 to 604800000',
        'tests[2].name must be a text of 1 to 256 characters',
        'tests[3] must be an object',
        'config.env[0] must have a "key" that names a variable, and a text as its "value"',
        'config.env[1] must have a "key" that names a variable, and a text as its "value"',
      ],
    },
  )
})

test('a file of another kind gets a message', () => {
  const readMistake = (text: string) => {
    const reading = readHubTests(text)
    return 'mistakes' in reading ? reading.mistakes.join() : ''
  }
  assert.match(readMistake('{oops'), /^it is not JSON: /)
  assert.equal(readMistake('[]'), 'it must be an object with "tests"')
  for (const tests of ['[]', '{}', 'null'])
    assert.match(readMistake(`{"tests": ${tests}}`), /must be a list of 1 to 1000/)
  assert.match(readMistake('{"tests": [{"name": "a", "input": 1}], "config": []}'), /^config must be an object$/)
  assert.match(
    readMistake('{"tests": [{"name": "a", "input": 1}], "config": {"env": {}}}'),
    /^config.env must be a list/,
  )
})
