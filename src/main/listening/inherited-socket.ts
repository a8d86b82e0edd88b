/**
 * The socket that systemd has opened for this server. It outlives the server: connections wait in it while another one
 * starts.
 */
import { AppError } from '../../core/errors.ts'

/** The first descriptor that is passed on, by the convention of systemd (sd_listen_fds). */
const FIRST = 3

/**
 * The descriptor of the socket that was passed on to this process; null without one.
 * @throws AppError if there are several sockets: their purposes would be unknown
 */
export function inheritedSocket(env: Readonly<Record<string, string | undefined>>, pid: number): number | null {
  const { LISTEN_FDS: count, LISTEN_PID: meant } = env
  // Processes that this one starts may have the variables, and not the socket.
  if (count === undefined || meant !== `${pid}`) return null
  if (count === '1') return FIRST
  throw new AppError(
    'unavailable',
    `${count} sockets were passed on to the server; it takes one, for --host and --port`,
  )
}
