/**
 * The certificate of a server: files that are refused with the reason, changes that it follows, and the certificate
 * that a server makes for itself.
 */
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { connect, createServer } from 'node:tls'
import { selfSignedNames } from '../../src/main/listening/certificate.ts'
import { CertificateInUse } from '../../src/system/certificates/certificate-in-use.ts'
import { DomainCertificates, domainFiles } from '../../src/system/certificates/domain-certificates.ts'
import { readPair } from '../../src/system/certificates/key-pair.ts'
import {
  ensurePair,
  ensureSelfSigned,
  NamedCertificates,
  selfSignedFiles,
} from '../../src/system/certificates/self-signed.ts'
import { systemClock } from '../../src/system/clock.ts'
import { makeCertificate, writePair } from '../support/certificates.ts'

const DAY_MS = 24 * 60 * 60_000
const NOW = systemClock.now()

const folder = mkdtempSync(join(tmpdir(), 'runyard-certificates-'))
after(() => rmSync(folder, { recursive: true, force: true }))

let made = 0
function newFolder(): string {
  made += 1
  const path = join(folder, `${made}`)
  mkdirSync(path)
  return path
}

describe('files of a certificate', () => {
  const good = makeCertificate()

  test('say of whom it is, until when, and its fingerprint', async () => {
    const { about } = await readPair(writePair(newFolder(), good), NOW)
    assert.equal(about.subject, 'CN=localhost, O=Runyard (self-signed)')
    assert.deepEqual(about.names, ['localhost', 'console.localhost', '*.lb.localhost', '127.0.0.1'])
    assert.equal(about.fingerprint, good.fingerprint)
    assert.equal(about.expiresAtMs, new X509Certificate(good.cert).validToDate.getTime())
  })

  test('may be one file, with the chain behind the certificate', async () => {
    const file = join(newFolder(), 'both.pem')
    writeFileSync(file, good.key + good.cert + makeCertificate().cert)
    assert.equal((await readPair({ certFile: file, keyFile: file }, NOW)).about.fingerprint, good.fingerprint)
  })

  const encrypted = good.privateKey
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hidden' })
    .toString()
  const late = new Date(NOW - DAY_MS)
  const early = new Date(NOW + DAY_MS)
  late.setMilliseconds(0)
  early.setMilliseconds(0)
  const wrong: [what: string, pair: { cert?: string; key?: string }, reason: RegExp][] = [
    [
      'a key of another certificate',
      { key: makeCertificate().key },
      /^the key in \S+key\.pem is not that of the first certificate in \S+cert\.pem$/,
    ],
    [
      'a key with a passphrase',
      { key: encrypted },
      /^the key in \S+key\.pem has a passphrase; write one without: openssl pkey /,
    ],
    ['no key', { key: good.cert }, /^\S+key\.pem has no private key in PEM that can be read$/],
    ['no certificate', { cert: good.key }, /^\S+cert\.pem has no certificate that can be read/],
    ['nothing', { cert: '' }, /^\S+cert\.pem has no certificate in PEM$/],
    ['half a certificate', { cert: good.cert.slice(0, 300) }, /^\S+cert\.pem has no certificate that can be read/],
    [
      'a certificate that has expired',
      makeCertificate({ fromMs: NOW - 9 * DAY_MS, untilMs: late.getTime() }),
      new RegExp(`^the certificate in \\S+cert\\.pem expired at ${late.toISOString()}$`),
    ],
    [
      'a certificate of the future',
      makeCertificate({ fromMs: early.getTime() }),
      new RegExp(`^the certificate in \\S+cert\\.pem is not valid before ${early.toISOString()}$`),
    ],
  ]
  for (const [what, pair, reason] of wrong)
    test(`with ${what} are refused with a sentence`, async () => {
      const files = writePair(newFolder(), { cert: good.cert, key: good.key, ...pair })
      await assert.rejects(readPair(files, NOW), { code: 'invalid', message: reason })
    })

  test('that are not there are named', async () => {
    const files = writePair(newFolder(), good)
    rmSync(files.keyFile)
    await assert.rejects(readPair(files, NOW), {
      message: /^cannot read \S+key\.pem: ENOENT.*; correct --tls-cert or --tls-key$/,
    })
  })
})

describe('a certificate in use', () => {
  /** One that follows files, with what it said. */
  async function follow(files: ReturnType<typeof writePair>) {
    const said: [string, string][] = []
    const inUse = await CertificateInUse.open(() => readPair(files, systemClock.now()))
    inUse.follow((name, fields) =>
      said.push([
        name,
        'problem' in fields ? String(fields.problem) : 'fingerprint' in fields ? fields.fingerprint : '',
      ]),
    )
    after(() => inUse.close())
    const changes: string[] = []
    inUse.watch(pair => changes.push(pair.about.fingerprint))
    return { inUse, said, changes }
  }

  test('is replaced when both files have changed, and stays while they do not fit each other, which is said once', async () => {
    const [first, second] = [makeCertificate(), makeCertificate()]
    const files = writePair(newFolder(), first)
    const { inUse, said, changes } = await follow(files)
    await inUse.look()
    assert.deepEqual(said, [['tls.loaded', first.fingerprint]])
    writeFileSync(files.certFile, second.cert)
    await inUse.look()
    await inUse.look()
    assert.equal(inUse.current.about.fingerprint, first.fingerprint)
    assert.deepEqual(
      said.slice(1).map(([name]) => name),
      ['tls.problem'],
    )
    assert.match(said[1]![1], /is not that of the first certificate/)
    writeFileSync(files.keyFile, second.key)
    await inUse.look()
    assert.deepEqual(said.slice(2), [['tls.reloaded', second.fingerprint]])
    assert.deepEqual(changes, [second.fingerprint])
  })

  test('reaches every watcher although one cannot take it, as on a full disk, and that one once it can', async () => {
    const [first, second] = [makeCertificate(), makeCertificate()]
    const files = writePair(newFolder(), first)
    const { inUse, said, changes } = await follow(files)
    let isFull = true
    const late: string[] = []
    const unwatch = inUse.watch(({ about }) => {
      if (isFull) throw Object.assign(new Error('write'), { code: 'ENOSPC' })
      late.push(about.fingerprint)
    })
    const others: string[] = []
    inUse.watch(pair => others.push(pair.about.fingerprint))
    writeFileSync(files.certFile, second.cert)
    writeFileSync(files.keyFile, second.key)
    await inUse.look()
    await inUse.look()
    assert.deepEqual([changes, others, late], [[second.fingerprint], [second.fingerprint], []])
    assert.deepEqual(said.slice(2), [['tls.problem', 'the server cannot do this now: its disk is full']])
    isFull = false
    await inUse.look()
    await inUse.look()
    assert.deepEqual([changes, others, late], Array(3).fill([second.fingerprint]))
    unwatch()
  })

  test('follows the links of a volume of Kubernetes, whose folder is replaced', async () => {
    const [first, second] = [makeCertificate(), makeCertificate()]
    const root = newFolder()
    writePair(join(root, '..1'), first)
    writePair(join(root, '..2'), second)
    symlinkSync('..1', join(root, '..data'))
    for (const name of ['cert.pem', 'key.pem']) symlinkSync(`..data/${name}`, join(root, name))
    const { inUse } = await follow({ certFile: join(root, 'cert.pem'), keyFile: join(root, 'key.pem'), args: [] })
    symlinkSync('..2', join(root, '..new'))
    renameSync(join(root, '..new'), join(root, '..data'))
    await inUse.look()
    assert.equal(inUse.current.about.fingerprint, second.fingerprint)
  })

  test('stays when its files are gone or have expired, and a second problem is said, too', async () => {
    const files = writePair(newFolder(), makeCertificate())
    const { inUse, said } = await follow(files)
    rmSync(files.certFile)
    await inUse.look()
    writePair(join(files.certFile, '..'), makeCertificate({ fromMs: NOW - 9 * DAY_MS, untilMs: NOW - DAY_MS }))
    await inUse.look()
    assert.deepEqual(
      said.map(([name]) => name),
      ['tls.loaded', 'tls.problem', 'tls.problem'],
    )
    assert.match(said[1]![1], /ENOENT/)
    assert.match(said[2]![1], /expired at/)
  })
})

/** The problem that a client has with a pair that a server shows for a name; null for none. */
async function handshake(pair: { cert: string; key: string }, ca: string, name: string): Promise<string | null> {
  const server = createServer(pair, socket => socket.end().on('error', () => {})).listen(0, '127.0.0.1')
  server.on('tlsClientError', () => {})
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const servername = isIP(name) === 0 ? { servername: name } : { checkServerIdentity: () => undefined }
  const socket = connect({ host: '127.0.0.1', port, ca, ...servername })
  try {
    await once(socket, 'secureConnect')
    return null
  } catch (error) {
    return (error as Error).message
  } finally {
    socket.destroy()
    server.close()
  }
}

describe('a certificate that a server makes for itself', () => {
  test('is for servers with these names alone, signs no other, and its key is for the owner of the data directory', async () => {
    const dataDir = newFolder()
    const pair = await ensureSelfSigned(dataDir, ['localhost', '*.lb.localhost', '127.0.0.1', '::1'], NOW)
    const files = selfSignedFiles(dataDir)
    assert.equal(statSync(files.pair).mode & 0o777, 0o600)
    assert.equal(statSync(join(dataDir, 'tls/authority.pem')).mode & 0o777, 0o600)
    const found = new X509Certificate(pair.cert)
    const authority = new X509Certificate(readFileSync(files.certificate))
    assert.ok(!readFileSync(files.certificate, 'utf8').includes('PRIVATE'))
    assert.deepEqual([found.ca, found.checkIssued(authority), authority.ca], [false, true, true])
    for (const name of ['localhost', 'abc.lb.localhost']) assert.notEqual(found.checkHost(name), undefined, name)
    for (const address of ['127.0.0.1', '::1']) assert.notEqual(found.checkIP(address), undefined, address)
    assert.equal(found.checkHost('example.com'), undefined)
  })

  test('stays from start to start, and is replaced a month before its end by one that clients trust already', async () => {
    const dataDir = newFolder()
    const names = ['localhost', 'fd00::1']
    const first = await ensureSelfSigned(dataDir, names, NOW)
    const trusted = readFileSync(selfSignedFiles(dataDir).certificate, 'utf8')
    const again = await ensureSelfSigned(dataDir, names, NOW + 334 * DAY_MS)
    assert.equal(again.about.fingerprint, first.about.fingerprint)
    const renewed = await ensureSelfSigned(dataDir, names, NOW + 336 * DAY_MS)
    assert.notEqual(renewed.about.fingerprint, first.about.fingerprint)
    assert.equal(readFileSync(selfSignedFiles(dataDir).certificate, 'utf8'), trusted)
    assert.ok(renewed.about.expiresAtMs > first.about.expiresAtMs + 300 * DAY_MS)
  })

  test('is replaced when a name is new, and keeps those of a server with the same data directory', async () => {
    const dataDir = newFolder()
    const first = await ensureSelfSigned(dataDir, ['localhost', 'one'], NOW)
    const second = await ensureSelfSigned(dataDir, ['localhost', 'two'], NOW)
    assert.deepEqual(second.about.names, ['localhost', 'two', 'one'])
    const third = await ensureSelfSigned(dataDir, ['localhost', 'one'], NOW)
    assert.equal(third.about.fingerprint, second.about.fingerprint)
    assert.notEqual(first.about.fingerprint, second.about.fingerprint)
  })

  test('has a hundred names at most, and is not made again for those that it lacks', async () => {
    const dataDir = newFolder()
    const names = Array.from({ length: 150 }, (_, n) => `n${n}.example`)
    const first = await ensureSelfSigned(dataDir, names, NOW)
    assert.equal(first.about.names.length, 100)
    assert.equal((await ensureSelfSigned(dataDir, names, NOW)).about.fingerprint, first.about.fingerprint)
  })

  test('is made again if its key was damaged, and reported again if its certificate was', async () => {
    const dataDir = newFolder()
    const first = await ensureSelfSigned(dataDir, ['localhost'], NOW)
    const { pair, certificate } = selfSignedFiles(dataDir)
    const told = readFileSync(certificate, 'utf8')
    writeFileSync(certificate, 'x')
    const same = await ensureSelfSigned(dataDir, ['localhost'], NOW)
    assert.deepEqual([same.about.fingerprint, readFileSync(certificate, 'utf8')], [first.about.fingerprint, told])
    writeFileSync(pair, 'x')
    const next = await ensureSelfSigned(dataDir, ['localhost'], NOW)
    assert.notEqual(next.about.fingerprint, first.about.fingerprint)
    assert.equal(readFileSync(certificate, 'utf8'), told)
  })

  test('is accepted by a client that trusts the authority, by each name below those of the server', async () => {
    const dataDir = newFolder()
    const current = await ensureSelfSigned(dataDir, ['localhost', '*.localhost', 'box.lan', '*.box.lan'], NOW)
    const ca = readFileSync(selfSignedFiles(dataDir).certificate, 'utf8')
    const named = new NamedCertificates(dataDir, () => NOW)
    const pairFor = async (name: string) => (await named.pairFor(name, current)) ?? current
    for (const name of ['localhost', 'flash.localhost', 'a.b.localhost', 'box.lan', 'flash.box.lan'])
      assert.equal(await handshake(await pairFor(name), ca, name), null, name)
    assert.equal(await pairFor('flash.localhost'), await pairFor('flash.localhost'))
    for (const name of ['example.com', 'localhost.example.com', 'evillocalhost', '-', ''])
      assert.equal(await named.pairFor(name, current), null, name)
  })

  test('has an authority that nobody believes about another name', async () => {
    const dataDir = newFolder()
    await ensureSelfSigned(dataDir, ['localhost', '127.0.0.1'], NOW)
    const ca = readFileSync(selfSignedFiles(dataDir).certificate, 'utf8')
    const stolen = createPrivateKey(readFileSync(join(dataDir, 'tls/authority.pem')))
    for (const names of [['example.com'], ['localhost', 'example.com'], ['192.0.2.1']]) {
      const pair = makeCertificate({ names, issuer: { cert: ca, privateKey: stolen } })
      assert.match((await handshake(pair, ca, names[0]!)) ?? 'accepted', /permitted subtree violation/, names.join())
    }
    const own = makeCertificate({ names: ['x.localhost'], issuer: { cert: ca, privateKey: stolen } })
    assert.equal(await handshake(own, ca, 'x.localhost'), null)
  })

  test('replaces one of an older version, whose names it keeps', async () => {
    const dataDir = newFolder()
    const { pair } = selfSignedFiles(dataDir)
    const old = await ensurePair(selfSignedFiles(dataDir), ['localhost', 'old'], NOW)
    const next = await ensureSelfSigned(dataDir, ['localhost', 'old'], NOW)
    assert.notEqual(next.about.fingerprint, old.about.fingerprint)
    assert.deepEqual(next.about.names, ['localhost', 'old'])
    assert.ok(readFileSync(pair, 'utf8').includes(next.cert))
  })

  test('has the names of the settings and of the machine, and its addresses where it listens at all of them', () => {
    const settings = {
      host: '127.0.0.1',
      adminHost: '10.0.0.1',
      publicUrl: 'https://api.example:8443',
      queueUrl: null,
      consoleUrl: 'https://console.example',
      lbDomain: 'lb.example',
      allowedHosts: ['other.example'],
      advertiseHost: null,
      dockerWorkerAddress: null,
    }
    const machine = { names: ['Here.', 'mü', ''], addresses: ['192.0.2.1'] }
    const own = ['localhost', '*.localhost', 'console.localhost', '*.lb.localhost', '127.0.0.1', '::1']
    assert.deepEqual(selfSignedNames(settings, machine), [
      ...own,
      ...['10.0.0.1', 'api.example', 'console.example', 'lb.example', '*.lb.example', 'other.example', 'here'],
    ])
    const forAll = selfSignedNames({ ...settings, host: '0.0.0.0', lbDomain: null }, machine)
    assert.ok(forAll.includes('192.0.2.1') && !forAll.includes('0.0.0.0'))
  })
})

describe('the certificates of domains of endpoints', () => {
  const known = new Set(['chat.example.org'])
  const open = (dataDir: string, now = NOW) =>
    new DomainCertificates({ dataDir, isDomain: name => known.has(name), now: () => now })

  test('are made for domains alone, each by itself, and stay from start to start until a month before their end', async () => {
    const dataDir = newFolder()
    const certificates = open(dataDir)
    assert.equal(await certificates.pairFor('other.example.org'), null)
    const [first, same] = await Promise.all([1, 2].map(() => certificates.pairFor('chat.example.org')))
    assert.deepEqual([first?.about.names, same], [['chat.example.org'], first])
    const { pair, certificate } = domainFiles(dataDir, 'chat.example.org')
    assert.equal(statSync(pair).mode & 0o777, 0o600)
    assert.equal(new X509Certificate(readFileSync(certificate)).fingerprint256, first?.about.fingerprint)
    assert.ok(!readFileSync(certificate, 'utf8').includes('PRIVATE'))
    assert.equal((await open(dataDir).pairFor('chat.example.org'))?.about.fingerprint, first?.about.fingerprint)
    const renewed = await open(dataDir, NOW + 336 * DAY_MS).pairFor('chat.example.org')
    assert.notEqual(renewed?.about.fingerprint, first?.about.fingerprint)
  })

  test('go with their domains: there are no more files than domains', async () => {
    const dataDir = newFolder()
    const certificates = open(dataDir)
    for (const name of ['a.example.org', 'b.example.org', 'c.example.org']) {
      known.add(name)
      assert.notEqual(await certificates.pairFor(name), null)
      known.delete(name)
      assert.equal(await certificates.pairFor(name), null)
    }
    await certificates.pairFor('chat.example.org')
    const files = readdirSync(join(dataDir, 'tls', 'domains'))
    assert.deepEqual(files.sort(), ['chat.example.org.crt', 'chat.example.org.pem'])
  })
})
