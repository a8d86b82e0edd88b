/** Starts that cannot work: each ends with one sentence that says what to do, and leaves nothing behind. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { tryOwnNetwork } from '../../../src/drivers/cage/network-trial.ts'
import { tryCage } from '../../../src/drivers/cage/trial.ts'
import { atExit, temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { plainUser, refusedText } from '../support/plain-user.ts'
import { programFile, runCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A mount namespace of its own, which root has at once. */
const MOUNTS = process.getuid?.() === 0 ? ['--mount'] : ['--map-root-user', '--mount']
const cage = tryCage()
const hasNetworks = 'bwrap' in cage && tryOwnNetwork(cage.bwrap, true) === null
const mayMount = spawnSync('unshare', [...MOUNTS, 'mount', '-t', 'tmpfs', 'none', '/dev/net']).status === 0
const noMounts = hasNetworks && mayMount ? false : 'this machine gives workers no networks, or lets nobody mount'
const program = programFile()

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

test('what may not be entered or read is named with its owner, by every command', {
  skip: plainUser.skip,
}, async t => {
  const { user, uid } = plainUser
  const folder = temporaryFolder()
  chmodSync(folder, 0o755)
  const own = join(folder, 'own')
  mkdirSync(own)
  const closed = join(folder, 'closed')
  mkdirSync(join(closed, 'inner'), { recursive: true })
  const handler = join(own, 'venv-of-another')
  mkdirSync(join(handler, '.venv'), { recursive: true })
  writeFileSync(join(handler, 'handler.py'), '')
  const secret = join(own, 'secret.pem')
  writeFileSync(secret, 'x')
  if (uid !== null) chownSync(own, uid, uid)
  for (const path of [closed, join(handler, '.venv')]) chmodSync(path, 0o700 & (uid === null ? 0 : 0o777))
  chmodSync(secret, 0)
  // Only its owner can remove it.
  t.after(() => {
    for (const path of [closed, join(handler, '.venv')]) chmodSync(path, 0o700)
  })
  const as = async (args: readonly string[], env: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await runCommand(args, { HOME: own, ...env }, user)
    return { code, said: stdout + stderr }
  }
  const start = (name: string, ...args: string[]) =>
    as(['serve', '--port', '0', '--data-dir', join(own, name), ...args])
  const [isClosed, isSecret] = [refusedText(closed, 'entered'), refusedText(secret, 'read')]
  const inner = join(closed, 'inner')
  const cases: [Promise<{ code: number | null; said: string }>, number, string][] = [
    [
      as(['serve', '--port', '0', '--data-dir', closed]),
      69,
      `the data directory ${closed} cannot be used: ${isClosed}`,
    ],
    [as(['endpoints', 'list', '--data-dir', closed]), 77, `the data directory ${closed} cannot be used: ${isClosed}`],
    [
      as(['doctor', '--docker', 'off', '--port', '0', '--data-dir', closed], { PATH: `${process.env.PATH}:${closed}` }),
      1,
      `cannot be used: ${isClosed}`,
    ],
    [start('a', '--worker', inner), 69, `--worker ${inner} cannot be used: ${isClosed}`],
    [start('b', '--lb', closed), 69, `--lb ${closed} cannot be used: ${isClosed}`],
    [start('c', '--worker', handler), 69, refusedText(join(handler, '.venv'), 'entered')],
    [start('d', '--tls-cert', secret, '--tls-key', secret), 69, `cannot read ${secret}: ${isSecret}`],
    [start('e', '--backup-folder', closed, '--backup-passphrase-file', secret), 64, isSecret],
    [start('f', '--process-root', closed), 69, `--process-root: ${isClosed}`],
    [as(['restore', join(closed, 'x'), '--data-dir', join(own, 'g')]), 77, `the backup cannot be read: ${isClosed}`],
    [
      as(['backup', join(closed, 'x'), '--without-keys']),
      77,
      `no backup can be written to ${join(closed, 'x')}: ${isClosed}`,
    ],
    [as(['run', 'x', '--input', `@${secret}`, '--url', 'http://127.0.0.1:1', '--api-key', 'k']), 66, isSecret],
  ]
  for (const [ended, code, sentence] of cases) {
    const found = await ended
    assert.ok(found.said.includes(sentence), `${found.said} has ${sentence}`)
    assert.equal(found.code, code, found.said)
    assert.doesNotMatch(found.said, /internal error|does not exist|smi cannot be run|at .*\.ts:/)
  }
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
  assert.match(
    stderr,
    /^runyard: cannot listen on 192\.0\.2\.7 port 0: no interface of this machine has that address \(EADDRNOTAVAIL\); give another --host$/,
  )
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

test('workers that share the ports of the machine are warned of once, by the start and by doctor', {
  skip: noMounts,
}, async () => {
  const dataDir = temporaryFolder()
  const common = ['--data-dir', dataDir, '--port', '0', '--docker', 'off']
  const inside = (...args: string[]) => {
    const words = [program, ...args].map(word => `'${word}'`).join(' ')
    // Networks of workers need the device in it.
    const env = { PATH: process.env.PATH, HOME: dataDir }
    return spawn('unshare', [...MOUNTS, 'sh', '-c', `mount -t tmpfs none /dev/net && exec ${words}`], { env })
  }
  const problem =
    /workers of folders share the network of this machine, so that two of them cannot listen on one port, such as 8000 of worker-vllm, .*: \/dev\/net\/tun cannot be opened/
  const doctor = inside('doctor', ...common)
  let found = ''
  doctor.stdout.on('data', bytes => (found += bytes))
  await new Promise(resolve => doctor.once('close', resolve))
  assert.match(found, new RegExp(`warn  cage network +${problem.source}\n +-> load the module tun`))
  const server = inside('serve', '--sample', '--direct-workers', ...common)
  atExit(() => server.kill('SIGKILL'))
  let [said, warned] = ['', '']
  server.stdout.on('data', bytes => (said += bytes))
  server.stderr.on('data', bytes => (warned += bytes))
  await until('the server', () => said.includes('Try it:'))
  server.kill('SIGTERM')
  await new Promise(resolve => server.once('close', resolve))
  const warnings = warned.split('\n').filter(line => line.includes('"level":"warn"'))
  assert.equal(warnings.length, 1, warned)
  assert.match(warnings[0] ?? '', new RegExp(`${problem.source}; load the module tun`))
})

/** The names and the contents of a data directory. What readers of its database leave beside it is no content. */
function contentOf(dataDir: string): Record<string, string> {
  const names = readdirSync(dataDir).filter(name => !/^(?:lock|first)\.sqlite|^\.gitignore$|-shm$|-wal$/.test(name))
  const files = names.filter(name => statSync(join(dataDir, name)).isFile())
  return Object.fromEntries(files.map(name => [name, readFileSync(join(dataDir, name), 'latin1')]))
}

/** The report of all that look at a data directory: the start, `check` and `doctor`. */
async function saidOf(dataDir: string, env: Record<string, string> = {}): Promise<string> {
  const before = contentOf(dataDir)
  const { code, stderr } = await runCommand(['serve', '--port', '0', '--data-dir', dataDir], env)
  const [, sentence = '', rest = ''] = /^runyard: ([^;]+); (.+); nothing was changed$/.exec(stderr) ?? []
  assert.equal(code, 69, stderr)
  const checked = await runCommand(['check', '--data-dir', dataDir], env)
  assert.deepEqual([checked.code, checked.stderr], [69, stderr])
  const doctor = await runCommand(['doctor', '--json', '--port', '0', '--docker', 'off', '--data-dir', dataDir], env)
  const findings = doctor.stdout.split('\n').filter(line => line !== '')
  const finding = findings.map(line => JSON.parse(line)).find(({ check }) => check === 'database')
  assert.deepEqual([doctor.code, finding?.state], [1, 'fail'], doctor.stdout)
  assert.ok(finding.message.endsWith(sentence) && finding.action === rest, JSON.stringify(finding))
  assert.deepEqual(contentOf(dataDir), before)
  assert.ok(!`${stderr}${doctor.stdout}`.includes('hidden'))
  return `${sentence}; ${rest}`
}

test('a data directory of the embedded database is refused where a PostgreSQL is given, by all that look at it', async () => {
  const dataDir = temporaryFolder()
  await (await startServer({ dataDir })).stop()
  const env = { RUNYARD_DATABASE: 'postgres://me:hidden@127.0.0.1:1/else' }
  const said = await saidOf(dataDir, env)
  assert.match(said, /belongs to the embedded database in it, and PostgreSQL at 127\.0\.0\.1:1\/else is given; leave /)
  // A server that was killed before it took a note.
  rmSync(join(dataDir, 'store'))
  assert.equal(await saidOf(dataDir, env), said)
})

test('a data directory of a PostgreSQL is refused without its address, by all commands that read it', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'store'), 'PostgreSQL at db.example:5432/runyard\nid 1\n')
  assert.match(
    await saidOf(dataDir),
    /belongs to PostgreSQL at db\.example:5432\/runyard, and no database is given; give its address in RUNYARD_DATABASE/,
  )
})

test('a database file that is missing or empty is refused until somebody wants a new one, and a new key is said', async () => {
  const dataDir = temporaryFolder()
  const first = await startServer({ dataDir })
  await first.stop()
  const file = join(dataDir, 'runyard.sqlite')
  const whole = readFileSync(file)
  rmSync(file)
  assert.match(await saidOf(dataDir), /and its file runyard\.sqlite is missing; .*restore a backup .*--new-database/)
  for (const empty of ['', emptyDatabase()]) {
    writeFileSync(file, empty)
    assert.match(await saidOf(dataDir), /and its file runyard\.sqlite is empty; /)
  }
  const second = await startServer({ dataDir, args: ['--new-database'] })
  assert.ok(second.lines.some(line => line.includes('gets another database')))
  await second.stop()
  writeFileSync(file, whole)
  rmSync(join(dataDir, 'api-key'))
  const last = await startServer({ dataDir })
  assert.ok(last.lines.some(line => /there is a new key, and the one before is no longer valid/.test(line)))
  await last.stop()
})

/** A database without a table. */
function emptyDatabase(): Buffer {
  const file = join(temporaryFolder(), 'empty.sqlite')
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE gone (id INTEGER); DROP TABLE gone')
  database.close()
  return readFileSync(file)
}

test('damage that a running server meets is named by readyz, why, status and the log', async () => {
  const dataDir = temporaryFolder()
  const first = await startServer({ dataDir, args: ['--sample'] })
  await first.stop()
  const file = join(dataDir, 'runyard.sqlite')
  const database = new DatabaseSync(file)
  const pages = database.prepare(
    "SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'queued_workers' AND rootpage > 0",
  )
  const rows = pages.all()
  database.close()
  const handle = openSync(file, 'r+')
  for (const { rootpage } of rows) writeSync(handle, Buffer.alloc(4096, 0xab), 0, 4096, (Number(rootpage) - 1) * 4096)
  closeSync(handle)
  const server = await startServer({ dataDir, args: ['--sample'] })
  await until('damage that was met', () => server.events('store.damaged').length > 0)
  const ready = await ask(server, '/readyz')
  assert.equal(ready.status, 503)
  const sentence = /the database file runyard\.sqlite is damaged \(database disk image is malformed\)/
  assert.match(ready.json.problem, sentence)
  assert.match((await runCommand(['why', '--data-dir', dataDir])).stderr, sentence)
  const { stdout } = await runCommand(['status', '--data-dir', dataDir])
  assert.match(stdout, new RegExp(`DAMAGED: +.* at ${file}; stop the server, examine it with runyard check`))
  assert.equal(server.events('store.damaged').length, 1)
  await server.kill9()
})
