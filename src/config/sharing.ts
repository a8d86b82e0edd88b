/** The settings about a server that several accounts share. */
import { flag, oneOf, type Setting, setting } from './setting.ts'

/** What accounts may do to the machine and its network. */
export interface SharingConfig {
  /** Whether folders of this machine run as processes. */
  readonly processes: 'auto' | 'off'
  /** Whether there may be a second account although workers are not kept apart. */
  readonly acceptSharedHost: boolean
  /** Whether webhooks go to private addresses: `auto` as long as there is one account. */
  readonly webhookPrivate: 'auto' | 'on' | 'off'
}

/** By the names of their options, as SETTINGS has them. */
export const SHARING_SETTINGS: Readonly<Record<string, Setting>> = {
  processes: setting(
    '--processes',
    'PROCESSES',
    '<auto|off>',
    'auto',
    'whether folders that the server was started with run as processes; off leaves containers alone',
    oneOf(['auto', 'off']),
  ),
  acceptSharedHost: flag(
    '--accept-shared-host',
    'ACCEPT_SHARED_HOST',
    'let a second account be made although workers are not kept apart from each other and the server',
  ),
  webhookPrivate: setting(
    '--webhook-private',
    'WEBHOOK_PRIVATE',
    '<auto|on|off>',
    'auto',
    'whether webhooks go to private addresses and this machine; auto: until there is a second account',
    oneOf(['auto', 'on', 'off']),
  ),
}

/** @param text what was given for each of {@link SHARING_SETTINGS} */
export function sharingConfig(text: (name: string) => string): SharingConfig {
  return {
    processes: text('processes') as SharingConfig['processes'],
    acceptSharedHost: text('acceptSharedHost') === 'true',
    webhookPrivate: text('webhookPrivate') as SharingConfig['webhookPrivate'],
  }
}
