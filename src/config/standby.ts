import { flag, HOST_NAME, optional } from './setting.ts'

/** The settings of servers of which one is active and the others stand by. */
export const STANDBY_SETTINGS = {
  forwardToActive: flag(
    '--forward-to-active',
    'while this server stands by, pass requests on to the active one instead of answering 503',
  ),
  /** Null for the address that the server listens on. */
  advertiseHost: optional(
    '--advertise-host',
    '<address>',
    HOST_NAME,
    'address or name under which other servers on the same database reach this one (default: --host)',
  ),
}
