import { type Command, CommanderError, Option } from 'commander'
import { systemProblem } from '../disk/access-problem.ts'
import { packageVersion } from '../disk/package-files.ts'
import { CliCommand, commandPath, UsageError } from './cli-command.ts'
import { choicesFor } from './client/choices.ts'
import { messageFor, RefusedRequest } from './client/option-fields.ts'
import { addAlerts } from './commands/alerts.ts'
import { addApps } from './commands/apps.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup } from './commands/backup.ts'
import { addBatches } from './commands/batches.ts'
import { addBuild } from './commands/build.ts'
import { addCatalog } from './commands/catalog.ts'
import { addCheck } from './commands/check.ts'
import { addClock } from './commands/clock.ts'
import { addCompletion } from './commands/completion.ts'
import { addConsole } from './commands/console.ts'
import { addDeploy } from './commands/deploy.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEvents } from './commands/events.ts'
import { addInit } from './commands/init.ts'
import { addJobs } from './commands/jobs.ts'
import { addLogs } from './commands/logs.ts'
import { addMasterKey } from './commands/master-key.ts'
import { addModels } from './commands/models.ts'
import { addResources } from './commands/resources.ts'
import { addRun } from './commands/run.ts'
import { addSdk } from './commands/sdk.ts'
import { addServe } from './commands/serve.ts'
import { addStatus } from './commands/status.ts'
import { addTest } from './commands/test.ts'
import { addTop } from './commands/top.ts'
import { addUsage } from './commands/usage.ts'
import { addWhatIf } from './commands/what-if.ts'
import { addWhy } from './commands/why.ts'
import { addWorkers } from './commands/workers.ts'
import { CliError, EXIT } from './exit.ts'
import { HELP_FORMAT } from './terminal/help-format.ts'
import { printText } from './terminal/terminal-text.ts'

const EXAMPLES = `
Examples:
  runyard init my-model                a folder with a handler to start from
  runyard serve --worker ./my-model    the handler in a folder as an endpoint
  runyard run my-model -i '{"n": 1}'   run one job and wait for it
  runyard jobs list my-model --failed  its failed jobs, the newest first
  runyard logs my-model --follow       what its newest worker prints
  runyard why                          why jobs wait, and what to do

Commands connect to the server of the data directory here (./.runyard), or to
the one of --url and --api-key, or of RUNYARD_URL and RUNYARD_API_KEY.`

/** The groups of the help, with the functions that add their commands. */
const COMMANDS: readonly (readonly [heading: string, adds: readonly ((program: Command) => void)[]])[] = [
  ['Start:', [addInit, addServe, addDeploy, addBuild, addTest, addSdk]],
  ['Jobs:', [addRun, addJobs, addBatches]],
  ['Resources:', [addResources, addApps, addCatalog, addModels, addWorkers]],
  ['Observation:', [addTop, addWhy, addLogs, addEvents, addAlerts, addUsage, addWhatIf, addConsole]],
  [
    'The server and its machine:',
    [addDoctor, addStatus, addBackup, addCheck, addAudit, addClock, addMasterKey, addCompletion],
  ],
]

/** All commands with their options. */
export function commandLine(): Command {
  const program = new CliCommand('runyard')
    .description('Self-hosted serverless endpoints, compatible with RunPod Serverless clients and workers.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp(HELP_FORMAT)
    .addOption(
      new Option('--color <when>', 'auto (on a terminal, unless NO_COLOR is set), always, never')
        .choices(['auto', 'always', 'never'])
        .default('auto'),
    )
    .hook('preAction', command => setColors(command.opts<{ color: string }>().color))
    .addHelpText('after', EXAMPLES)
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
  for (const [heading, adds] of COMMANDS) {
    program.commandsGroup(heading)
    for (const add of adds) add(program)
  }
  return program
}

/** Runs the command of the arguments and sets the exit code. Wrong arguments end with code 64. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const running: { command: Command | null } = { command: null }
  surviveClosedOutput(() => (running.command === null ? [] : commandPath(running.command)))
  const code = await execute(argv, running)
  if (code !== 0) process.exitCode = code
}

/**
 * Runs the command of the arguments.
 * @param running gets the command before it runs
 * @returns the exit code of a failed command, else 0; a command that ends with another code sets that of the process
 */
export async function execute(argv: readonly string[], running: { command: Command | null }): Promise<number> {
  const program = commandLine()
  program.hook('preAction', (_, action) => {
    running.command = action
  })
  try {
    await program.parseAsync(argv as string[])
    return 0
  } catch (error) {
    return report(error, running.command)
  }
}

/** Colors follow the variables that Node and other programs know. */
function setColors(when: string): void {
  if (when === 'auto') return
  delete process.env.FORCE_COLOR
  delete process.env.NO_COLOR
  process.env[when === 'always' ? 'FORCE_COLOR' : 'NO_COLOR'] = '1'
}

/** @param command the failed command; null where the arguments name no command */
async function report(error: unknown, command: Command | null): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage
  if (error instanceof CliError) {
    const { message } = error
    const sentence = error instanceof RefusedRequest && command !== null ? messageFor(command, error) : message
    printText(`runyard: ${sentence}\n`, process.stderr)
    if (error instanceof UsageError) printText(await choicesFor(error), process.stderr)
    return error.exitCode
  }
  const ofSystem = systemProblem(error)
  if (ofSystem !== null) {
    printText(`runyard: ${ofSystem}\n`, process.stderr)
    return EXIT.unavailable
  }
  printText(`runyard: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`, process.stderr)
  return EXIT.internal
}

/** Groups and commands that only show things. Without a reader there is nothing left for them to do. */
const READERS = new Set([
  ...[
    'audit',
    'catalog',
    'completion',
    'doctor',
    'events',
    'help',
    'logs',
    'sdk',
    'status',
    'top',
    'usage',
    'whatif',
    'why',
  ],
])
/** Verbs of other groups that only show things. */
const READING_VERBS = new Set(['list', 'get', 'builds', 'keys', 'releases', 'requests', 'story', 'webhooks'])

/** True when a command changes nothing. @param words its name, and that of its verb */
function onlyShows([name = '', verb = '']: readonly string[]): boolean {
  return READERS.has(name) || READING_VERBS.has(verb)
}

/**
 * Keeps the end of a reader, such as of `head`, or of `tee` at Ctrl-C, from ending the process: a server goes on, and
 * so does a command that changes something, to its end and with its exit code. A command that only shows things ends
 * at once, with the code that it has by then.
 * @param words the name of the running command, and of its verb; asked when a stream cannot be written
 */
function surviveClosedOutput(words: () => readonly string[]): void {
  let isReported = false
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    const [name] = words()
    if (code !== 'EPIPE' && name !== 'serve' && !isReported) {
      isReported = true
      process.exitCode = EXIT.output
      process.stderr.write(`runyard: standard output cannot be written: ${message}\n`)
    }
    if (onlyShows(words())) process.exit(process.exitCode ?? 0)
  })
}
