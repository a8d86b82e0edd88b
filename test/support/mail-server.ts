/** A small mail server, for tests. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A mail server on this machine. */
export interface MailServer {
  readonly url: string
  /** The mails that it took, as they came. */
  readonly mails: readonly string[]
  /** Answer to the next recipients; null to take them. */
  refusal: string | null
  close(): void
}

/** Starts one that takes one mail after the other. */
export async function startMailServer(refusal: string | null = null): Promise<MailServer> {
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
        text = ''
        socket.write('250 ok\r\n')
        return
      }
      const word = String(chunk).slice(0, 4).toUpperCase()
      isData = word === 'DATA'
      const answer = isData ? '354 go on' : word === 'RCPT' && started.refusal !== null ? started.refusal : '250 ok'
      socket.write(`${answer}\r\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`
  const started: MailServer = { url, mails, refusal, close: () => server.close() }
  return started
}
