import { flag, oneOf, setting } from './setting.ts'

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
}
