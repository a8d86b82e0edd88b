/** Problems that are allowed for some time, since the server needs it to notice and correct them. */
export class LastingProblems {
  readonly #report: (problem: string) => void
  /** Time at which each present problem was first seen; infinite once it is reported. */
  readonly #since = new Map<string, number>()

  /** @param report receives one sentence for each problem that lasted longer than allowed */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** Notes the present problems, each with the time for which it is allowed, and forgets all others. */
  note(nowMs: number, present: ReadonlyMap<string, number>): void {
    for (const problem of this.#since.keys()) if (!present.has(problem)) this.#since.delete(problem)
    for (const [problem, limitMs] of present) {
      const sinceMs = this.#since.get(problem) ?? nowMs
      this.#since.set(problem, sinceMs)
      if (nowMs - sinceMs < limitMs) continue
      this.#report(`${problem}, since ${nowMs - sinceMs} ms`)
      this.#since.set(problem, Number.POSITIVE_INFINITY)
    }
  }

  /** After a crash or while the server is down: the times of all problems begin again. */
  clear(): void {
    this.#since.clear()
  }
}
