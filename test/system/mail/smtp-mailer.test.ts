/** Mails over SMTP, to a small mail server of the test. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createSmtpMailer } from '../../../src/system/mail/smtp-mailer.ts'
import { startMailServer } from '../../support/mail-server.ts'

async function mailServer(t: TestContext, refusal: string | null = null) {
  const server = await startMailServer(refusal)
  t.after(() => server.close())
  return server
}

const MAIL = { to: 'me@example.org', subject: 'Runyard: chat needs attention', text: 'workers crash\n', id: 'm1' }

test('a mail arrives with sender, subject, text and the id of its message', async t => {
  const { url, mails } = await mailServer(t)
  assert.equal(await createSmtpMailer(url, 'runyard@example.org').send(MAIL), null)
  const [mail = ''] = mails
  for (const part of [
    /^From: runyard@example.org/m,
    /^To: me@example.org/m,
    /^Subject: Runyard: chat needs attention/m,
    /^Message-ID: <m1@runyard/m,
    /workers crash/,
  ]) {
    assert.match(mail, part)
  }
})

test('a refusal and a server that is away are phrases', async t => {
  const { url } = await mailServer(t, '550 no such mailbox')
  assert.match((await createSmtpMailer(url, 'runyard@example.org').send(MAIL))!, /550 no such mailbox/)
  assert.match((await createSmtpMailer('smtp://127.0.0.1:1', 'runyard@example.org').send(MAIL))!, /ECONNREFUSED/)
})
