/** Starts that cannot work: each ends with one sentence that says what to do, and leaves nothing behind. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { runCommand, startServer } from '../support/server.ts'

async function serve(dataDir: string, ...args: string[]) {
  return runCommand(['serve', '--port', '0', '--data-dir', dataDir, ...args])
}

for (const [what, make] of [
  ['a file', (file: string) => file],
  ['below a file', (file: string) => join(file, 'runyard')],
] as const) {
  test(`a data directory that is ${what} is said in one sentence`, async () => {
    const file = join(temporaryFolder(), 'notes.txt')
    writeFileSync(file, 'mine')
    const { code, stderr, stdout } = await serve(make(file))
    assert.equal(
      stderr,
      `runyard: the data directory ${make(file)} cannot be used: ${file} is a file; give another --data-dir`,
    )
    assert.deepEqual([code, stdout], [69, ''])
  })
}

test('a data directory that cannot be made is said in one sentence', async () => {
  const { code, stderr } = await serve('/proc/runyard/data')
  assert.match(
    stderr,
    /^runyard: the data directory \/proc\/runyard\/data cannot be used: .+; give another --data-dir$/,
  )
  assert.equal(code, 69)
})

test('a port in use is said before anything is written', async () => {
  const other = createServer()
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as { port: number }
  const folder = join(temporaryFolder(), 'fresh')
  try {
    const { code, stderr } = await serve(folder, '--port', String(port))
    assert.match(stderr, new RegExp(`^runyard: port ${port} is in use by pid ${process.pid} .*; give another --port$`))
    assert.deepEqual([code, existsSync(folder)], [69, false])
    const admin = await serve(folder, '--admin-port', String(port))
    assert.match(admin.stderr, new RegExp(`^runyard: port ${port} is in use by .*; give another --admin-port$`))
    assert.equal(existsSync(folder), false)
  } finally {
    other.close()
  }
})

test('an address of another machine is said before anything is written', async () => {
  const folder = join(temporaryFolder(), 'fresh')
  const { code, stderr } = await serve(folder, '--host', '192.0.2.7')
  assert.match(stderr, /^runyard: cannot listen on 192\.0\.2\.7 port 0: .*$/)
  assert.deepEqual([code, existsSync(folder)], [69, false])
})

test('a start without mistakes has no warning', async () => {
  const folder = temporaryFolder()
  // npm installs packages of workspaces in a folder above.
  const worker = join(folder, 'workers', 'mine')
  mkdirSync(worker, { recursive: true })
  mkdirSync(join(folder, 'node_modules', 'left-pad'), { recursive: true })
  writeFileSync(join(folder, 'node_modules', 'left-pad', 'package.json'), '{"name":"left-pad"}')
  writeFileSync(join(worker, 'package.json'), '{"dependencies": {"left-pad": "1"}}')
  writeFileSync(join(worker, 'handler.mjs'), 'process.stdin.resume()\n')
  const server = await startServer({ args: ['--worker', worker, '--sample'] })
  assert.deepEqual(
    server.lines.filter(line => line.includes('"level":"warn"')),
    [],
  )
  assert.deepEqual(readdirSync(worker).sort(), ['handler.mjs', 'package.json'])
})
