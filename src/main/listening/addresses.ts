/** The names and the origins of the server, and who reaches them. */
import type { App } from '../../app.ts'
import { givenConsoleUrl, hasTls } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { ServerHosts } from '../../server/hosts.ts'
import { isLoopback } from '../../server/listener.ts'
import { machineNames } from '../../system/hardware/machine-names.ts'
import type { Log } from '../../system/observing/log.ts'

/** The settings that have names of the server. */
export type NamingSettings = Pick<
  Config,
  'host' | 'adminHost' | 'publicUrl' | 'queueUrl' | 'consoleUrl' | 'lbDomain' | 'dockerWorkerAddress' | 'allowedHosts'
>

/**
 * The names by which clients and workers may call the server; see docs/adr/0035-origins-and-hosts.md.
 * @param ofMachine names that the machine has for itself
 */
export function serverHosts(settings: NamingSettings, ofMachine: readonly string[] = machineNames()): ServerHosts {
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

/**
 * The origin of the console; null where it is off, or nobody could reach it without --console-url.
 * @param managementUrl address of the listener for management
 */
export function consoleUrlFor(
  { consoleUrl, adminPort, adminHost, host }: Pick<Config, 'consoleUrl' | 'adminPort' | 'adminHost' | 'host'>,
  managementUrl: string,
): string | null {
  if (consoleUrl !== null) return givenConsoleUrl({ consoleUrl })
  const listens = adminPort === null ? host : adminHost
  // Browsers take names below localhost for this machine.
  const isHere = isLoopback(listens) || listens === '0.0.0.0' || listens === '::'
  if (!isHere) return null
  const { protocol, port } = new URL(managementUrl)
  return new URL(`${protocol}//console.localhost${port === '' ? '' : `:${port}`}`).origin
}

/** The host of the console that the settings name; null without one. */
export function givenConsoleHost(config: Pick<Config, 'consoleUrl'>): string | null {
  const url = givenConsoleUrl(config)
  return url === null ? null : new URL(url).hostname
}

/** True when keys that are typed into the console could be read on their way. */
export function isReadableOnItsWay(consoleUrl: string): boolean {
  const { protocol, hostname } = new URL(consoleUrl)
  return protocol === 'http:' && !hostname.endsWith('.localhost')
}

/** Warnings about who can reach the server. */
export async function warnOfExposure({ services }: App, config: Config, log: Log): Promise<void> {
  const { host, adminHost, adminPort } = config
  const isPlain = !hasTls(config.tls)
  const consoleUrl = givenConsoleUrl(config)
  if (consoleUrl !== null && isReadableOnItsWay(consoleUrl))
    log.warn({ consoleUrl }, 'keys that are typed into the console can be read on their way; put TLS in front of it')
  if (isPlain && adminPort !== null && !isLoopback(adminHost))
    log.warn(
      { host: adminHost },
      'management can be reached from outside in plain HTTP; give --tls-cert, or put TLS in front of it',
    )
  if (isPlain && !isLoopback(host))
    log.warn(
      { host },
      'the server can be reached from outside in plain HTTP; give --tls-cert, or put TLS in front of it',
    )
  const reason = await services.sharing.problem()
  if (reason !== null) {
    const what =
      'there are several accounts, and workers of one can reach what is not its own; see --accept-shared-host'
    log.warn({ reason }, what)
  }
}
