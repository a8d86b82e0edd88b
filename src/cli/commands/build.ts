import { resolve } from 'node:path'
import type { Command } from 'commander'
import { AppError } from '../../core/errors.ts'
import { accessProblem } from '../../disk/access-problem.ts'
import { wantsJson } from '../client/connection.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

interface BuildCommandOptions {
  readonly tag: string
  readonly file: string
  readonly buildArg?: readonly string[]
  readonly cache: boolean
  readonly pull?: boolean
  readonly json?: boolean
}

/** `runyard build <folder> -t <name>`: builds an image that endpoints can run. */
export function addBuild(program: Command): void {
  program
    .command('build')
    .argument('<folder>', 'a folder with a Dockerfile')
    .requiredOption('-t, --tag <name>', 'name of the image, such as my-model:1')
    .option('-f, --file <path>', 'Dockerfile within the folder', 'Dockerfile')
    .option(
      '--build-arg <name=value>',
      'value of an ARG of the Dockerfile; may be repeated',
      (value, all: string[] = []) => [...all, value],
    )
    .option('--no-cache', 'build every step again')
    .option('--pull', 'look for a newer base image')
    .option('--json', 'print one line of JSON with the id of the image')
    .summary('build an image of a folder')
    .description('build an image of a folder on the container engine of this machine')
    .action(build)
}

async function build(folder: string, options: BuildCommandOptions): Promise<void> {
  const { tag, file, cache, pull = false } = options
  const args = argumentsIn(options.buildArg ?? [])
  const closed = accessProblem(folder, 'read')
  if (closed !== null) throw new CliError(`the folder cannot be built: ${closed}`, EXIT.refused)
  const [{ buildImage }, { connectEngine }, { missingArchive }] = await Promise.all([
    import('../../drivers/docker/images/build.ts'),
    import('../../drivers/docker/engine/connection.ts'),
    import('../../main/folders/worker-archive.ts'),
  ])
  const connection = connectEngine('auto', process.env, 0)
  if (connection === null) throw new CliError(NO_ENGINE, EXIT.unavailable)
  const onOutput = (text: string) => void printText(text, process.stderr)
  try {
    const id = await buildImage({
      engine: connection.engine,
      folder: resolve(folder),
      name: tag,
      dockerfile: file,
      args,
      added: await missingArchive(resolve(folder)),
      pull,
      noCache: !cache,
      onOutput,
    })
    printText(wantsJson(options) ? `${JSON.stringify({ name: tag, id })}\n` : `Built ${tag} (${id})\n`)
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown
    const { message, failures, code } = thrown
    const where =
      code === 'unavailable' ? [`it was looked for at ${connection.address}; DOCKER_HOST names another`] : []
    const lines = [message, ...[...failures, ...where].map(line => `  ${line}`)]
    throw new CliError(lines.join('\n'), EXIT_OF[code] ?? EXIT.data)
  }
}

const NO_ENGINE = 'there is no container engine on this machine; install Docker or Podman, or set DOCKER_HOST'

const EXIT_OF: Readonly<Record<string, number>> = { not_found: EXIT.notFound, unavailable: EXIT.unavailable }

function argumentsIn(texts: readonly string[]): Record<string, string> {
  const wrong = texts.filter(text => !/^[A-Za-z_]\w*=/.test(text))
  if (wrong.length > 0) throw new CliError(`--build-arg takes name=value, not '${wrong.join("', '")}'`, EXIT.usage)
  return Object.fromEntries(texts.map(text => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]))
}
