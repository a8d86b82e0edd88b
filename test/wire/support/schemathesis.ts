/** Schemathesis; tests that need it are skipped where it is not installed. */
import { execFileSync } from 'node:child_process'

const WANTED = '4.32.5'

/** Its program, or the reason of its absence. */
export const schemathesis = findProgram()

function findProgram(): { program: string; skip: string | false } {
  const program = process.env.RUNYARD_TEST_SCHEMATHESIS ?? ''
  if (program !== '' && programVersion(program).endsWith(` ${WANTED}`)) return { program, skip: false }
  const problem = `RUNYARD_TEST_SCHEMATHESIS names no program of schemathesis==${WANTED}`
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return { program: '', skip: problem }
}

function programVersion(program: string): string {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return ''
  }
}
