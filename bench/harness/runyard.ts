/** Servers of Runyard for benchmarks. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Bench } from './sides.ts'

/** A server that answers. */
export interface RunyardServer {
  readonly url: string
  readonly port: number
  readonly key: string
  readonly pid: number
}

let count = 0

/** Starts a server. @param database address of a PostgreSQL; null for the embedded database */
export async function startRunyard(bench: Bench, database: string | null): Promise<RunyardServer> {
  count += 1
  const folder = `${bench.folder}/runyard-${count}`
  const args = ['serve', '--port', '0', '--json', '--log-level', 'warn', '--data-dir', folder, '--process-root', '.']
  const { line } = await bench.start('./bin/runyard', args, database === null ? {} : { RUNYARD_DATABASE: database })
  const { url, apiKeyFile, pid } = JSON.parse(line) as { url: string; apiKeyFile: string; pid: number }
  return { url, port: Number(new URL(url).port), key: readFileSync(apiKeyFile, 'utf8').trim(), pid }
}

/** Makes an endpoint of silent workers. @returns its id */
export async function makeEndpoint(server: RunyardServer, workers: { readonly workersMax: number }): Promise<string> {
  const templateId = await mutate(
    server,
    'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }',
    {
      name: 'bench',
      imageName: `dir:${resolve('test/wire/fixtures/silent-worker')}`,
      dockerArgs: '',
      containerDiskInGb: 1,
      volumeInGb: 0,
      isServerless: true,
      env: [],
    },
  )
  return mutate(server, 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', {
    name: 'bench',
    templateId,
    instanceIds: ['cpu3g-2-8'],
    workersMin: 0,
    ...workers,
  })
}

async function mutate({ url, key }: RunyardServer, query: string, input: object): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ query, variables: { input } })
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body })
  const { data, errors } = (await response.json()) as { data?: Record<string, { id: string }>; errors?: object }
  if (errors !== undefined || data === undefined) throw new Error(JSON.stringify(errors))
  return Object.values(data)[0]!.id
}
