/** Standard output and standard error whose reader has gone, or that cannot be written for another reason. */
import { EXIT } from './exit.ts'

/** Groups and commands that only show things. Without a reader there is nothing left for them to do. */
const READERS = new Set([
  ...['audit', 'catalog', 'completion', 'doctor', 'events', 'help', 'logs', 'status', 'top', 'usage', 'whatif', 'why'],
])
/** Verbs of other groups that only show things. */
const READING_VERBS = new Set(['list', 'get', 'keys', 'releases', 'requests', 'story', 'webhooks'])

/** True when a command changes nothing. @param words its name, and that of its verb */
export function onlyShows([name = '', verb = '']: readonly string[]): boolean {
  return READERS.has(name) || READING_VERBS.has(verb)
}

/**
 * Keeps the end of a reader, such as of `head`, or of `tee` at Ctrl-C, from ending the process: a server goes on, and
 * so does a command that changes something, to its end and with its exit code. A command that only shows things ends
 * at once, with the code that it has by then.
 * @param words the name of the running command, and of its verb; asked when a stream cannot be written
 */
export function surviveClosedOutput(words: () => readonly string[]): void {
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
