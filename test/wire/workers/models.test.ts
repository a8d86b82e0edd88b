/** Models that workers find on their disk, downloaded from a hub of our own over real sockets. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ModelHub } from '../../support/model-hub.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { hubSkip, python } from '../support/python.ts'
import { runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Large enough to be killed in the middle. The bytes are made as they are sent. */
const LARGE = { bytes: 600_000_000, seed: 7 }

function start(hub: ModelHub, dataDir = temporaryFolder(), args: readonly string[] = []): Promise<Server> {
  return startServer({ dataDir, args: ['--hf-endpoint', hub.url, ...args], env: { NO_PROXY: '*' } })
}

function models(server: Server, ...words: string[]) {
  return runCommand(['models', ...words, '--url', server.url, '--api-key', server.apiKey])
}

test('a download goes on after a kill of the server, and is made once', async () => {
  const hub = await ModelHub.open({ after })
  const commit = hub.push('org/large', { files: { 'config.json': '{}', 'model.safetensors': LARGE } })
  const dataDir = temporaryFolder()
  const first = await start(hub, dataDir)
  const blobs = join(dataDir, 'models', 'huggingface-cache', 'hub', 'models--org--large', 'blobs')
  void models(first, 'pull', 'org/large')
  const received = async () => {
    const headers = { authorization: `Bearer ${first.apiKey}` }
    const { downloads } = (await (await fetch(`${first.url}/ops/models`, { headers })).json()) as {
      downloads: { receivedBytes: number }[]
    }
    return downloads[0]?.receivedBytes ?? 0
  }
  await until('a quarter of it', async () => (await received()) > LARGE.bytes / 4, 60_000, 5)
  await first.kill9()
  assert.ok(readdirSync(blobs).some(name => name.endsWith('.incomplete')))
  const before = hub.fileRequests().length
  const second = await start(hub, dataDir)
  const pulled = await models(second, 'pull', 'org/large')
  assert.equal(pulled.code, 0, pulled.stderr)
  assert.match(pulled.stdout, new RegExp(`org/large is there, as ${commit}\\n$`))
  const [rest, ...more] = hub.fileRequests().slice(before)
  assert.deepEqual(more, [])
  const [, offset = '0'] = /^bytes=(\d+)-$/.exec(rest?.range ?? '') ?? []
  assert.ok(Number(offset) >= LARGE.bytes / 4, `it begins at ${offset}`)
  await models(second, 'pull', 'org/large')
  assert.equal(hub.fileRequests().length, before + 1, 'what is there is not downloaded again')
  const listed = await models(second, 'list')
  assert.match(listed.stdout, /org\/large +[0-9a-f]{8} +main +600 MB +0 +\d/)
  assert.equal((await models(second, 'remove', 'org/large')).code, 0)
  assert.ok(!existsSync(blobs))
  assert.equal((await models(second, 'remove', 'org/large')).code, 66)
})

test('huggingface_hub finds a pulled model without a network', { skip: hubSkip }, async () => {
  const hub = await ModelHub.open({ after })
  const files = { 'config.json': '{"x":1}', 'onnx/model.onnx': { bytes: 3_000_000, seed: 1 } }
  const commit = hub.push('org/tiny', { files })
  const server = await start(hub)
  const pulled = await models(server, 'pull', 'https://huggingface.co/org/tiny:main')
  assert.equal(pulled.code, 0, pulled.stderr)
  hub.close()
  const script = `
import json
from huggingface_hub import snapshot_download, try_to_load_from_cache, scan_cache_dir
found = snapshot_download('org/tiny', local_files_only=True)
one = try_to_load_from_cache('org/tiny', 'onnx/model.onnx')
cache = scan_cache_dir()
print(json.dumps([found, one, len(open(one, 'rb').read()), len(cache.warnings), [r.repo_id for r in cache.repos]]))`
  const hubFolder = join(server.dataDir, 'models', 'huggingface-cache', 'hub')
  const env = { PATH: process.env.PATH, HF_HUB_CACHE: hubFolder }
  const printed = execFileSync(python, ['-c', script], { env, encoding: 'utf8' })
  const folder = join(hubFolder, 'models--org--tiny', 'snapshots', commit)
  assert.deepEqual(JSON.parse(printed), [folder, join(folder, 'onnx/model.onnx'), 3_000_000, 0, ['org/tiny']])
})
