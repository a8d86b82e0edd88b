import type { App } from '../../app.ts'
import { givenConsoleUrl, hasTls } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import { isLoopback } from '../../server/listener.ts'
import type { Log } from '../../system/observing/log.ts'
import { isReadableOnItsWay } from './console.ts'

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
