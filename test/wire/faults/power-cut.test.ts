/**
 * Files that a server wrote beside its database before it reports that it is up: all of them have to survive a power
 * cut.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { digestOf, type Flush } from '../support/record-flushes.ts'
import { rootUrl, type Server, startServer } from '../support/server.ts'

/**
 * Files that may be lost: locks, notes, drafts and sockets of a process, and logs. The database
 * looks after its own content.
 */
const MAY_BE_LOST =
  /^(?:lock\.sqlite.*|server\.json|runyard\.sqlite-.*|logs\/.*|relay(?:\/.*)?|workers\.sock|functions(?:\/.*)?|.*\.new)$/
const OWN_CONTENT = /^runyard\.sqlite$/

function startRecorded(dataDir: string, flushes: string, env: Readonly<Record<string, string>> = {}): Promise<Server> {
  const preload = `--import=${rootUrl}/test/wire/support/record-flushes.ts`
  return startServer({ dataDir, env: { ...env, NODE_OPTIONS: preload, RUNYARD_TEST_FLUSHES: flushes } })
}

/** Paths of the data directory that a power cut would take away or set back. */
function forgettable(dataDir: string, flushFile: string): string[] {
  const flushes = readFileSync(flushFile, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Flush)
  const last = new Map(flushes.map(flush => [flush.inode, flush]))
  const isNamed = (path: string) => {
    const { ino } = statSync(path)
    return last.get(statSync(dirname(path)).ino)?.names?.[path.slice(dirname(path).length + 1)] === ino
  }
  const isWritten = (path: string) =>
    statSync(path).isDirectory() || last.get(statSync(path).ino)?.digest === digestOf(path)
  return readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
    .filter(name => !MAY_BE_LOST.test(name))
    .filter(name => !isNamed(join(dataDir, name)) || !(OWN_CONTENT.test(name) || isWritten(join(dataDir, name))))
}

describe('a power cut', () => {
  test('takes nothing away of what the first start has written, nor of a new API key', async () => {
    const folder = temporaryFolder()
    const [dataDir, flushes] = [join(folder, 'above/data'), join(folder, 'flushes')]
    const first = await startRecorded(dataDir, flushes)
    for (const name of ['api-key', 'encryption-key', 'store', 'runyard.sqlite'])
      assert.ok(readdirSync(dataDir).includes(name))
    assert.deepEqual(forgettable(dataDir, flushes), [])
    await first.kill9()
    const second = await startRecorded(dataDir, flushes, { RUNYARD_API_KEY: 'rpa_another_key_of_some_length' })
    assert.equal(second.apiKey, 'rpa_another_key_of_some_length')
    assert.deepEqual(forgettable(dataDir, flushes), [])
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
  })
})
