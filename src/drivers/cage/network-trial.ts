/** Tests by a trial if this machine can give workers in cages a network of their own. */
import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { CAGE_BASE } from './arguments.ts'
import { sameUser } from './layer.ts'
import { SYSTEM_PATH } from './outside.ts'
import { outerWords } from './own-network.ts'
import { NO_BUBBLEWRAP } from './trial.ts'

const TRIAL_MS = 10_000
/** Programs that lead a network to the outside, and the packages that have them. */
const PROGRAMS: Readonly<Record<string, string>> = { slirp4netns: 'slirp4netns', nsenter: 'util-linux', ip: 'iproute2' }
const TUN = '/dev/net/tun'

/** The reason why there can be no such network, and the remedy. */
export interface NetworkLack {
  readonly problem: string
  readonly action: string
}

/**
 * Makes a cage in a network of its own, and finds what leads it to the outside.
 * @param bwrap the program that makes cages here
 * @param open true for a network with a way to the outside
 * @param path folders of programs of the system, as PATH has them
 * @returns null where nothing is missing
 */
export function tryOwnNetwork(bwrap: string, open: boolean, path: string = SYSTEM_PATH): NetworkLack | null {
  try {
    const [program = bwrap, ...words] = outerWords(bwrap)
    const inner = [
      bwrap,
      ...sameUser(),
      ...CAGE_BASE,
      '--ro-bind',
      '/',
      '/',
      '--proc',
      '/proc',
      '--dev',
      '/dev',
      '--',
      'true',
    ]
    const stdio: ('ignore' | 'pipe')[] = ['ignore', 'ignore', 'pipe']
    execFileSync(program, [...words, ...inner], { env: { PATH: SYSTEM_PATH }, stdio, timeout: TRIAL_MS })
  } catch (thrown) {
    const { stderr, code } = thrown as NodeJS.ErrnoException & { stderr?: Buffer }
    const message = stderr?.toString().trim().split('\n')[0]?.slice(0, 200)
    return {
      problem: `no network can be made for a cage: ${message || code}`,
      action: 'allow user namespaces in others',
    }
  }
  return open ? findOutsideLack(path) : null
}

/**
 * The lack of networks where no cage can be made, with all missing packages in one message.
 * @param wanted the network that workers should reach
 */
export function lackWithoutCage(cage: NetworkLack, wanted: 'open' | 'server' | 'shared'): NetworkLack {
  if (cage.problem !== NO_BUBBLEWRAP) return cage
  const missing = wanted === 'open' ? missingPrograms(SYSTEM_PATH) : []
  return { problem: cage.problem, action: installing(['bubblewrap', ...missing]) }
}

/** The packages of programs that are not installed. */
function missingPrograms(path: string): string[] {
  const has = (program: string) => path.split(delimiter).some(folder => existsSync(join(folder, program)))
  return Object.entries(PROGRAMS).flatMap(([program, name]) => (has(program) ? [] : [name]))
}

function installing(packages: readonly string[]): string {
  return `install the ${packages.length === 1 ? 'package' : 'packages'} ${packages.join(' and ')}`
}

function findOutsideLack(path: string): NetworkLack | null {
  const missing = missingPrograms(path)
  if (missing.length > 0) {
    const are = missing.length === 1 ? 'is' : 'are'
    return { problem: `${missing.join(' and ')} ${are} not installed`, action: installing(missing) }
  }
  try {
    accessSync(TUN, constants.R_OK | constants.W_OK)
    return null
  } catch {
    return { problem: `${TUN} cannot be opened`, action: 'load the module tun and let the server open its device' }
  }
}
