/** Connections to a PostgreSQL that are not made: each start says why, with the words of the other side and without the password. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { connectionConfig } from '../../src/store/engines/postgres-connection.ts'
import { type MadeCertificate, makeCertificate } from '../support/certificates.ts'

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

/** Answers like a PostgreSQL as far as a connection goes that it does not let in. @returns its port */
async function openPostgres(t: { after(action: () => void): void }, pair: MadeCertificate | null): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', (first: Buffer) => {
      if (first.readInt32BE(4) !== 80_877_103) return void socket.end(refusal('28000', HBA))
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

const saying = async (url: string) => {
  const message = await openPostgresStore({ url }).then(
    () => assert.fail('it was opened'),
    (error: Error) => error.message,
  )
  assert.doesNotMatch(message, /hidden/)
  return message
}

test('a host that pg_hba.conf does not let in gets the words of PostgreSQL', async t => {
  const port = await openPostgres(t, null)
  const said = await saying(`postgres://runyard:hidden@127.0.0.1:${port}/runyard`)
  const where = `(postgres://127.0.0.1:${port}/runyard: ${HBA})`
  assert.equal(said, `the store cannot do this now: PostgreSQL does not let it in ${where}`)
})

test('TLS that is not spoken, an authority that is not trusted and a certificate of another host each have a sentence', async t => {
  const ca = join(folder, 'ca.pem')
  const pair = makeCertificate({ names: ['m1'] })
  writeFileSync(ca, pair.cert)
  const [plain, secure] = [await openPostgres(t, null), await openPostgres(t, pair)]
  const at = (port: number, options: string) => saying(`postgres://runyard:hidden@127.0.0.1:${port}/runyard?${options}`)
  assert.match(await at(plain, 'sslmode=require'), /PostgreSQL does not speak TLS/)
  assert.match(await at(secure, 'sslmode=verify-full'), /an authority that is not trusted \(sslrootcert names/)
  const other = await at(secure, `sslmode=verify-full&sslrootcert=${ca}`)
  assert.match(other, /is for another host \(.*127\.0\.0\.1 is not in the cert's list/)
})

test('a file of the address that cannot be read is named', async () => {
  const missing = join(folder, 'nothing.pem')
  const url = `postgres://runyard:hidden@127.0.0.1:1/runyard?sslmode=verify-full&sslrootcert=${missing}`
  assert.equal(await saying(url), `sslrootcert of the database names a file that cannot be read: ${missing} (ENOENT)`)
})

test('modes of TLS that check less to other clients check all here, unless the address asks for their meaning', () => {
  const url = 'postgres://me@db/x?sslmode=require&options=a'
  assert.equal(connectionConfig(url).connectionString, 'postgres://me@db/x?sslmode=verify-full&options=a')
  const asked = `${url}&uselibpqcompat=true`
  assert.equal(connectionConfig(asked).connectionString, asked)
})
