/** Mails over SMTP, to a small mail server of the test. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createSmtpMailer } from '../../../src/system/mail/smtp-mailer.ts'

/** A mail server that takes one mail after the other. @param refusal answer to the recipient; null to take it */
async function mailServer(t: TestContext, refusal: string | null = null) {
  const mails: string[] = []
  const server = createServer(socket => {
    let isData = false
    let text = ''
    socket.write('220 test\r\n')
    socket.on('error', () => {})
    socket.on('data', chunk => {
      if (isData) {
        text += chunk
        if (!text.endsWith('\r\n.\r\n')) return
        mails.push(text)
        isData = false
        socket.write('250 ok\r\n')
        return
      }
      const word = String(chunk).slice(0, 4).toUpperCase()
      isData = word === 'DATA'
      const answer = isData ? '354 go on' : word === 'RCPT' && refusal !== null ? refusal : '250 ok'
      socket.write(`${answer}\r\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, mails }
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
