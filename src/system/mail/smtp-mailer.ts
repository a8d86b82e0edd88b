import { createTransport } from 'nodemailer'
import type { Mailer } from '../../ports/mailer.ts'

/** Times of a connection to the mail server, in milliseconds. */
const TIMES = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 } as const
const MAX_PROBLEM = 300

/**
 * Sends mails over SMTP, each on a connection of its own: alerts are rare.
 * @param url `smtp://` or `smtps://`, with user and password where the mail server needs them
 * @param from the sender
 */
export function createSmtpMailer(url: string, from: string): Mailer {
  const { hostname } = new URL(url)
  const transport = createTransport({ url, ...TIMES })
  return {
    async send({ to, subject, text, id }) {
      try {
        await transport.sendMail({ from, to, subject, text, messageId: `<${id}@runyard.${hostname}>` })
        return null
      } catch (thrown) {
        const { message } = thrown as Error
        return withoutPassword(message, url).slice(0, MAX_PROBLEM)
      }
    },
  }
}

/** A mail server may repeat what it was sent. */
function withoutPassword(message: string, url: string): string {
  const password = decodeURIComponent(new URL(url).password)
  return password === '' ? message : message.replaceAll(password, '…')
}
