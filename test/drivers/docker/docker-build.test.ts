/** Files of a folder that go to the engine for a build, and the errors of a build that fails. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import type { EngineClient } from '../../../src/drivers/docker/engine/engine-client.ts'
import { buildContext, buildImage } from '../../../src/drivers/docker/images/build.ts'

const BLOCK = 512

function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-build-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries({ Dockerfile: 'FROM scratch', ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** The names of the files in an archive. */
async function filesOf(
  folder: string,
  dockerfile = 'Dockerfile',
  added: Readonly<Record<string, Buffer>> = {},
): Promise<string[]> {
  const pieces: Buffer[] = []
  for await (const piece of buildContext(folder, dockerfile, added)) pieces.push(piece as Buffer)
  const archive = Buffer.concat(pieces)
  const names: string[] = []
  for (let at = 0; at < archive.length && archive[at] !== 0; ) {
    const text = (from: number, length: number) =>
      archive
        .subarray(at + from, at + from + length)
        .toString()
        .replace(/\0.*$/s, '')
    if (text(156, 1) === '0') names.push(text(0, 100))
    at += BLOCK * (1 + Math.ceil(Number.parseInt(text(124, 12), 8) / BLOCK))
  }
  return names.sort()
}

test('all files go to the engine where no list says otherwise', async t => {
  const folder = folderWith(t, { 'handler.py': '', 'models/small/a.bin': 'x' })
  assert.deepEqual(await filesOf(folder), ['Dockerfile', 'handler.py', 'models/small/a.bin'])
})

test('files that are added go to the engine beside those of the folder', async t => {
  const folder = folderWith(t, { '.dockerignore': 'vendor\n', 'handler.ts': '' })
  const added = { 'vendor/a.tgz': Buffer.from('archive') }
  assert.deepEqual(await filesOf(folder, 'Dockerfile', added), [
    ...['.dockerignore', 'Dockerfile', 'handler.ts', 'vendor/a.tgz'],
  ])
})

test('what .dockerignore names stays here, at any depth, but for what it takes back', async t => {
  const folder = folderWith(t, {
    '.dockerignore': '# no secrets\nnode_modules\n.env\nsub/secret.txt\n**/*.log\ndata/*\n!data/small\nDockerfile\n',
    'node_modules/x/index.js': '',
    '.env': 'KEY=1',
    'sub/secret.txt': '',
    'sub/public.txt': '',
    'a/b/c.log': '',
    'data/big': '',
    'data/small': '',
    'a/b/c.txt': '',
  })
  assert.deepEqual(await filesOf(folder), [
    ...['.dockerignore', 'Dockerfile', 'a/b/c.txt', 'data/small', 'sub/public.txt'],
  ])
})

test('a list that takes back single files within folders finds them', async t => {
  const folder = folderWith(t, {
    '.dockerignore': '*\n!src/**/*.py\n!models/*/config.json\n',
    'src/a.py': '',
    'src/deep/b.py': '',
    'src/deep/c.txt': '',
    'models/one/config.json': '',
    'models/one/w.bin': '',
    'other/d.py': '',
  })
  const wanted = ['.dockerignore', 'Dockerfile', 'models/one/config.json', 'src/a.py', 'src/deep/b.py']
  assert.deepEqual(await filesOf(folder), wanted)
})

test('another Dockerfile, with a list of its own', async t => {
  const folder = folderWith(t, {
    'docker/gpu.Dockerfile': 'FROM scratch',
    'docker/gpu.Dockerfile.dockerignore': '*\n!a',
    '.dockerignore': 'a',
    a: '',
    b: '',
  })
  const name = 'docker/gpu.Dockerfile'
  assert.deepEqual(await filesOf(folder, name), ['.dockerignore', 'a', name])
})

/** An engine that answers a build with these lines. */
function engine(...parts: object[]): EngineClient {
  const text = parts.map(part => `${JSON.stringify(part)}\r\n`).join('')
  // In pieces that end anywhere.
  const pieces = text.match(/[\s\S]{1,7}/g) ?? []
  return { stream: async () => Readable.from(pieces) } as unknown as EngineClient
}

test('a build answers with the id of the image and prints what the engine says', async t => {
  const printed: string[] = []
  const id = await buildImage({
    folder: folderWith(t, {}),
    name: 'x',
    onOutput: text => void printed.push(text),
    engine: engine(
      { stream: 'Step 1/1 : FROM scratch\n' },
      { aux: { ID: 'sha256:abc' } },
      { stream: 'Successfully built\n' },
    ),
  })
  assert.equal(id, 'sha256:abc')
  assert.deepEqual(printed, ['Step 1/1 : FROM scratch\n', 'Successfully built\n'])
})

test('a build that fails names the step and the end of what it printed', async t => {
  const parts = [
    ...[{ stream: 'Step 1/2 : FROM base\n' }, { stream: 'not of this step\n' }, { stream: 'Step 2/2 : RUN make\n' }],
    ...[{ stream: ' ---> Running in 123\n' }, { stream: '\u001b[91mno rule\n\u001b[0m' }],
    { errorDetail: { code: 2 }, error: 'The command make returned a non-zero code: 2' },
  ]
  const thrown = await buildImage({ folder: folderWith(t, {}), name: 'x', engine: engine(...parts) }).catch(
    error => error,
  )
  assert.ok(thrown instanceof AppError)
  assert.equal(thrown.message, 'the build failed in step 2/2: RUN make')
  assert.deepEqual(thrown.failures, ['The command make returned a non-zero code: 2', 'no rule'])
})

test('a step that needs BuildKit says how to build the image', async t => {
  const build = {
    folder: folderWith(t, {}),
    name: 'x',
    engine: engine({ error: 'the --mount option requires BuildKit' }),
  }
  const thrown = await buildImage(build).catch(error => error)
  assert.match(thrown.failures.at(-1), /docker buildx build --load/)
})

test('a step that asks a registry for the worker package says how it comes into the image', async t => {
  const parts = [
    { stream: 'Step 2/2 : RUN npm install\n' },
    { stream: 'npm error 404 Not Found - GET https://registry.example/@runyard%2fworker - Not found\n' },
    { error: 'The command npm install returned a non-zero code: 1' },
  ]
  const thrown = await buildImage({ folder: folderWith(t, {}), name: 'x', engine: engine(...parts) }).catch(e => e)
  assert.match(thrown.failures.at(-1), /file:vendor\/runyard-worker\.tgz/)
})

test('a folder without a Dockerfile says where one is shown', async t => {
  const folder = folderWith(t, {})
  rmSync(join(folder, 'Dockerfile'))
  await assert.rejects(buildImage({ folder, name: 'x', engine: engine() }), /has no Dockerfile; .*examples/)
  await assert.rejects(buildImage({ folder, name: 'x', dockerfile: '../Dockerfile', engine: engine() }), /not within/)
})

test('an engine that ends without an image is an error', async t => {
  const folder = folderWith(t, {})
  await assert.rejects(buildImage({ folder, name: null, engine: engine({ stream: 'x' }) }), /ended the build/)
})
