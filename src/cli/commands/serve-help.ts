/** The help of `serve`: the options that most servers need, on one screen; all of them with `--help-all`. */
import { type Command, CommanderError, Help, Option } from 'commander'
import { HELP_FORMAT } from '../terminal/help-format.ts'

/** The options of the short help under its headings, each with its effect on one line. */
const SHORT: readonly (readonly [heading: string, options: Readonly<Record<string, string>>])[] = [
  [
    'What runs:',
    {
      '--worker': 'the handler in this folder; again for more',
      '--lb': 'the server in this folder, for requests of its own',
      '--sample': 'a sample handler, as the endpoint hello-node',
      '--container': 'run the folders in containers of their Dockerfiles',
      '--setup': 'install the packages that the folders list',
      '--watch': 'replace workers when a file of their folder changes',
      '--gpu': 'GPUs of the folders (default: one, if there is one)',
      '--max-workers': 'workers at most (default: 64, and 3 of a folder)',
    },
  ],
  [
    'Server:',
    {
      '--port': 'port to listen on; 0 for a free one (default: 8080)',
      '--host': 'address to listen on (default: 127.0.0.1)',
      '--public-url': 'address in responses, where a proxy is in front',
      '--data-dir': 'database, keys and logs (default: ./.runyard)',
      '--database': 'PostgreSQL in place of a file in the data directory',
      '--cors-origin': 'web pages that may call endpoints; again for more',
      '--backup-folder': 'folder of the backups of each night',
      '--log-level': 'debug, info, warn, error or silent (default: info)',
      '--json': 'logs as JSON lines, and a line once it is ready',
    },
  ],
  [
    'HTTPS:',
    {
      '--tls-cert': 'certificate, in PEM; with --tls-key',
      '--tls-key': 'its key, in PEM',
      '--tls-self-signed': 'make a certificate',
    },
  ],
]

const HELP = ['-h, --help', 'print this help'] as const
const MORE = 'More:'

/** Makes `--help` of a command the short one, and adds `--help-all`. */
export function withShortHelp(command: Command): void {
  let isShort = true
  let isPrinting = false
  command.addOption(new Option('--help-all', 'print all options').helpGroup(MORE))
  command.helpOption(...HELP)
  command.configureHelp({
    ...HELP_FORMAT,
    visibleArguments: () => [],
    // A mistyped option is compared with these, too, so all options are needed here.
    visibleOptions: of => (isPrinting && isShort ? shortOptions(of) : [...of.options, helpOption()]),
    formatHelp(of, helper) {
      isPrinting = true
      try {
        return new Help().formatHelp.call(helper, of, helper)
      } finally {
        isPrinting = false
      }
    },
  })
  command.on('option:help-all', () => {
    isShort = false
    command.outputHelp()
    throw new CommanderError(0, 'commander.helpDisplayed', '')
  })
}

function helpOption(): Option {
  return new Option(...HELP).helpGroup(MORE)
}

function shortOptions({ options }: Command): Option[] {
  const flags = new Map(options.map(option => [option.long, option.flags]))
  const short = SHORT.flatMap(([heading, briefs]) =>
    Object.entries(briefs).map(([long, brief]) => new Option(flags.get(long)!, brief).helpGroup(heading)),
  )
  return [...short, ...options.filter(({ long }) => long === '--help-all'), helpOption()]
}
