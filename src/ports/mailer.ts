/** A mail of plain text. */
export interface Mail {
  /** One address. */
  readonly to: string
  readonly subject: string
  readonly text: string
  /** Goes into its Message-ID, so that a mail that is sent again is the same one. */
  readonly id: string
}

/** Sends mails by the mail server of the operator. */
export interface Mailer {
  /** Sends one, within 20 s. Never throws: the problem as a phrase, or null once the mail server has it. */
  send(mail: Mail): Promise<string | null>
}
