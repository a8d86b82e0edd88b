import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemRandom } from '../../src/system/random.ts'
import { createVault, loadOrCreateKey } from '../../src/system/vault.ts'

const folder = mkdtempSync(join(tmpdir(), 'runyard-'))
after(() => rmSync(folder, { recursive: true }))
const vault = createVault(Buffer.alloc(32, 1))

test('a sealed text opens to what it was, and two seals of it differ', () => {
  for (const plain of ['', 'secret', 'ä\0\n🙂', 'x'.repeat(100_000)]) {
    const sealed = vault.seal(plain)
    assert.match(sealed, /^v1\.[\w-]+\.[\w-]+$/)
    assert.notEqual(vault.seal(plain), sealed)
    assert.equal(vault.open(sealed), plain)
  }
})

test('a sealed text that was changed, or sealed with another key, does not open', () => {
  const sealed = vault.seal('secret')
  const [version, nonce, text] = sealed.split('.') as [string, string, string]
  const flipped = (text.startsWith('A') ? 'B' : 'A') + text.slice(1)
  const bad = [
    '',
    'v1',
    'v1..',
    `v2.${nonce}.${text}`,
    `${sealed}.x`,
    `${version}.${nonce}.${flipped}`,
    `v1.${nonce}.AA`,
  ]
  bad.push(createVault(Buffer.alloc(32, 2)).seal('secret'))
  for (const changed of bad) assert.throws(() => vault.open(changed), { code: 'internal' }, changed)
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
  const key = loadOrCreateKey(file)
  assert.equal(key.length, 32)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(loadOrCreateKey(file), key)
})

test('a file that holds no key is refused with a sentence and left as it is', () => {
  const file = join(folder, 'broken')
  writeFileSync(file, 'no key')
  assert.throws(() => loadOrCreateKey(file), {
    code: 'internal',
    message: /broken has 6 bytes and an encryption key has 32/,
  })
  assert.equal(statSync(file).size, 6)
  assert.throws(() => createVault(Buffer.alloc(16)), { code: 'internal' })
})

test('the randomness of the system gives bytes and version 4 UUIDs', () => {
  assert.equal(systemRandom.bytes(20).length, 20)
  assert.notDeepEqual(systemRandom.bytes(20), systemRandom.bytes(20))
  assert.match(systemRandom.uuid(), /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
})

test('a signature is that of the example of Standard Webhooks', () => {
  const text = 'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
  const signature = vault.sign('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', text)
  assert.equal(signature, 'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})
