/** The calls of functions of apps, from networks in which nothing else of this machine exists. */
import type { IncomingMessage } from 'node:http'
import { TASKS_PATH } from '../core/endpoints/task.ts'
import { withSingleSlashes } from '../core/request-head.ts'
import { WORKER_TOKEN } from '../core/workers/worker.ts'
import { presentedKeys } from '../gateway/entrance/credentials.ts'
import type { HostRefusal } from './hosts.ts'

const REFUSAL: HostRefusal = {
  status: 403,
  error: 'functions of an app call this server from here with the token of their worker alone',
}

/**
 * The reason to refuse a call that has another key than the token of a worker, or none; null for the others. So a
 * worker with the key of a person reaches no more than its app. The program of a task asks for its own token.
 */
export function functionCallProblem({
  url = '',
  rawHeaders,
}: Pick<IncomingMessage, 'url' | 'rawHeaders'>): HostRefusal | null {
  const keys = presentedKeys({ path: url, rawHeaders })
  const isOfWorker = keys.length > 0 && keys.every(key => key.startsWith(WORKER_TOKEN))
  return isOfWorker || isOfTask(url) ? null : REFUSAL
}

/** True for the path of a task, also as surfaces read it: theirs have no `..` any more. */
function isOfTask(url: string): boolean {
  const path = URL.parse(withSingleSlashes(url), 'http://task')?.pathname ?? ''
  return url.startsWith(TASKS_PATH) && path.startsWith(TASKS_PATH)
}
