/** The origin of the console: its page, its sessions, and all APIs for signed-in users. */

import { hash } from 'node:crypto'
import { type Caller, mayManage } from '../../core/accounts/permission.ts'
import { consoleCookie, isConsoleCookieAt, isSecret, MARK_LENGTH, SESSION_MS } from '../../core/accounts/session.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { ConsoleFile, ConsoleFiles } from '../../ports/console-files.ts'
import type { Credential, OpenSession } from '../../services/accounts/sessions.ts'
import { balancedUrl } from '../addresses.ts'
import { audited, auditOrigin } from '../audited.ts'
import { isCachedTag } from '../entity-tag.ts'
import type { ApiParts } from '../parts.ts'
import { formsResponse } from '../static-page.ts'
import {
  admitTo,
  authorizationKey,
  jsonText,
  refusalHeaders,
  reportFailure,
  type Surface,
  type SurfaceCall,
  type SurfaceEnv,
} from '../surface.ts'
import { requireOwnPage, TOKEN_HEADER } from './origin.ts'

const BODY_BYTES = 4_096

/**
 * The responses at the console's origin.
 * @param api the surface of the path; null if the console's page may not call it
 */
export async function consoleAnswer(
  parts: ApiParts,
  { request, env }: SurfaceCall,
  api: Surface | null,
): Promise<Response> {
  const response = await answerOr(parts, { request, env }, () => atOrigin(parts, request, env, api))
  protect(response)
  return response
}

/** The console's routes at the other hosts of the server: links that sign in. */
export function consoleSurface(parts: ApiParts): Surface {
  return (request, env) => answerOr(parts, { request, env }, () => newLink(parts, request, env))
}

async function answerOr(
  { ports: { emit } }: ApiParts,
  call: SurfaceCall,
  answer: () => Promise<Response>,
): Promise<Response> {
  try {
    return await answer()
  } catch (thrown) {
    reportFailure(emit, 'console', call, thrown)
    const error = toAppError(thrown)
    return jsonText(JSON.stringify({ error: error.message }), error.status, refusalHeaders(error))
  }
}

async function atOrigin(parts: ApiParts, request: Request, env: SurfaceEnv, api: Surface | null): Promise<Response> {
  const url = ownUrl(parts)
  const { pathname } = env.route.url
  const isSession = pathname === '/console/session'
  const isLink = pathname === '/console/session/link'
  if (api !== null || isSession || isLink) requireOwnPage(request, url)
  if (isSession) return sessionAnswer(parts, request, env, url)
  if (isLink) return linkAnswer(parts, request, env)
  if (api !== null) {
    const { session } = await signedIn(parts, request, url)
    const answer = await api(request, { ...env, session })
    answer.headers.set('cache-control', 'no-store')
    return answer
  }
  // Foreign code and workers have no place here.
  if (/^\/+(?:lb|console|v\d+)(?:\/|$)/.test(pathname) || request.headers.has('upgrade')) {
    throw new AppError('not_found', `there is nothing at ${pathname}`)
  }
  return fileAnswer(parts.ports.consoleFiles, request, pathname)
}

/** The origin of the console. @throws AppError if the server has no console */
function ownUrl({ addresses: { consoleUrl = null } }: ApiParts): string {
  if (consoleUrl === null) throw new AppError('not_found', 'this server has no console; see --console-url')
  return consoleUrl
}

function sessionAnswer(parts: ApiParts, request: Request, env: SurfaceEnv, url: string): Promise<Response> {
  switch (request.method) {
    case 'POST':
      return signIn(parts, request, env, url)
    case 'DELETE':
      return signOut(parts, request, env, url)
    case 'GET':
      return signedIn(parts, request, url).then(async ({ session }) => {
        admitTo(env, session.caller.owner)
        return jsonText(JSON.stringify(await sessionView(parts, session)))
      })
    default: {
      const allow = ['GET', 'POST', 'DELETE']
      const message = `this path takes ${allow.join(', ')}, not ${request.method}`
      return Promise.reject(new AppError('method_not_allowed', message, { allow }))
    }
  }
}

/** The account and the key that a link signs in with, for the page that asks first. The link stays good. */
async function linkAnswer(parts: ApiParts, request: Request, env: SurfaceEnv): Promise<Response> {
  if (request.method !== 'POST') {
    throw new AppError('method_not_allowed', `this path takes POST, not ${request.method}`, { allow: ['POST'] })
  }
  const credential = await readCredential(parts, request, env)
  if (!('link' in credential)) throw new AppError('invalid', 'the body must be {"link": "<code>"}')
  const { caller, expiresAtMs } = await parts.sessions.offer(credential.link, env.address ?? (() => ''))
  admitTo(env, caller.owner)
  const { account, key } = await readNames(parts, caller)
  const { keyId } = caller
  return jsonText(JSON.stringify({ account, keyId, keyName: key, expiresAt: new Date(expiresAtMs).toISOString() }))
}

/** @throws AppError `forbidden` and `invalid` */
async function readCredential({ room }: ApiParts, request: Request, env: SurfaceEnv): Promise<Credential> {
  const { headers } = request
  if (!headers.has(TOKEN_HEADER)) throw new AppError('forbidden', `signing in needs the header ${TOKEN_HEADER}`)
  if (!/^application\/json\s*(?:;|$)/i.test(headers.get('content-type') ?? '')) {
    throw new AppError('invalid', 'signing in needs a body of the type application/json')
  }
  return room.of(null).body({ request, env }, BODY_BYTES, async body => credentialFromBody(body))
}

async function signIn(parts: ApiParts, request: Request, env: SurfaceEnv, url: string): Promise<Response> {
  const credential = await readCredential(parts, request, env)
  const { halves, caller, expiresAtMs } = await parts.sessions.open(credential, env.address ?? (() => ''))
  admitTo(env, caller.owner)
  const by = 'key' in credential ? 'key' : 'link'
  // Nobody has the new session yet: if its entry fails, nobody gets it.
  const { audit } = parts
  const origin = auditOrigin(caller, env)
  await audit.note({ surface: 'console', operation: 'signIn', origin, object: null, detail: { by, session: true } })
  const view = await sessionView(parts, { caller, expiresAtMs })
  const body = JSON.stringify({ token: halves.token, ...view })
  const response = jsonText(body, 200, { 'set-cookie': setCookie(url, halves.token, halves.cookie) })
  // The page has one token, so that the cookies of earlier sessions are useless.
  for (const removed of removedCookies(request, url)) response.headers.append('set-cookie', removed)
  return response
}

/** @throws AppError `invalid` */
function credentialFromBody(body: unknown): Credential {
  const { key, link, ...others } = Object(typeof body === 'string' ? parsed(body) : null) as Record<string, unknown>
  const given = key === undefined ? link : key
  const isOne = typeof given === 'string' && given.trim() !== '' && (key === undefined || link === undefined)
  if (!isOne || Object.keys(others).length > 0) {
    throw new AppError('invalid', 'the body must be {"key": "<API key>"} or {"link": "<code>"}')
  }
  const text = given.trim()
  return key === undefined ? { link: text } : { key: text }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new AppError('invalid', 'the body is not valid JSON')
  }
}

/** Removes the cookies in any case: without the other half they are useless. */
async function signOut(parts: ApiParts, request: Request, env: SurfaceEnv, url: string): Promise<Response> {
  const token = request.headers.get(TOKEN_HEADER) ?? ''
  for (const cookie of sessionCookies(request, url, token)) {
    const halves = { cookie, token }
    const session = await parts.sessions.find(halves).catch(() => null)
    const close = () => parts.sessions.close(halves)
    if (session === null) await close()
    else {
      const entry = { surface: 'console', operation: 'signOut', caller: session.caller, object: null } as const
      await audited(parts, { ...entry, env: { ...env, session } }, close)
    }
  }
  const response = new Response(null, { status: 204 })
  for (const removed of removedCookies(request, url)) response.headers.append('set-cookie', removed)
  return response
}

/** @throws AppError `unauthorized` unless the request has both halves of one session */
async function signedIn(
  { sessions }: ApiParts,
  request: Request,
  url: string,
): Promise<{ readonly session: OpenSession }> {
  const token = request.headers.get(TOKEN_HEADER) ?? ''
  let refusal: unknown = new AppError('unauthorized', 'you are not signed in; sign in to the console first')
  for (const cookie of sessionCookies(request, url, token)) {
    try {
      return { session: await sessions.find({ cookie, token }) }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
      refusal = error
    }
  }
  throw refusal
}

/** The signed-in user, and the account and server. */
async function sessionView(
  parts: ApiParts,
  { caller, expiresAtMs }: { readonly caller: Caller; readonly expiresAtMs: number },
): Promise<Readonly<Record<string, unknown>>> {
  const { addresses, version } = parts
  const { keyId, scope, operator } = caller
  const { account, key } = await readNames(parts, caller)
  const { publicUrl, queueUrl } = addresses
  return {
    expiresAt: new Date(expiresAtMs).toISOString(),
    account,
    keyId,
    keyName: key,
    scope,
    operator,
    // A page follows the events from here on, so that it has to read nothing twice.
    lastEventId: mayManage(caller, 'read') ? parts.feed.newestId(caller.owner) : null,
    server: { version, url: publicUrl, queueUrl, lbUrl: balancedUrl(addresses, '{id}' as EndpointId) },
  }
}

/** The account and the name of the key of a caller. */
async function readNames({ ports: { store } }: ApiParts, { owner, keyId }: Caller) {
  const [account, key] = await Promise.all([store.accounts.find(owner), store.keys.find(keyId)])
  return { account: { id: owner, name: account?.name ?? owner }, key: key?.name ?? '' }
}

async function newLink(parts: ApiParts, request: Request, env: SurfaceEnv): Promise<Response> {
  const { pathname } = env.route.url
  const { consoleUrl: url = null } = parts.addresses
  if (pathname !== '/console/link') {
    const where = url === null ? '' : `; the console is at ${url}`
    throw new AppError('not_found', `there is nothing at ${pathname}${where}`)
  }
  const caller = await parts.access.authenticate(authorizationKey(request), env.address)
  admitTo(env, caller.owner)
  if (request.method !== 'POST') {
    throw new AppError('method_not_allowed', `this path takes POST, not ${request.method}`, { allow: ['POST'] })
  }
  const origin = ownUrl(parts)
  const entry = { surface: 'console', operation: 'makeSignInLink', caller, env, object: null } as const
  const { code, expiresAtMs } = await audited(parts, entry, () => parts.sessions.link(caller))
  return jsonText(JSON.stringify({ url: linkTo(origin, code), expiresAt: new Date(expiresAtMs).toISOString() }))
}

/** The address that signs in. Browsers send no fragment to servers, so the code is in no log and no Referer. */
export function linkTo(url: string, code: string): string {
  return `${url}/#link=${code}`
}

/** Content Security Policy of all responses from the console's origin. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Outputs of workers are shown from the memory of the page.
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "connect-src 'self'",
  "font-src 'self'",
  "manifest-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS: readonly (readonly [string, string])[] = [
  ['content-security-policy', POLICY],
  ['x-frame-options', 'DENY'],
  ['x-content-type-options', 'nosniff'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
  ['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
]

/** Replaces the security headers that a surface set for its own pages. */
function protect({ headers }: Response): void {
  for (const [name, value] of HEADERS) headers.set(name, value)
}

const INDEX = '/index.html'

const tags = new WeakMap<ConsoleFile, string>()

/**
 * The file at a path. The tabs of the page have paths of their own, at which the page itself is answered.
 * @throws AppError `not_found` and `method_not_allowed`
 */
async function fileAnswer(files: ConsoleFiles | null, request: Request, pathname: string): Promise<Response> {
  const { method } = request
  if (method !== 'GET' && method !== 'HEAD') {
    throw new AppError('method_not_allowed', `this path takes GET, not ${method}`, { allow: ['GET', 'HEAD'] })
  }
  if (files === null) throw new AppError('not_found', 'the console is not part of this build')
  const isTab = !pathname.slice(pathname.lastIndexOf('/')).includes('.')
  const file = (await files.find(pathname)) ?? (isTab ? await files.find(INDEX) : null)
  if (file === null) throw new AppError('not_found', `the console has no file ${pathname}`)
  const etag = fileTag(file)
  const kept = {
    etag,
    'content-type': file.contentType,
    'cache-control': file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
  }
  if (isCachedTag(etag, request)) return new Response(null, { status: 304, headers: kept })
  return formsResponse(request, file, kept)
}

/** Weak, as both forms of a file have it. */
function fileTag(file: ConsoleFile): string {
  const known = tags.get(file) ?? `W/"${hash('sha256', file.plain, 'base64url').slice(0, 22)}"`
  tags.set(file, known)
  return known
}

/**
 * Limit of cookies of one name in a request that are tried: a page of another port that has seen the name can add its
 * own, for longer paths, which come first.
 */
const MAX_TRIED = 64
/** Limit of cookies of earlier sessions that one response removes. */
const MAX_REMOVED = 20

/** The cookie values of the session with a token at an origin; usually one, and empty for a text that is no token. */
function sessionCookies(request: Request, origin: string, token: string): string[] {
  if (!isSecret(token)) return []
  const name = consoleCookie(origin, cookieMark(token))
  const values = readCookies(request).filter(cookie => cookie.name === name && isSecret(cookie.value))
  return [...new Set(values.map(({ value }) => value))].slice(0, MAX_TRIED)
}

/** The value of `Set-Cookie` that keeps it for as long as the session. */
function setCookie(origin: string, token: string, value: string): string {
  return cookieText(origin, consoleCookie(origin, cookieMark(token)), value)
}

/** The values of `Set-Cookie` that remove the cookies of a request which are of sessions at an origin. */
function removedCookies(request: Request, origin: string): string[] {
  const names = readCookies(request).flatMap(({ name }) => (isConsoleCookieAt(origin, name) ? [name] : []))
  return [...new Set(names)].slice(0, MAX_REMOVED).map(name => cookieText(origin, name, ''))
}

function cookieText(origin: string, name: string, value: string): string {
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  const age = value === '' ? 0 : SESSION_MS / 1_000
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure}`
}

function readCookies({ headers }: Request): { readonly name: string; readonly value: string }[] {
  return (headers.get('cookie') ?? '').split(';').map(pair => {
    const [name = '', ...value] = pair.trim().split('=')
    return { name, value: value.join('=') }
  })
}

function cookieMark(token: string): string {
  return hash('sha256', `cookie of ${token}`, 'base64url').slice(0, MARK_LENGTH)
}
