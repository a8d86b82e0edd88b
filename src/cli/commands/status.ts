import type { Command } from 'commander'
import { type ServerStatus, statusLines } from '../../core/observing/server-status.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { printText } from '../terminal/terminal-text.ts'

/** `runyard status`: the active server of the database, and the state of this one. */
export function addStatus(program: Command): void {
  withConnection(program.command('status'))
    .summary('show which of several servers is active')
    .description('which server is active, since when, and the role of the one that is asked')
    .action(status)
}

async function status(options: ConnectionOptions): Promise<void> {
  const serverStatus = (await (await ask(options, '/ops/status')).json()) as ServerStatus
  printText(wantsJson(options) ? `${JSON.stringify(serverStatus)}\n` : `${statusLines(serverStatus).join('\n')}\n`)
}
