import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { shellWord } from '../../core/shell-word.ts'
import {
  ask,
  type ConnectionOptions,
  connectionKey,
  trustedFile,
  wantsJson,
  withConnection,
} from '../client/connection.ts'
import { KINDS } from '../client/kinds.ts'
import { findId } from '../client/names.ts'
import { printText } from '../terminal/terminal-text.ts'

/** Options of `runyard sdk env`. */
interface EnvOptions extends ConnectionOptions {
  readonly endpoint?: string
}

/** Variables that name files on the machine of the server. */
const FILES = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS']

/** Names of variables that the server may choose. */
const SAFE_NAME = /^RUNPOD_[A-Z0-9_]{1,40}$/

/** `runyard sdk env`: the variables by which clients of RunPod find this server. */
export function addSdk(program: Command): void {
  const group = program.command('sdk').description("variables for RunPod's SDKs and tools")
  withConnection(group.command('env'))
    .description('print variables for a shell: eval "$(runyard sdk env)"')
    .option('-e, --endpoint <name>', 'the only endpoint that OpenAI clients call, by name or id')
    .action(env)
}

async function env(options: EnvOptions): Promise<void> {
  const { variables } = (await (await ask(options, '/ops/client')).json()) as {
    readonly variables: Readonly<Record<string, string>>
  }
  const key = connectionKey(options)
  // A shell runs what is printed, and the names come from whoever answers at the address.
  const safe = Object.fromEntries(Object.entries(variables).filter(([name]) => SAFE_NAME.test(name)))
  const all = { RUNPOD_API_KEY: key, ...safe, ...ownFiles(options, variables) }
  const base = await openAiBase(options, variables.RUNPOD_ENDPOINT_BASE_URL ?? '')
  const lists = Object.entries({ ...all, OPENAI_BASE_URL: base, OPENAI_API_KEY: key }).filter(
    ([, value]) => value !== null,
  )
  printText(wantsJson(options) ? `${JSON.stringify(Object.fromEntries(lists))}\n` : exportLines(lists))
}

/** A file of the server's machine counts where it is; elsewhere the file of `--ca-file` takes its place. */
function ownFiles(options: EnvOptions, variables: Readonly<Record<string, string>>): Record<string, string | null> {
  const named = FILES.flatMap(name => {
    const file = variables[name]
    return file === undefined ? [] : ([[name, file]] as const)
  })
  const given = trustedFile(options)
  return Object.fromEntries(
    named.map(([name, file]) => [name, existsSync(file) ? file : given === null ? null : resolve(given)]),
  )
}

/** The address for OpenAI clients: of all endpoints, which they name as models, or of the one that is given. */
async function openAiBase({ endpoint, ...options }: EnvOptions, jobs: string): Promise<string> {
  if (endpoint === undefined) return `${jobs.replace(/\/v2$/, '')}/openai/v1`
  const id = await findId(options, KINDS.endpoints, endpoint, '--endpoint')
  return `${jobs}/${encodeURIComponent(id)}/openai/v1`
}

/** Commands of a shell, which begin with what is missing. */
function exportLines(variables: readonly (readonly [name: string, value: string | null])[]): string {
  const [, jobs = ''] = variables.find(([name]) => name === 'RUNPOD_ENDPOINT_BASE_URL') ?? []
  const note = jobs?.startsWith('https:') === true ? [] : [NO_TLS]
  const lines = variables.map(([name, value]) => `export ${name}=${shellWord(value ?? '')}`)
  return `${[...note, ...lines].join('\n')}\n`
}

const NO_TLS = '# @app.api of RunPod SDK 2.0 needs HTTPS: start the server with --tls-self-signed'
