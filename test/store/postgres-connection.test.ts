/**
 * Failed connections to a PostgreSQL: each start prints the reason, with the words of the other
 * side and without the password.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { checkPostgres, requireUsable } from '../../src/store/database-check.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { connectionConfig } from '../../src/store/engines/postgres-connection.ts'
import { unfitness } from '../../src/store/engines/postgres-trouble.ts'
import { type MadeCertificate, makeCertificate } from '../support/certificates.ts'
import { noPostgres, testDatabase } from '../support/postgres-database.ts'

const folder = mkdtempSync(join(tmpdir(), 'runyard-postgres-'))
after(() => rmSync(folder, { recursive: true }))
const HBA = 'no pg_hba.conf entry for host "10.42.0.7", user "runyard", database "runyard", no encryption'

/** An error of PostgreSQL as it is sent. */
function refusal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const size = Buffer.alloc(4)
  size.writeInt32BE(fields.length + 4)
  return Buffer.concat([Buffer.from('E'), size, fields])
}

/** Asks for a password as PostgreSQL does since version 10, and goes on. */
const ASKS_PASSWORD = Buffer.from('R\0\0\0\u0017\0\0\0\u000aSCRAM-SHA-256\0\0', 'latin1')
const GOES_ON = Buffer.from('R\0\0\0\u000b\0\0\0\u000br=x', 'latin1')

/** Answers like a PostgreSQL as far as a connection goes that it does not let in. @returns its port */
async function openPostgres(
  t: { after(action: () => void): void },
  pair: MadeCertificate | null,
  answer: Buffer = refusal('28000', HBA),
): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', (first: Buffer) => {
      if (first.readInt32BE(4) !== 80_877_103) {
        socket.once('data', () => socket.write(GOES_ON))
        return void socket.write(answer)
      }
      socket.write(pair === null ? 'N' : 'S')
      if (pair !== null) new TLSSocket(socket, { isServer: true, cert: pair.cert, key: pair.key }).on('error', () => {})
    })
  })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { readonly port: number }).port
}

/** The sentence of a start and of a store that is opened, which is the finding of doctor too. */
const saying = async (url: string) => {
  const [started, opened] = await Promise.all(
    [requireUsable(url), openPostgresStore({ url })].map(ended =>
      ended.then(
        () => assert.fail('it was opened'),
        (error: Error) => error.message,
      ),
    ),
  )
  assert.equal(started, opened)
  const { problem, remedy } = await checkPostgres(url)
  assert.ok(started?.endsWith(remedy === null ? (problem ?? '') : `: ${problem}; ${remedy}`), `${started} ${problem}`)
  assert.doesNotMatch(started ?? '', /hidden/)
  return started ?? ''
}

test('a host that pg_hba.conf does not let in gets the words of PostgreSQL', async t => {
  const port = await openPostgres(t, null)
  const said = await saying(`postgres://runyard:hidden@127.0.0.1:${port}/runyard`)
  assert.equal(
    said,
    `PostgreSQL at 127.0.0.1:${port}/runyard: its pg_hba.conf does not let this server in (${HBA}); ` +
      'give ?sslmode=verify-full, or add a line for this host, user and database to pg_hba.conf',
  )
})

test('TLS that is not spoken, an authority that is not trusted and a certificate of another host each have a sentence', async t => {
  const ca = join(folder, 'ca.pem')
  const pair = makeCertificate({ names: ['m1'] })
  writeFileSync(ca, pair.cert)
  const [plain, secure] = [await openPostgres(t, null), await openPostgres(t, pair)]
  const at = (port: number, options: string) => saying(`postgres://runyard:hidden@127.0.0.1:${port}/runyard?${options}`)
  assert.match(
    await at(plain, 'sslmode=require'),
    /runyard: it does not speak TLS, which sslmode=require asks for; set ssl = on in postgresql\.conf, or give \?sslmode=disable/,
  )
  assert.match(
    await at(secure, 'sslmode=verify-full'),
    /the authority of its certificate is not trusted \(.*\); name the file of that authority .*sslrootcert=<file>/,
  )
  const unrelated = join(folder, 'unrelated.pem')
  writeFileSync(unrelated, makeCertificate({ names: ['m2'] }).cert)
  const wrong = await at(secure, `sslmode=verify-full&sslrootcert=${unrelated}`)
  assert.match(
    wrong,
    /is not trusted \([^;]*\); give the file of that authority as sslrootcert, which names another one$/,
  )
  const other = await at(secure, `sslmode=verify-full&sslrootcert=${ca}`)
  assert.match(other, /is for another host \(.*127\.0\.0\.1 is not in the cert's list/)
})

test('a file of the address that cannot be read is named', async () => {
  const missing = join(folder, 'nothing.pem')
  const url = `postgres://runyard:hidden@127.0.0.1:1/runyard?sslmode=verify-full&sslrootcert=${missing}`
  assert.equal(
    await saying(url),
    `sslrootcert of the database names a file that cannot be read: ENOENT: no such file or directory, access '${missing}'`,
  )
})

test('what PostgreSQL refuses is named with the command or the line that helps', async t => {
  const at = (url: string, code: string, message: string) =>
    openPostgres(t, null, code === 'password' ? ASKS_PASSWORD : refusal(code, message)).then(async port => {
      const said = await saying(url.replace('PORT', String(port)))
      return said.replaceAll(String(port), 'PORT').replace('PostgreSQL at 127.0.0.1:PORT/mine: ', '')
    })
  const url = 'postgres://ada:hidden@127.0.0.1:PORT/mine'
  const admin = '--host=127.0.0.1 --port=PORT --username=postgres'
  const cases: readonly (readonly [code: string, message: string, sentence: string, url?: string])[] = [
    ['3D000', 'database "mine" does not exist', `it has no database mine; make it: createdb ${admin} --owner=ada mine`],
    ['28000', 'role "ada" does not exist', `it has no role ada; make it: createuser ${admin} --pwprompt ada`],
    [
      '28P01',
      'password authentication failed for user "ada"',
      `it refuses the password of ada, or has no such role; correct the password in RUNYARD_DATABASE, where @ is written %40, : as %3A and / as %2F, or make the role: createuser ${admin} --pwprompt ada`,
    ],
    [
      'password',
      '',
      'it asks for the password of ada, and no password is given; set RUNYARD_DATABASE to the whole address, as postgres://ada:<password>@127.0.0.1:PORT/<database>',
      'postgres://ada@127.0.0.1:PORT/mine',
    ],
    [
      '42501',
      'permission denied for schema public',
      `the role ada may not create tables in the schema public; permit it: psql ${admin} --dbname=mine --command='GRANT USAGE, CREATE ON SCHEMA public TO ada'`,
    ],
    [
      '53300',
      'sorry, too many clients already',
      'it has as many connections as it may (sorry, too many clients already); raise max_connections, or end others',
    ],
    [
      '57P03',
      'the database system is starting up',
      'it is not ready (the database system is starting up); wait until it is, and start again',
    ],
  ]
  for (const [code, message, sentence, from = url] of cases) assert.equal(await at(from, code, message), sentence)
})

test('an address without a PostgreSQL is named with what to correct', async () => {
  const refused = await saying('postgres://ada:hidden@127.0.0.1:1/mine')
  assert.equal(
    refused,
    'PostgreSQL at 127.0.0.1:1/mine: nothing listens at 127.0.0.1:1 (ECONNREFUSED); start PostgreSQL there, or correct the host and the port in RUNYARD_DATABASE',
  )
  assert.match(
    await saying('postgres://ada:hidden@nothing.invalid/mine'),
    /^PostgreSQL at nothing\.invalid\/mine: the host nothing\.invalid has no address \(\w+\); correct the host in RUNYARD_DATABASE$/,
  )
})

test('a real PostgreSQL says that it lacks a database, a role or a right', { skip: noPostgres }, async t => {
  const database = await testDatabase()
  const { host, pathname } = new URL(database.url)
  const name = pathname.slice(1)
  await database.query(`CREATE ROLE ${name}_ada LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
  t.after(async () => {
    await database.query(`DROP ROLE ${name}_ada`)
    await database.drop()
  })
  const at = (user: string, path: string) => saying(`postgres://${user}@${host}/${path}`)
  assert.match(
    await at('postgres', `${name}_x`),
    new RegExp(`: it has no database ${name}_x; make it: createdb .* ${name}_x$`),
  )
  assert.match(await at('nobody_here', name), /: it has no role nobody_here; make it: createuser /)
  const said = await requireUsable(`postgres://${name}_ada@${host}/${name}`).then(
    () => assert.fail('it is usable'),
    (error: Error) => error.message,
  )
  const grant = `psql .* --dbname=${name} --command='GRANT USAGE, CREATE ON SCHEMA public TO ${name}_ada'$`
  assert.match(
    said,
    new RegExp(`: the role ${name}_ada may not create tables in the schema public; permit it: ${grant}`),
  )
})

test('a PostgreSQL that lets a server in, and that it cannot use, is refused before anything is written', () => {
  const facts = {
    versionNumber: 150_018,
    version: '15.18',
    isStandby: false,
    schema: 'public',
    mayCreate: true,
    hasTables: false,
  }
  const found = (more: Partial<typeof facts> | { schema: null }) =>
    unfitness({ ...facts, ...more }, 'postgres://ada@db:5432/mine')
  assert.equal(found({}), null)
  assert.equal(found({ mayCreate: false, hasTables: true }), null)
  assert.match(found({ mayCreate: false })?.problem ?? '', /^the role ada may not create tables in the schema public$/)
  assert.match(found({ versionNumber: 120_003, version: '12.3' })?.problem ?? '', /^its version 12\.3 is too old$/)
  assert.match(found({ isStandby: true })?.remedy ?? '', /address of its primary/)
  assert.match(found({ schema: null })?.problem ?? '', /^no schema of the search path exists/)
})

test('modes of TLS that check less to other clients check all here, unless the address asks for their meaning', () => {
  const url = 'postgres://me@db/x?sslmode=require&options=a'
  assert.equal(connectionConfig(url).connectionString, 'postgres://me@db/x?sslmode=verify-full&options=a')
  const asked = `${url}&uselibpqcompat=true`
  assert.equal(connectionConfig(asked).connectionString, asked)
})
