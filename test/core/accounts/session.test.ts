import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  consoleCookie,
  isConsoleCookie,
  isConsoleCookieAt,
  isSecret,
  sessionText,
} from '../../../src/core/accounts/session.ts'

const A = 'a'.repeat(43)
const B = 'B'.repeat(43)

test('only halves that this server can have given out make a session', () => {
  assert.equal(sessionText({ cookie: A, token: B }), `console:${A}:${B}`)
  assert.notEqual(sessionText({ cookie: A, token: B }), sessionText({ cookie: B, token: A }))
  for (const other of ['', 'a'.repeat(42), 'a'.repeat(44), `${'a'.repeat(42)}:`, `${'a'.repeat(42)}=`, `${A}\n`]) {
    assert.equal(isSecret(other), false, other)
    assert.equal(sessionText({ cookie: A, token: other }), null)
    assert.equal(sessionText({ cookie: other, token: B }), null)
  }
})

test('each console of a machine has a cookie of its own, which over TLS no other host can set', () => {
  const mark = 'abcDEF-_0123'
  const names = {
    'http://console.localhost:8080': `runyard-console-8080-${mark}`,
    'http://console.localhost': `runyard-console-${mark}`,
    'https://console.example': `__Host-runyard-console-${mark}`,
    'https://console.example:8443': `__Host-runyard-console-8443-${mark}`,
  }
  for (const [origin, name] of Object.entries(names)) {
    assert.equal(consoleCookie(origin, mark), name)
    for (const other of Object.values(names))
      assert.equal(isConsoleCookieAt(origin, other), other === name, `${origin} ${other}`)
  }
})

test('the cookies of all consoles are known, in whatever case, and no others', () => {
  const own = ['runyard-console', ' runyard-console-8080 ', '__Host-runyard-console', '__HOST-Runyard-Console-8443']
  for (const name of own) assert.ok(isConsoleCookie(name), name)
  for (const name of ['runyard', 'runyard-consoles', 'my-runyard-console', '__Secure-runyard-console', '']) {
    assert.ok(!isConsoleCookie(name), name)
  }
})
