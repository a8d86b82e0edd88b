/** Tests by a trial if this machine can make a cage. */
import { execFile, execFileSync } from 'node:child_process'
import { readOptional } from '../../disk/optional-files.ts'
import { CAGE_BASE } from './arguments.ts'
import { sameUser, shownAt, tryLayer } from './layer.ts'
import { systemCallFilter } from './system-call-filter.ts'

/** The result of the trial. `filter` is the program that refuses system calls; null where this machine takes none. */
export type CageTrial =
  | { readonly bwrap: string; readonly filter: Buffer | null }
  | { readonly problem: string; readonly action: string }

/** The problem of a machine without the program that makes cages. */
export const NO_BUBBLEWRAP = 'bubblewrap (bwrap) is not installed'

const PLACES = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap']
const TRIAL_MS = 10_000
const TRIAL_STDIO = ['pipe', 'ignore', 'pipe'] as const
const TRIAL = [...CAGE_BASE, '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']

/**
 * Runs nothing in a cage that is made as those of workers are.
 * @param places possible paths of bubblewrap
 */
export function tryCage(platform: string = process.platform, places: readonly string[] = PLACES): CageTrial {
  const trials = trialsOf(platform, places)
  let step = trials.next()
  while (step.done !== true) step = trials.next(tryWords(step.value))
  return step.value
}

/** As {@link tryCage}, while the rest of the server goes on. */
export async function tryCageAside(
  platform: string = process.platform,
  places: readonly string[] = PLACES,
): Promise<CageTrial> {
  const trials = trialsOf(platform, places)
  let step = trials.next()
  while (step.done !== true) step = trials.next(await tryWordsAside(step.value))
  return step.value
}

/** A cage to make. */
interface Trial {
  readonly bwrap: string
  readonly filter: Buffer | null
}

/** The cages to try, one after the other. Each gets its problem; null after success. */
function* trialsOf(platform: string, places: readonly string[]): Generator<Trial, CageTrial, string | null> {
  if (platform !== 'linux') return { problem: 'cages need Linux', action: 'run workers in containers' }
  let problem: string | null = null
  const filter = systemCallFilter()
  for (const bwrap of places) {
    if (filter !== null && (yield { bwrap, filter }) === null) return { bwrap, filter }
    const unfilteredProblem = yield { bwrap, filter: null }
    if (unfilteredProblem === null) return { bwrap, filter: null }
    if (unfilteredProblem !== MISSING) problem ??= unfilteredProblem
  }
  if (problem === null) return { problem: NO_BUBBLEWRAP, action: 'install the package bubblewrap' }
  return { problem: `bubblewrap cannot make a cage here: ${problem}`, action: actionHere() }
}

/** The remedy if bubblewrap cannot make namespaces, as far as the kernel reports the reason. */
function actionHere(): string {
  if (readSetting('kernel/apparmor_restrict_unprivileged_userns') === '1')
    return 'give bwrap a profile of AppArmor that permits user namespaces, or set kernel.apparmor_restrict_unprivileged_userns=0'
  if (readSetting('kernel/unprivileged_userns_clone') === '0') return 'set kernel.unprivileged_userns_clone=1'
  if (readSetting('user/max_user_namespaces') === '0') return 'raise user.max_user_namespaces'
  return 'permit user namespaces and mounts to this server (in a container and in a unit of systemd they are off unless given), with bubblewrap 0.8 or newer'
}

function readSetting(name: string): string {
  return readOptional(`/proc/sys/${name}`).trim()
}

const MISSING = 'ENOENT'

const ENV = { PATH: '/usr/bin:/bin' }

function wordsOf({ filter }: Trial): string[] {
  return [...(filter === null ? [] : ['--seccomp', '0']), ...TRIAL, '--', 'true']
}

/** Makes a cage. @returns the problem; null after success */
function tryWords(trial: Trial): string | null {
  try {
    const input = trial.filter ?? Buffer.alloc(0)
    execFileSync(trial.bwrap, wordsOf(trial), { env: ENV, stdio: [...TRIAL_STDIO], input, timeout: TRIAL_MS })
    return null
  } catch (thrown) {
    const { code, stderr } = thrown as NodeJS.ErrnoException & { stderr?: Buffer }
    return problemOf(code, stderr?.toString() ?? '')
  }
}

function tryWordsAside(trial: Trial): Promise<string | null> {
  return new Promise(resolve => {
    const child = execFile(trial.bwrap, wordsOf(trial), { env: ENV, timeout: TRIAL_MS }, (error, _, stderr) => {
      resolve(error === null ? null : problemOf(error.code, stderr))
    })
    // One that cannot start, or ends at once, takes no input.
    child.stdin?.on('error', () => {})
    child.stdin?.end(trial.filter ?? undefined)
  })
}

function problemOf(code: string | number | null | undefined, stderr: string): string {
  if (code === MISSING) return MISSING
  // A number is the exit code of a cage that said nothing.
  return firstLine(stderr) || (typeof code === 'string' ? code : 'it failed')
}

/**
 * True where workers in such a cage can have a private layer over their image.
 * @param folder place of the layers of workers
 * @param around the words that make the namespaces around it
 */
export function tryLayers(bwrap: string, folder: string, around: readonly string[]): boolean {
  const words = [bwrap, ...TRIAL, ...sameUser()]
  return tryLayer(folder, around, layer => [...words, '--bind', shownAt(layer), layer.image, '--'])
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0]?.slice(0, 200) ?? ''
}
