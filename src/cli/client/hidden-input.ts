/** Secrets that a person types: they are neither shown nor in a list of processes. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CliError, EXIT } from '../exit.ts'
import { readInput } from './text-files.ts'

/** The input of a secret, and the output of its question. */
export interface SecretStreams {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
}

const STANDARD = (): SecretStreams => ({ input: process.stdin, output: process.stderr })

/**
 * A secret: asked for without echo on a terminal, else all of standard input without its last line end.
 * @param what name of the input in the question
 * @throws CliError where nothing is typed, where it has more than one line on a terminal, or is not UTF-8
 */
export async function secretText(what: string, streams: SecretStreams = STANDARD()): Promise<string> {
  if (streams.input.isTTY !== true) return withoutLineEnd(await readInput(streams.input, { keepsMark: true }))
  const lines = await typedLines(`${what}: `, streams)
  if (lines.length > 1)
    throw new CliError(`the ${what} has more than one line; keep it in a file and give @<file>`, EXIT.usage)
  return lines[0] ?? ''
}

/** True on a terminal, where a person can answer. */
export function isAtTerminal({ input }: SecretStreams = STANDARD()): boolean {
  return input.isTTY === true
}

/** The lines that come with the first Enter: several where text with line ends is pasted. */
function typedLines(question: string, { input, output }: SecretStreams): Promise<string[]> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() })
  // The line editor turns off the echo of the terminal, and its own output is discarded. The question follows after
  // that.
  const reader = createInterface({ input, output: unseen, terminal: true, historySize: 0 })
  output.write(question)
  return new Promise((resolve, reject) => {
    const lines: string[] = []
    const give = () => {
      reader.close()
      output.write('\n')
    }
    reader.on('line', line => {
      lines.push(line)
      if (lines.length === 1)
        setImmediate(() => {
          if (reader.line !== '') lines.push(reader.line)
          give()
          resolve(lines)
        })
    })
    reader.on('SIGINT', () => {
      give()
      reject(new CliError('nothing was changed', EXIT.usage))
    })
    reader.on('close', () => {
      if (lines.length === 0) reject(new CliError('nothing was changed', EXIT.usage))
    })
  })
}

/** Text without its last line end. */
export function withoutLineEnd(text: string): string {
  if (!text.endsWith('\n')) return text
  return text.slice(0, text.endsWith('\r\n') ? -2 : -1)
}
