/** Exit codes: a verb that its thing does not have; after sysexits a mistake in the arguments, data that is refused, something missing, a server that is away, a bug of ours. */
export const EXIT = {
  noSuchVerb: 2,
  usage: 64,
  data: 65,
  notFound: 66,
  unavailable: 69,
  internal: 70,
  refused: 77,
} as const

/** Ends the command with one line on standard error and an exit code. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}
