/** The end of the output of a worker, which shows why the worker ended. */

/** Lines of output that are kept with the exit of a worker. */
const LAST_LINES = 20

/** Lines of output that are read to find these: a stack is longer than its kept part. */
export const READ_LINES = 60

/** Frames of one stack that are kept: the place of the error, and its callers. */
const MAX_FRAMES = 2

/** The last line of Node, below the error that ended it. */
const NODE_VERSION = /^Node\.js v\d/

/** Prefixes of lines that hold the message of an error, in Python and in JavaScript. */
const ERROR_LINE = /^(?:Uncaught )?[\w.]*(?:Error|Exception|Exit|Interrupt)(?: \[\w+\])?:/

/**
 * The last lines of an output. Only the first frames of each JavaScript stack count, so that its message is among the
 * lines.
 */
export function outputEnd(lines: readonly { readonly line: string }[]): string[] {
  let frames = 0
  const kept = lines.filter(({ line }) => {
    frames = isFrame(line) ? frames + 1 : 0
    return frames <= MAX_FRAMES
  })
  return kept.slice(-LAST_LINES).map(({ line }) => line)
}

/**
 * The line with the message of the error at the end of an output, else its last line; null if the output is empty.
 */
export function messageLine(lines: readonly string[]): string | null {
  const ownLines = lines
    .map(line => line.trim())
    .filter(line => line !== '' && !isFrame(` ${line}`) && !NODE_VERSION.test(line))
  return ownLines.findLast(line => ERROR_LINE.test(line)) ?? ownLines.at(-1) ?? null
}

function isFrame(line: string): boolean {
  return /^\s+at \S/.test(line)
}
