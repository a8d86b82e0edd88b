import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { type Config, readConfig, SETTINGS, strayVariables } from '../../config/config.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { shellWord } from '../../core/shell-word.ts'
import { errorText } from '../../disk/access-problem.ts'
import { packageFile } from '../../disk/package-files.ts'
import type { ServedFolder } from '../../main/folders/folders.ts'
import type { RunningServer } from '../../main/server.ts'
import { StartError } from '../../main/start-error.ts'
import type { ActingServer } from '../../main/term.ts'
import { CliError, EXIT } from '../exit.ts'
import { withShortHelp } from './serve-help.ts'
import { SERVE_OPTION_GROUPS } from './serve-option-groups.ts'

/** `runyard serve`: runs the server until a signal stops it. */
export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .summary('run the server')
    .description('run the server; Ctrl-C drains the workers and stops it')
  const settings = new Map(Object.values(SETTINGS).map(setting => [setting.flag, setting]))
  for (const [heading, flags] of SERVE_OPTION_GROUPS) {
    for (const flag of flags) command.addOption(settingOption(settings.get(flag)!).helpGroup(heading))
  }
  withShortHelp(command)
  command.addHelpText(
    'after',
    '\nEach option can be set as RUNYARD_<NAME> too, such as RUNYARD_PORT.\nRUNYARD_API_KEY sets the API key. A command of the workers goes behind --.',
  )
  command.argument('[command...]', 'command of the workers of the folder, behind --')
  command.action(async (words: readonly string[], options: Record<string, unknown>) =>
    serve(withCommand(words, options)),
  )
}

function settingOption(setting: (typeof SETTINGS)[keyof typeof SETTINGS]): Option {
  const names = setting.argument === null ? setting.flag : `${setting.flag} ${setting.argument}`
  const standard = setting.argument === null || setting.fallback === null ? '' : ` (default: ${setting.fallback})`
  const option = new Option(names, `${setting.help}${standard}`)
  if (setting.many === true) option.argParser((value: string, all: string[] | undefined) => [...(all ?? []), value])
  return option
}

/**
 * The words behind `--` as the setting `--command`, a command line.
 * @throws CliError when both are given, or there is no `--`
 */
function withCommand(words: readonly string[], options: Record<string, unknown>): Record<string, unknown> {
  if (words.length === 0) return options
  if (!process.argv.includes('--'))
    throw new CliError(`serve takes no argument '${words[0]}'; ${describePlace(words[0]!)}`, EXIT.usage)
  if (options.command !== undefined)
    throw new CliError('a command is given with --command and behind --; leave one of them out', EXIT.usage)
  return { ...options, command: words.map(shellWord).join(' ') }
}

/**
 * The right place of a word that is not an argument of `serve`: a folder, or a file in one, after `--worker`; the port
 * that npm leaves of `npm start --port`.
 */
function describePlace(word: string): string {
  if (/^\d+$/.test(word)) return `a port goes behind --port: npm start -- --port ${word}`
  if (!existsSync(word)) return 'a folder goes behind --worker, a command behind --'
  const folder = statSync(word).isDirectory() ? word : dirname(word)
  return `did you mean --worker ${shellWord(folder)}? A command goes behind --`
}

/** @throws Error with a sentence */
function readSettingFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(errorText(error), { cause: error })
  }
}

async function serve(options: Record<string, unknown>): Promise<void> {
  const reading = readConfig({
    options,
    env: process.env,
    absolute: path => resolve(path),
    read: readSettingFile,
  })
  if ('mistakes' in reading) {
    const list = reading.mistakes.map(mistake => `  ${mistake}`).join('\n')
    throw new CliError(`${reading.mistakes.length} setting(s) are wrong:\n${list}`, EXIT.usage)
  }
  for (const sentence of strayVariables(process.env)) process.stderr.write(`runyard: ${sentence}\n`)
  let signals = 0
  let stop: (() => void) | null = null
  const onSignal = () => {
    signals += 1
    if (signals === 1 && !reading.config.json)
      process.stderr.write('stopping: workers finish their jobs; press again to stop at once\n')
    if (stop !== null) stop()
    else if (signals > 1) process.exit(EXIT.unavailable)
  }
  let certificate: RunningServer['certificate'] = null
  const isAtTerminal = process.stdout.isTTY === true
  // A terminal that is closed sends it; nohup and service managers mean that the server goes on, and Node forgets what
  // nohup said.
  process.on('SIGHUP', () => {
    if (!isAtTerminal) void certificate?.reload()
    else if (signals === 0) onSignal()
  })
  // Before it listens, a signal ends the process; afterwards that would cut calls off, so that the start is finished
  // first.
  const server = await start(reading.config, () => {
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
  const ended = new Promise<void>((done, fail) => {
    stop = () => void server.stop().then(done, fail)
    if (signals > 0) stop()
  })
  certificate = server.certificate
  // Announce only after the handlers are set: a reader of the announcement may signal the server at once.
  server.watch(acting => void announce(server, acting, reading.config))
  if (signals === 0) await announce(server, server.acting, reading.config)
  server.failed.catch((error: Error) => {
    process.stderr.write(`runyard: ${error.message}\n`)
    process.exit(EXIT.unavailable)
  })
  await ended.catch((error: Error) => {
    process.stderr.write(`runyard: the server did not stop in order: ${error.message}\n`)
    process.exit(EXIT.internal)
  })
  process.exit(0)
}

async function start(config: Config, beforeListening: () => void): Promise<RunningServer> {
  // Loaded only here: the server is ten times as large as the other commands.
  const { startServer } = await import('../../main/server.ts')
  try {
    return await startServer(config, packageFile('examples/hello-node'), beforeListening)
  } catch (error) {
    if (error instanceof StartError) throw new CliError(error.message, EXIT.unavailable)
    throw error
  }
}

/**
 * The way into the console. The address with a code is for a person at a terminal: files and logs keep their content.
 */
async function consoleLine({ consoleUrl }: RunningServer, { consoleLink }: ActingServer): Promise<string[]> {
  if (consoleUrl === null) return []
  if (!process.stdout.isTTY) return [`The console is at ${consoleUrl}`]
  const link = await consoleLink().catch(() => null)
  return [link === null ? `The console is at ${consoleUrl}` : `Open the console: ${link}`]
}

/** @param acting its term as the active server; null in standby */
async function announce(server: RunningServer, acting: ActingServer | null, config: Config): Promise<void> {
  const { url, managementUrl, consoleUrl, apiKeyFile, redirectUrl, certificate } = server
  if (config.json) {
    const event = acting === null ? 'standby' : 'ready'
    const tls = certificate === null ? null : { fingerprint: certificate.fingerprint, trust: certificate.trustFile }
    const report = { event, url, managementUrl, consoleUrl, redirectUrl, tls, apiKeyFile, pid: process.pid }
    process.stdout.write(`${JSON.stringify(report)}\n`)
    return
  }
  if (acting === null) {
    process.stdout.write(`Runyard stands by at ${url}: another server acts on its database; see runyard status\n`)
    return
  }
  const ofConsole = await consoleLine(server, acting)
  const { folders, hardware, isolation } = acting
  const lines = [
    `Runyard is up at ${url}`,
    ...(managementUrl === url ? [] : [`Management is at ${managementUrl}`]),
    ...(redirectUrl === null ? [] : [`Plain HTTP at ${redirectUrl} is led there`]),
    ...ofConsole,
    `The API key is in ${apiKeyFile}`,
    hardware,
    isolation,
    ...trustLines(certificate),
    ...folders.flatMap(folder => folderLines(folder, server, acting)),
  ]
  if (folders.length === 0)
    lines.push('', 'Run a handler of your own: runyard serve --worker <folder>, or a server: --lb <folder>')
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** Steps by which clients trust a certificate that no authority has signed. */
function trustLines(certificate: RunningServer['certificate']): string[] {
  if (certificate?.trustFile === undefined || certificate.trustFile === null) return []
  const { trustFile: file, fingerprint } = certificate
  return [
    '',
    `The certificate is this server's own, in ${file}`,
    `  SHA-256 ${fingerprint}`,
    'Clients on other machines need a copy of that file, and trust it with',
    `  curl --cacert '${file}'`,
    `  export REQUESTS_CA_BUNDLE='${file}' SSL_CERT_FILE='${file}'   # Python`,
    `  export NODE_EXTRA_CA_CERTS='${file}'   # Node.js`,
  ]
}

function folderLines(
  { folder, endpoint }: ServedFolder,
  { url, apiKeyFile, certificate }: RunningServer,
  { endpointAddresses }: ActingServer,
): string[] {
  const { id, name, type, compute } = endpoint
  const hardware = `on ${computeText(compute)}`
  const trust = certificate?.trustFile == null ? '' : `--cacert '${certificate.trustFile}' `
  const key = `${trust}-H "Authorization: Bearer $(cat '${apiKeyFile}')"`
  const head = [
    '',
    `Endpoint ${name} (${id}) runs ${folder}`,
    `  ${hardware}, up to ${workersText(endpoint.workersMax)}`,
  ]
  if (type === 'LOAD_BALANCER') {
    const { base, browser } = endpointAddresses(endpoint)
    const inBrowsers = browser === null ? [] : [`  ${browser}/ in browsers`]
    return [...head, `  ${base}/`, ...inBrowsers, 'Try it:', `  curl -sS ${base}/ ${key}`]
  }
  const run = `${url}/v2/${id}`
  const json = `-H 'Content-Type: application/json' -d '{"input": {"name": "World"}}'`
  return [...head, `  ${run}/run`, 'Try it:', `  curl -sS ${run}/runsync ${key} ${json}`]
}

/** The hardware of one worker, as in "1 GPU of ADA_24" and "the CPU". */
function computeText(compute: Endpoint['compute']): string {
  if (compute.kind === 'cpu') return 'the CPU'
  const { count, pools, excludedTypes } = compute
  const without = excludedTypes.length === 0 ? '' : ` without ${excludedTypes.join(', ')}`
  return `${count} ${count === 1 ? 'GPU' : 'GPUs'} of ${pools.join(', ')}${without}`
}

function workersText(count: number): string {
  return count === 1 ? '1 worker' : `${count} workers`
}
