import assert from 'node:assert/strict'
import { createCipheriv, createHmac } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { beginRotation, endRotation, loadMasterKeys } from '../../src/system/keys/master-key.ts'
import { boundVault, createVault, keyId } from '../../src/system/keys/vault.ts'
import { systemRandom } from '../../src/system/random.ts'

const folder = mkdtempSync(join(tmpdir(), 'runyard-'))
after(() => rmSync(folder, { recursive: true }))
const HERE = { kind: 'secrets', row: 'me/a' }
const vault = createVault(Buffer.alloc(32, 1))

test('a sealed text opens to what it was, and two seals of it differ', () => {
  for (const plain of ['', 'secret', 'ä\0\n🙂', 'x'.repeat(100_000)]) {
    const sealed = vault.seal(plain, HERE)
    assert.match(sealed, /^v3\.[\da-f]{12}\.[\w-]+\.[\w-]+$/)
    assert.notEqual(vault.seal(plain, HERE), sealed)
    assert.equal(vault.open(sealed, HERE), plain)
  }
})

test('a sealed text that was changed, or sealed with another key, does not open', () => {
  const sealed = vault.seal('secret', HERE)
  const [version, id, nonce, text] = sealed.split('.') as [string, string, string, string]
  const flipped = (text.startsWith('A') ? 'B' : 'A') + text.slice(1)
  const bad = [
    ...['', 'v1', 'v1..', 'v2..', 'v2...', `v4.${id}.${nonce}.${text}`, `${sealed}.x`, `v1.${nonce}.AA`],
    ...[`${version}.${id}.${nonce}.${flipped}`, `v1.${nonce}.${flipped}`, `v2.${nonce}.${text}`],
    `v2.000000000000.${nonce}.${text}`,
  ]
  bad.push(createVault(Buffer.alloc(32, 2)).seal('secret', HERE))
  for (const changed of bad) assert.throws(() => vault.open(changed, HERE), { code: 'internal' }, changed)
})

/** Texts that older versions sealed with the key of 32 times 1, bound to no place. */
function olderTexts(plain: string): [v1: string, v2: string] {
  const key = Buffer.alloc(32, 1)
  const nonce = Buffer.alloc(12, 3)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
  const text = `${nonce.toString('base64url')}.${sealed.toString('base64url')}`
  return [`v1.${text}`, `v2.${keyId(key)}.${text}`]
}

test('texts of older forms open with any of the keys, until all were resealed', () => {
  for (const former of olderTexts('secret')) {
    assert.equal(vault.open(former, HERE), 'secret')
    const both = createVault(Buffer.alloc(32, 9), Buffer.alloc(32, 1))
    assert.equal(both.open(former, HERE), 'secret')
    assert.equal(both.open(both.reseal(former, HERE)!, HERE), 'secret')
    assert.equal(boundVault(vault).open(vault.reseal(former, HERE)!, HERE), 'secret')
    assert.throws(() => boundVault(vault).open(former, HERE), /older form, .* runyard master-key rotate/)
  }
})

test('a sealed text opens at its own place and nowhere else', () => {
  const sealed = vault.seal('secret', HERE)
  for (const place of [
    { ...HERE, row: 'you/a' },
    { ...HERE, row: 'me/b' },
    { ...HERE, kind: 'registries' },
  ]) {
    assert.throws(() => vault.open(sealed, place), /moved from another row/)
  }
})

test('with several keys the first one seals, all open, and only what another has sealed is sealed again', () => {
  const [older, newer] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const both = createVault(newer, older)
  const old = vault.seal('secret', HERE)
  assert.equal(both.open(old, HERE), 'secret')
  const again = both.reseal(old, HERE)!
  assert.equal(createVault(newer).open(again, HERE), 'secret')
  assert.equal(both.reseal(again, HERE), null)
  assert.throws(() => vault.open(again, HERE), { code: 'internal' })
  assert.throws(() => both.reseal('v2.x', HERE), { code: 'internal' })
  assert.throws(() => createVault(newer, Buffer.alloc(31)), { code: 'internal' })
  assert.notEqual(keyId(older), keyId(newer))
})

test('hashes are equal for equal texts and only for those', () => {
  const hash = vault.hash('abc')
  assert.equal(hash, 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  assert.equal(vault.equal(hash, vault.hash('abc')), true)
  assert.equal(vault.equal(hash, vault.hash('abd')), false)
  assert.equal(vault.equal(hash, 'short'), false)
})

test('a key is made once, for the owner only, and found again', () => {
  const file = join(folder, 'key')
  const [key, ...others] = loadMasterKeys(file, [])
  assert.deepEqual([key.length, others], [32, []])
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(loadMasterKeys(file, []), [key])
})

test('keys that are given come first, and need no file', () => {
  const file = join(folder, 'given')
  const [one, two] = [Buffer.alloc(32, 3), Buffer.alloc(32, 4)]
  const given = [one, two].map(key => key.toString('base64'))
  assert.deepEqual(loadMasterKeys(file, given), [one, two])
  assert.ok(!existsSync(file))
  const [stored] = loadMasterKeys(file, [])
  assert.deepEqual(loadMasterKeys(file, given), [one, two, stored], 'what the file has sealed still opens')
})

test('a rotation keeps the old key until its end, and continues where it was interrupted', () => {
  const file = join(folder, 'rotated')
  const [old] = loadMasterKeys(file, [])
  const begun = beginRotation(file)
  assert.deepEqual(begun[1], old)
  assert.notDeepEqual(begun[0], old)
  assert.deepEqual(loadMasterKeys(file, []), begun)
  assert.deepEqual(beginRotation(file), begun)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  endRotation(file)
  assert.deepEqual(loadMasterKeys(file, []), [begun[0]])
  endRotation(file)
  assert.deepEqual(loadMasterKeys(file, []), [begun[0]])
})

test('a file without a key is refused with a message and left as it is', () => {
  const file = join(folder, 'broken')
  writeFileSync(file, 'no key')
  for (const use of [() => loadMasterKeys(file, []), () => beginRotation(file), () => endRotation(file)]) {
    assert.throws(use, { code: 'internal', message: /broken has 6 bytes and an encryption key has 32/ })
  }
  assert.equal(statSync(file).size, 6)
  assert.throws(() => createVault(Buffer.alloc(16)), { code: 'internal' })
})

test('the randomness of the system gives bytes and version 4 UUIDs', () => {
  assert.equal(systemRandom.bytes(20).length, 20)
  assert.notDeepEqual(systemRandom.bytes(20), systemRandom.bytes(20))
  assert.match(systemRandom.uuid(), /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
})

test('a signature is that of the example of Standard Webhooks, and long texts are signed as short ones', async () => {
  const key = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const texts = ['msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.', '{"test": 2432232314}']
  assert.equal(await vault.sign(key, texts), 'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  const long = 'ä€🙂'.repeat(300_001)
  const once = createHmac('sha256', Buffer.from(key, 'base64')).update(`x${long}`).digest('base64')
  assert.equal(await vault.sign(key, ['x', long]), once)
})

test('a derived secret is the same at each call, of one place and of one encryption key', () => {
  const vault = createVault(Buffer.alloc(32, 1))
  const place = { kind: 's3', row: 'a' }
  assert.match(vault.derive(place), /^[\w-]{43}$/)
  assert.equal(vault.derive(place), createVault(Buffer.alloc(32, 1), Buffer.alloc(32, 2)).derive(place))
  const others = [vault.derive({ kind: 's3', row: 'b' }), vault.derive({ kind: 'x', row: 'a' })]
  others.push(createVault(Buffer.alloc(32, 2), Buffer.alloc(32, 1)).derive(place))
  assert.equal(new Set([vault.derive(place), ...others]).size, 4)
})
