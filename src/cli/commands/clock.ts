import type { Command } from 'commander'
import { clockDifference } from '../../core/server-time.ts'
import { agreeToDelete, withYes, type YesOption } from '../client/agreeing.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { printText } from '../terminal/terminal-text.ts'

/** Answer of `/ops/clock`. */
interface Clocks {
  readonly now: string
  readonly machine: string
  readonly stepMs: number
  readonly takenAt: string | null
  readonly heldUntil: string | null
}

/** `runyard clock [show|accept]`: the time of the server beside the clock of its machine. */
export function addClock(program: Command): void {
  const group = program
    .command('clock')
    .summary("the time of the server beside the machine's")
    .description('the time of the server beside the clock of its machine')
  withConnection(group.command('show', { isDefault: true }))
    .description('show both')
    .action(show)
  withConnection(withYes(group.command('accept')))
    .description("take the time of the machine's clock, or end the wait of retention after a long pause")
    .action(accept)
}

async function show(options: ConnectionOptions): Promise<void> {
  const clocks = (await (await ask(options, '/ops/clock')).json()) as Clocks
  print(options, clocks)
}

async function accept(options: ConnectionOptions & YesOption): Promise<void> {
  const loss = 'results and records that are over by the time of the machine are removed'
  await agreeToDelete(options, async () => loss)
  print(options, (await (await ask(options, '/ops/clock/accept', { method: 'POST' })).json()) as Clocks)
}

function print(options: ConnectionOptions, clocks: Clocks): void {
  printText(wantsJson(options) ? `${JSON.stringify(clocks)}\n` : `${clockLines(clocks).join('\n')}\n`)
}

/** Both clocks for people, and when the server takes the time of the machine. */
export function clockLines({ now, machine, stepMs, takenAt, heldUntil }: Clocks): string[] {
  const lines = [`Server:   ${now}`, `Machine:  ${machine}`]
  if (stepMs === 0) lines.push('They agree.')
  else {
    lines.push(`The clock of the machine is ${clockDifference(stepMs)} the time of the server.`)
    if (takenAt !== null) {
      const isTaken = takenAt <= now
      const later = `The server takes its time at ${takenAt}, or at once by: runyard clock accept`
      lines.push(isTaken ? 'The server takes its time now.' : later)
    }
  }
  if (heldUntil !== null) lines.push(`Retention removes nothing until ${heldUntil}, or until: runyard clock accept`)
  return lines
}
