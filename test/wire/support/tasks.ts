/** Tasks of RunPod's SDK 2.0 on a server that speaks HTTPS, without the SDK. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type SecureAnswer, secureCall } from './https.ts'
import type { Server } from './server.ts'

/** A task that was started. */
export interface StartedTask {
  /** Its short id. */
  readonly id: string
  /** Calls its program. @param bearer its token unless given */
  ask(path: string, body?: unknown, bearer?: string): Promise<SecureAnswer>
  /** Ends it. @returns the whole response of GraphQL */
  end(): Promise<unknown>
}

const TOKEN = 'the-token-of-this-task-and-of-no-other'
const DEPLOY = 'mutation ($input: deployCpuPodInput!) { deployCpuPod(input: $input) { id } }'
const END = 'mutation ($id: String!) { podTerminate(input: { podId: $id }) }'

/** The certificate of a server that made its own. */
export function authorityOf(server: Server): string {
  return readFileSync(join(server.dataDir, 'tls', 'certificate.pem'), 'utf8')
}

/** The address of the program of a task. */
export function programPath(id: string, below: string): string {
  return `/tasks/${id}-8080.proxy.runpod.net${below}`
}

/** Starts a task. @param fields of the input: its image, and what it has besides a name, a token and vCPUs */
export async function startTask(
  server: Server,
  { env = {}, ...fields }: { readonly env?: Readonly<Record<string, string>>; readonly [field: string]: unknown },
): Promise<StartedTask> {
  const ca = authorityOf(server)
  const graphql = async (query: string, variables: object) => {
    const headers = { 'content-type': 'application/json' }
    return JSON.parse((await secureCall(server, '/graphql', { ca, headers, body: { query, variables } })).text)
  }
  const variables = Object.entries({ RUNPOD_TASK_TOKEN: TOKEN, ...env }).map(([key, value]) => ({ key, value }))
  const input = { name: 'task-wire', instanceId: 'cpu3c-1-2', ...fields, env: variables }
  const made = await graphql(DEPLOY, { input })
  if (made.errors !== undefined) throw new Error(JSON.stringify(made.errors))
  const long: string = made.data.deployCpuPod.id
  const [, id] = /\/tasks\/(\w+)$/.exec(long)!
  return {
    id: id!,
    ask: (path, body, bearer = TOKEN) =>
      secureCall(server, programPath(id!, path), {
        ca,
        headers: {
          authorization: `Bearer ${bearer}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body }),
      }),
    end: () => graphql(END, { id: long }),
  }
}

/** Makes a volume of either kind. @param list the last part of the path of its list */
export async function secureVolume(
  server: Server,
  list: string,
  body: object,
): Promise<{ id: string; folder: string }> {
  const headers = { 'content-type': 'application/json' }
  const { text } = await secureCall(server, `/v2/${list}`, { ca: authorityOf(server), headers, body })
  const { id } = JSON.parse(text)
  return { id, folder: join(server.dataDir, 'volumes', id) }
}
