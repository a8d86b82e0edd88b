/** The names that a run of the server goes by. */
import type { Config } from '../../config/config.ts'
import type { KnownHosts } from '../../server/hosts.ts'
import { machineNames } from '../../system/hardware/machine-names.ts'
import { givenConsoleHost } from './console.ts'

/** The settings that have names of the server. */
export type NamingSettings = Pick<
  Config,
  'host' | 'adminHost' | 'publicUrl' | 'queueUrl' | 'consoleUrl' | 'lbDomain' | 'dockerWorkerAddress' | 'allowedHosts'
>

/**
 * The names by which clients and workers may call the server; see docs/adr/0035-origins-and-hosts.md.
 * @param ofMachine names that the machine has for itself
 */
export function hostsOf(settings: NamingSettings, ofMachine: readonly string[] = machineNames()): KnownHosts {
  const { host, adminHost, publicUrl, queueUrl, lbDomain, dockerWorkerAddress, allowedHosts } = settings
  const urls = [publicUrl, queueUrl].filter(url => url !== null).map(url => new URL(url).host)
  const console = givenConsoleHost(settings)
  const workers = dockerWorkerAddress === null ? [] : [dockerWorkerAddress]
  return {
    names: [
      host,
      adminHost,
      ...ofMachine,
      ...urls,
      ...(console === null ? [] : [console]),
      ...workers,
      ...allowedHosts,
    ],
    domains: lbDomain === null ? [] : [lbDomain],
  }
}
