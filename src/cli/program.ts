import { Command, CommanderError, Option } from 'commander'
import { systemProblem } from '../disk/access-problem.ts'
import { packageVersion } from '../disk/package-files.ts'
import { surviveClosedOutput } from './closed-output.ts'
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
import { addJobs } from './commands/jobs.ts'
import { addLogs } from './commands/logs.ts'
import { addMasterKey } from './commands/master-key.ts'
import { addModels } from './commands/models.ts'
import { addResources } from './commands/resources.ts'
import { addRun } from './commands/run.ts'
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
  runyard serve --sample             a server with a sample endpoint
  runyard serve --worker ./my-model  run the handler in a folder as an endpoint
  runyard build ./my-model -t mine   build an image of a folder
  runyard deploy vllm --run          an endpoint of a ready worker; --list
  runyard test ./my-model            run the tests of its .runpod/tests.json
  runyard run <endpoint> -i '{}'     run one job and wait for it
  runyard endpoints list             the endpoints; other resources likewise
  runyard jobs list <endpoint>       its jobs, the newest first
  runyard workers list               the workers of all endpoints
  runyard top                        watch endpoints, workers and jobs in place
  runyard status                     which of several servers is active
  runyard usage --last 7             what endpoints have used in 7 days
  runyard why                        why jobs wait, for all endpoints
  runyard why <job>                  why this job waits, or how it ended
  runyard logs <endpoint> --follow   what its newest worker prints
  runyard events                     what happens, while it happens
  runyard doctor                     what is wrong with this machine

The commands talk to the server of the data directory here (./.runyard), or to
the one that --url and --api-key, or RUNYARD_URL and RUNYARD_API_KEY, name.`

/** All commands with their options. */
export function commandLine(): Command {
  const program = new Command('runyard')
    .description('Self-hosted serverless endpoints, compatible with RunPod Serverless clients and workers.')
    .version(packageVersion())
    .configureHelp(HELP_FORMAT)
    .addOption(
      new Option('--color <when>', 'colors: auto (on a terminal, unless NO_COLOR is set)')
        .choices(['auto', 'always', 'never'])
        .default('auto'),
    )
    .hook('preAction', command => setColors(command.opts<{ color: string }>().color))
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('(runyard --help lists the commands)')
    .exitOverride()
  const commands = [
    ...[
      addServe,
      addBuild,
      addDeploy,
      addRun,
      addResources,
      addCatalog,
      addJobs,
      addBatches,
      addWorkers,
      addModels,
      addTop,
      addStatus,
      addUsage,
      addWhatIf,
      addWhy,
      addLogs,
      addEvents,
      addConsole,
      addTest,
    ],
    ...[addDoctor, addBackup, addCheck, addAudit, addClock, addMasterKey, addCompletion],
  ]
  for (const add of commands) add(program)
  return program
}

/** Runs the command of the arguments and sets the exit code. Wrong arguments end with code 64. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const program = commandLine()
  let words: readonly string[] = []
  program.hook('preAction', (_, action) => {
    words = wordsOf(action)
  })
  surviveClosedOutput(() => words)
  try {
    await program.parseAsync(argv as string[])
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** The names of a command and of the groups that it is in, without that of the program. */
function wordsOf(command: Command): string[] {
  return command.parent === null ? [] : [...wordsOf(command.parent), command.name()]
}

/** Colors follow the variables that Node and other programs know. */
function setColors(when: string): void {
  if (when === 'auto') return
  delete process.env.FORCE_COLOR
  delete process.env.NO_COLOR
  process.env[when === 'always' ? 'FORCE_COLOR' : 'NO_COLOR'] = '1'
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage
  if (error instanceof CliError) {
    printText(`runyard: ${error.message}\n`, process.stderr)
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
