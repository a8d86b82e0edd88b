import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { idOrName, KINDS, type NamedKind } from '../client/kinds.ts'
import { findId } from '../client/names.ts'
import { printValue } from '../client/printing.ts'
import { timeSpanMs } from '../client/time-spans.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

interface KeyOptions extends ConnectionOptions {
  readonly name?: string
  readonly readOnly?: true
  readonly expires?: string
  readonly secrets?: string
}

/** A new key as the server shows it. */
interface CreatedKey {
  readonly id: string
  readonly s3: { readonly endpointUrl: string; readonly accessKeyId: string; readonly secretAccessKey: string }
}

const ABOUT = `
Prints the variables that rp_upload of RunPod's SDK reads. Workers have them
only if you put them into the environment of their endpoint: --secrets stores
the pair as secrets of that name and prints variables that refer to these.`

/** Adds `runyard volumes key` or `runyard global-volumes key`: a pair of keys for the files of a volume. */
export function addVolumeKey(group: Command, kind: NamedKind): void {
  const key = group.command('key').argument('<id>', idOrName(kind))
  withConnection(key.description('create a key for its files over S3, and print the variables that clients need'))
    .option('--name <text>', 'name of the key (default: files of the volume)')
    .option('--read-only', 'may read files, and not change them')
    .option('--expires <time>', 'time until it expires, such as 15m, 12h or 30d')
    .option('--secrets <name>', 'store the pair as the secrets <name>_id and <name>_secret')
    .addHelpText('after', ABOUT)
    .action((given: string, options: KeyOptions) => createPair(kind, given, options))
}

async function createPair(kind: NamedKind, given: string, options: KeyOptions): Promise<void> {
  const { name, readOnly, expires, secrets } = options
  const validMs = expires === undefined ? null : timeSpanMs(expires)
  if (expires !== undefined && validMs === null) {
    throw new CliError(`--expires takes a time such as 15m, 12h or 30d, not '${expires}'`, EXIT.usage)
  }
  const volume = await findId(options, kind, given, '<id>')
  const level = readOnly === true ? 'read' : 'write'
  const body = {
    name: name ?? `files of ${given}`,
    scope: { type: 'restricted', management: 'none', jobs: 'none', files: { [volume]: level } },
    ...(validMs === null ? {} : { expiresAt: new Date(Date.now() + validMs).toISOString() }),
  }
  const { id, s3 } = (await (await ask(options, KINDS.keys.path, { method: 'POST', body })).json()) as CreatedKey
  const values = { BUCKET_ACCESS_KEY_ID: s3.accessKeyId, BUCKET_SECRET_ACCESS_KEY: s3.secretAccessKey }
  const shown = secrets === undefined ? values : await asSecrets(options, id, secrets, values)
  const variables = { BUCKET_ENDPOINT_URL: s3.endpointUrl, ...shown }
  if (wantsJson(options)) printValue(options, { id, volume, ...variables })
  else
    printText(
      Object.entries(variables)
        .map(([variable, value]) => `${variable}=${value}\n`)
        .join(''),
    )
}

/** Stores a pair as secrets. @returns the variables that refer to them; a pair that cannot be stored is revoked */
async function asSecrets<Values extends { BUCKET_ACCESS_KEY_ID: string; BUCKET_SECRET_ACCESS_KEY: string }>(
  options: ConnectionOptions,
  key: string,
  name: string,
  values: Values,
): Promise<Values> {
  const names = { BUCKET_ACCESS_KEY_ID: `${name}_id`, BUCKET_SECRET_ACCESS_KEY: `${name}_secret` }
  const stored: string[] = []
  try {
    for (const [variable, secret] of Object.entries(names)) {
      const body = { name: secret, value: values[variable as keyof typeof names], description: `key ${key}` }
      const answer = await ask(options, KINDS.secrets.path, { method: 'POST', body })
      stored.push(((await answer.json()) as { id: string }).id)
    }
  } catch (error) {
    // The key first: if the secrets stay, they open nothing.
    await ask(options, `${KINDS.keys.path}/${key}`, { method: 'DELETE' })
    for (const id of stored) await ask(options, `${KINDS.secrets.path}/${id}`, { method: 'DELETE' })
    throw error
  }
  const references = Object.entries(names).map(([variable, secret]) => [variable, `{{ RUNPOD_SECRET_${secret} }}`])
  return Object.fromEntries(references) as Values
}
