/** Calls of the API server of a cluster. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'

/** A response of the API server. */
export interface ApiAnswer {
  readonly status: number
  /** The body, when it is JSON. */
  readonly json: unknown
  readonly text: string
}

/** Makes one call. @param type of the body, where it is not JSON: that of a patch */
export type Api = (method: string, path: string, body?: unknown, type?: string) => Promise<ApiAnswer>

/** Calls an API server with a token. */
export function openApi(url: string, authority: string, token: string): Api {
  const agent = new Agent({ ca: readFileSync(authority), keepAlive: true, maxSockets: 32 })
  return (method, path, body, type = 'application/json') =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) }
      const call = request(new URL(path, url), { method, agent, headers, timeout: 10_000 }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', (block: string) => (text += block))
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, json: parsed(text), text }))
      })
      call.on('error', reject).on('timeout', () => call.destroy(new Error('the API server does not answer')))
      call.end(body === undefined ? undefined : JSON.stringify(body))
    })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
