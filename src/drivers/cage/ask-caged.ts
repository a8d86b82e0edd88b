/** Asks a worker in a cage to end. */
import { membersOf, signal } from '../base/process-table.ts'
import { CAGE_PROGRAM } from './cage.ts'
import { DOOR_PROGRAM } from './door-settings.ts'

/**
 * Sends SIGTERM to all in a cage but what makes it and its network, which would end by the signal, and everything in it at once.
 * @param group that the cage leads
 */
export function askCaged(group: number): void {
  const inside = membersOf(group).filter(({ name }) => name !== CAGE_PROGRAM && name !== DOOR_PROGRAM)
  // It has not begun yet.
  if (inside.length === 0) signal(-group, 'SIGKILL')
  for (const { pid } of inside) signal(pid, 'SIGTERM')
}
