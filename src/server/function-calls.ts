/** The calls of functions of apps, from networks in which nothing else of this machine exists. */
import type { IncomingMessage } from 'node:http'
import { TASKS_PATH } from '../core/endpoints/task.ts'
import { WORKER_TOKEN } from '../core/workers/worker.ts'
import type { HostRefusal } from './hosts.ts'

const REFUSAL: HostRefusal = {
  status: 403,
  error: 'functions of an app call this server from here with the token of their worker alone',
}

/**
 * The reason to refuse a call that has no token of a worker; null for the others. So a worker with the key of a person
 * reaches no more than its app. The program of a task asks for its own token.
 */
export function functionCallProblem({
  url = '',
  headers,
}: Pick<IncomingMessage, 'url' | 'headers'>): HostRefusal | null {
  const token = (headers.authorization ?? '').replace(/^bearer /i, '')
  return token.startsWith(WORKER_TOKEN) || url.startsWith(TASKS_PATH) ? null : REFUSAL
}
