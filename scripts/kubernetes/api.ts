/** Calls of the API server of a cluster. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'

/** A response of the API server. */
export interface ApiAnswer {
  readonly status: number
  /** The body, if it is JSON. */
  readonly json: unknown
  readonly text: string
}

/** The API of a cluster as an administrator. */
export interface Api {
  /** Makes one call. @param type content type of the body; JSON unless given, as it is for a patch */
  (method: string, path: string, body?: unknown, type?: string): Promise<ApiAnswer>
  /** Passes each line of a response without an end, such as that of a watch, to `onLine` until it is closed. */
  follow(path: string, onLine: (line: string) => void, onEnd?: () => void): { close(): void }
}

/** Calls an API server with a token. */
export function openApi(url: string, authority: string, token: string): Api {
  const agent = new Agent({ ca: readFileSync(authority), keepAlive: true, maxSockets: 64 })
  // Distinguishes these calls from those of a server in the audit log of the API server.
  const identity = { authorization: `Bearer ${token}`, 'user-agent': 'runyard-tests' }
  const call = (method: string, path: string, body?: unknown, type = 'application/json') =>
    new Promise<ApiAnswer>((resolve, reject) => {
      const headers = { ...identity, ...(body === undefined ? {} : { 'content-type': type }) }
      const call = request(new URL(path, url), { method, agent, headers, timeout: 10_000 }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', (block: string) => (text += block))
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, json: parsed(text), text }))
      })
      call.on('error', reject).on('timeout', () => call.destroy(new Error('the API server does not answer')))
      call.end(body === undefined ? undefined : JSON.stringify(body))
    })
  return Object.assign(call, {
    follow(path: string, onLine: (line: string) => void, onEnd: () => void = () => {}) {
      const call = request(new URL(path, url), { agent, headers: identity }, response => {
        let rest = ''
        response.setEncoding('utf8').on('data', (block: string) => {
          const lines = (rest + block).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) onLine(line)
        })
      })
      call.on('error', () => {}).on('close', onEnd)
      call.end()
      return { close: () => void call.destroy() }
    },
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
