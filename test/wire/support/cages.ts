/** Servers whose workers are in cages with networks of their own. */
import { tryOwnNetwork } from '../../../src/drivers/cage/network-trial.ts'
import { tryCage } from '../../../src/drivers/cage/trial.ts'

/** The trial of a cage on this machine. */
export const cageTrial = tryCage()

const lack = 'problem' in cageTrial ? cageTrial : tryOwnNetwork(cageTrial.bwrap, true)

/** The reason why this machine can have none; false where it can, or where nothing may be skipped. */
export const cageSkip: string | false = lack !== null && process.env.RUNYARD_NO_SKIP !== '1' ? lack.problem : false

/** The settings of such a server. @param readable folders that workers see */
export function caged(...readable: readonly string[]): string[] {
  const cages = ['--worker-sandbox', 'required', '--worker-network', 'server']
  return [...cages, ...readable.flatMap(folder => ['--worker-readable', folder])]
}
