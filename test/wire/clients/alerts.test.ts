/** Alerts by e-mail, from a server as a person starts it to a mail server of the test. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMailServer } from '../../support/mail-server.ts'
import { patient } from '../../support/patience.ts'
import { ask } from '../support/client.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

test('a test of a receiver arrives as a mail, and a refusal of the mail server is its problem', {
  timeout: patient(60_000),
}, async t => {
  const mail = await startMailServer()
  t.after(() => mail.close())
  const server = await startServer({
    args: ['--smtp-from', 'runyard@example.org'],
    env: { RUNYARD_SMTP_URL: mail.url },
  })
  const body = { name: 'me', kind: 'email', address: 'me@example.org' }
  const made = await ask(server, '/v2/account/alert-receivers', { body })
  assert.equal(made.status, 201, made.text)
  const { id: receiver } = made.json
  const send = () => ask(server, '/v2/account/alert-tests', { body: { receiver } })
  const seen = async () => (await ask(server, `/v2/account/alert-receivers/${receiver}`)).json
  assert.equal((await send()).status, 201)
  const { problem } = await until('the mail to be sent', async () => {
    const shown = await seen()
    return shown.sentAt !== null && shown
  })
  assert.equal(problem, null)
  assert.match(mail.mails[0] ?? '', /^From: runyard@example\.org\r\n/m)
  assert.match(mail.mails[0] ?? '', /^To: me@example\.org\r\n/m)
  mail.refusal = '550 no such mailbox'
  assert.equal((await send()).status, 201)
  await until('the refusal to be shown', async () => /550 no such mailbox/.test((await seen()).problem ?? ''))
  assert.equal(mail.mails.length, 1)
})
