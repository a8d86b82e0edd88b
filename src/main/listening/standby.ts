/** A server that stands by, made of its settings and of who is active. */
import { addressList } from '../../gateway/entrance/forwarded.ts'
import type { ActiveServer } from '../../ports/leader.ts'
import { Standby } from '../../server/standby.ts'
import { knownApiKey } from '../../system/keys/api-key.ts'
import type { Shell } from '../shell.ts'

/** What answers while another server is active. @param active that server, as far as it is known now */
export function standbyOf(shell: Shell, active: () => ActiveServer | null): Standby {
  const { config, apiKeyFile, metrics } = shell
  return new Standby({
    active() {
      const found = active()
      return { open: urlOf(found?.openUrl), management: urlOf(found?.url), workers: urlOf(found?.workersUrl) }
    },
    forwards: config.forwardToActive,
    trusts: addressList(config.trustedProxies),
    tls: shell.certificate,
    keys() {
      const { apiKey, previousApiKey, metricsKey } = config
      return [knownApiKey(apiKeyFile, apiKey), previousApiKey, metricsKey].filter(key => key !== null)
    },
    status: async () => JSON.stringify(await shell.status()),
    metrics: config.metricsPublic ? () => metrics.expose([], () => NO_LOAD) : null,
  })
}

const NO_LOAD = { requests: 0, sockets: 0, waiting: 0, busyWorkers: 0 }

function urlOf(text: string | null | undefined): URL | null {
  return text === null || text === undefined ? null : URL.parse(text)
}
