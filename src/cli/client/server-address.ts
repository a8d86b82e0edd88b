/** The address of the server as a user gives it, and the problems of a wrong one. */
import { withoutEnd } from '../../core/text-parts.ts'
import { CliError, EXIT } from '../exit.ts'

const EXAMPLE = 'http://127.0.0.1:8080'
/** The first segments of paths that the server has by itself. */
const OWN_SEGMENTS: ReadonlySet<string> = new Set(['v1', 'v2', 'graphql', 'openai', 'ops', 'lb', 'healthz', 'readyz'])

/**
 * The address without a slash at its end.
 * @param source the option or variable that has it
 * @throws CliError with the address that was probably meant
 */
export function serverAddress(text: string, source: string): string {
  const wrong = (problem: string) => new CliError(`${source} ${problem}`, EXIT.usage)
  if (!/^https?:\/\//i.test(text)) {
    const other = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]
    if (other !== undefined) throw wrong(`must begin with http:// or https://, not with ${other}://`)
    const meant = `http://${withoutEnd(text, '/')}`
    const isHost = text.includes('.') || text.includes(':') || /^[a-z]/i.test(text)
    const example = isHost && text !== '' && URL.canParse(meant) ? meant : EXAMPLE
    throw wrong(`must begin with http:// or https://, as ${serverRoot(new URL(example))}`)
  }
  const url = URL.parse(text)
  // Without a host, the first segment of the path would be the host.
  if (url === null || /^https?:\/\/(?:\/|$)/i.test(text)) throw wrong(`must be like ${EXAMPLE}, not '${text}'`)
  if (url.username !== '' || url.password !== '')
    throw wrong(`must have no user and no password; give --api-key, and ${serverRoot(url)} as the address`)
  if (url.search !== '' || url.hash !== '') throw wrong(`must have no query; give ${serverRoot(url)}`)
  const root = serverRoot(url)
  if (root !== withoutEnd(`${url.origin}${url.pathname}`, '/'))
    throw wrong(`names the server, and commands add the path: give ${root}`)
  return withoutEnd(text, '/')
}

/** The address without the paths of the server itself; a proxy may have a path before these. */
function serverRoot({ origin, pathname }: URL): string {
  const segments = pathname.split('/').filter(segment => segment !== '')
  const ownSegment = segments.findIndex(segment => OWN_SEGMENTS.has(segment))
  return [origin, ...(ownSegment === -1 ? segments : segments.slice(0, ownSegment))].join('/')
}

/** The cause of a failed connection to an address, as a sentence. @param error of the system, TLS or HTTP */
export function unreachableText(url: string, error: NodeJS.ErrnoException): string {
  const { host, hostname, protocol } = new URL(url)
  const other = `${protocol === 'https:' ? 'http' : 'https'}://${host}`
  const { code = '', message, name } = error
  const reason = message.split('\n')[0]?.trim() ?? code
  if (protocol === 'https:' && /^(?:EPROTO|ERR_SSL_)/.test(code) && NO_TLS.test(`${code} ${message}`))
    return `the server at ${url} does not speak TLS; give ${other}`
  if (protocol === 'http:' && (name === 'HTTPParserError' || NO_RESPONSE.has(code)))
    return `the program at ${url} does not speak HTTP (${reason}); give ${other} if it speaks TLS, or another --url`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the host ${hostname} of ${url} has no address (${code})`
  if (code === 'ECONNREFUSED') return `nothing listens at ${url} (${code})`
  return `no server answers at ${url} (${reason})`
}

const NO_TLS = /wrong[ _]version[ _]number|packet[ _]length|http[ _]request|unknown[ _]protocol|record[ _]header/i
const NO_RESPONSE: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET'])

/** The problem of a response that is not from Runyard, as a sentence. */
export function strangerText(url: string, { status, headers }: Pick<Response, 'status' | 'headers'>): string {
  const server = headers.get('server')
  const answer = server === null ? `status ${status}` : `status ${status}, server ${server.slice(0, 100)}`
  return status >= 500
    ? `a proxy at ${url} answered in place of Runyard (${answer}); check the server behind it`
    : `the program at ${url} is not a Runyard server (${answer}); give another --url`
}

/** The target of a redirect, as a sentence; null where it is the same address. */
export function redirectText(url: string, path: string, { headers }: Pick<Response, 'headers'>): string | null {
  const location = URL.parse(headers.get('location') ?? '', url)?.href
  if (location === undefined) return null
  const meant = location.endsWith(path) ? location.slice(0, -path.length) : location
  return `${url} redirects to ${location}; give --url ${meant}`
}
