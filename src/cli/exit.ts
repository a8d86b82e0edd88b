/** Exit codes. `noSuchVerb`: the resource does not have the verb. The others follow sysexits. */
export const EXIT = {
  noSuchVerb: 2,
  usage: 64,
  data: 65,
  notFound: 66,
  unavailable: 69,
  internal: 70,
  output: 74,
  refused: 77,
} as const

/** Ends the command with a message on standard error and an exit code. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}
