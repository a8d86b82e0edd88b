import { flag, many, oneOf, setting, textOf } from './setting.ts'

/** The settings of a server that several accounts share. */
export const SHARING_SETTINGS = {
  processes: setting(
    '--processes',
    '<auto|off>',
    'auto',
    oneOf(['auto', 'off']),
    'whether folders that the server was started with run as processes; off leaves containers alone',
  ),
  acceptSharedHost: flag(
    '--accept-shared-host',
    'allow a second account although workers are not isolated from each other and the server',
  ),
  webhookPrivate: setting(
    '--webhook-private',
    '<auto|on|off>',
    'auto',
    oneOf(['auto', 'on', 'off']),
    "whether webhooks go to private addresses; auto: those of the operator's account",
  ),
  privateRegistries: many(
    '--private-registry',
    '<host[:port]>',
    textOf(registryProblem),
    'registry without a public address whose images every account may run; may be repeated',
    ',',
  ),
}

function registryProblem(text: string): string | null {
  const isHost = /^(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/.test(text)
  return isHost ? null : 'must be a host, with a port or without, such as registry.lan:5000'
}
