/** The files of the console's page. */
import { hash } from 'node:crypto'
import { AppError } from '../../core/errors.ts'
import type { ConsoleFile, ConsoleFiles } from '../../ports/console-files.ts'
import { isCachedTag } from '../entity-tag.ts'
import { formsResponse } from '../static-page.ts'

const INDEX = '/index.html'

const tags = new WeakMap<ConsoleFile, string>()

/**
 * The file at a path. The tabs of the page have paths of their own, at which the page itself is answered.
 * @throws AppError `not_found` and `method_not_allowed`
 */
export async function fileAnswer(files: ConsoleFiles | null, request: Request, pathname: string): Promise<Response> {
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
