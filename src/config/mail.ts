/** The settings of the mail server that alerts go to. */
import { checkedText, optional, type Setting } from './setting.ts'

/** The settings of mails. */
export const MAIL_SETTINGS = {
  /** Address of the mail server, which may have a password; null without one. */
  smtpUrl: {
    ...optional(
      '--smtp-url',
      '<url>',
      checkedText(smtpProblem),
      'mail server for alerts, as smtp://host:587 or smtps://host; with user and password in RUNYARD_SMTP_URL only',
    ),
    secret: true,
    exposes: text => (new URL(text).password === '' ? null : 'must not have a password: use RUNYARD_SMTP_URL'),
  } satisfies Setting<string | null>,
  smtpFrom: optional(
    '--smtp-from',
    '<address>',
    checkedText(text =>
      /^[^\s@<>"]{1,64}@[^\s@<>"]{1,255}$/.test(text) ? null : 'must be an e-mail address such as runyard@example.org',
    ),
    'sender of mails',
  ),
}

/** The problem of settings of mails that do not fit together; null without one. */
export function mailClash({ smtpUrl, smtpFrom }: { smtpUrl: string | null; smtpFrom: string | null }): string | null {
  if ((smtpUrl === null) === (smtpFrom === null)) return null
  return smtpUrl === null ? '--smtp-from needs --smtp-url' : '--smtp-url needs --smtp-from'
}

function smtpProblem(text: string): string | null {
  return /^smtps?:\/\/[^/?#\s]+\/?$/.test(text) && URL.canParse(text)
    ? null
    : 'must be an address such as smtps://user:password@mail.example.org:465'
}
