/** Calls without an end, each on a connection of its own: what clients see of a restart. */
import { get } from 'node:http'
import { get as getSecurely } from 'node:https'

/**
 * One call: its status, or the code of the error that its client got.
 * @param tls true to speak HTTPS, to a server with a certificate of its own
 */
export function call(port: number, tls = false): Promise<string> {
  return new Promise(resolve => {
    const options = { port, host: '127.0.0.1', path: '/healthz', agent: false, rejectUnauthorized: false }
    const request = (tls ? getSecurely : get)(options, response => {
      response.resume().on('end', () => resolve(`${response.statusCode}`))
      response.on('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    })
    request.on('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message))
  })
}

/** Calls one after another until it is stopped, in eight concurrent rows. */
export function callsWithoutEnd(port: number, tls = false): { end(): Promise<Map<string, number>> } {
  const answers = new Map<string, number>()
  let isOver = false
  const row = async () => {
    while (!isOver) {
      const answer = await call(port, tls)
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
    }
  }
  const rows = Promise.all(Array.from({ length: 8 }, row))
  return {
    async end() {
      isOver = true
      await rows
      return answers
    },
  }
}
