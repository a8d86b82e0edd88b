import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { printText } from '../terminal/terminal-text.ts'

/** `runyard console`: a link that signs in to the console. */
export function addConsole(program: Command): void {
  withConnection(program.command('console'))
    .summary('print an address that signs in to the console')
    .description('print an address that signs in to the console once, within 10 minutes')
    .action(printLink)
}

async function printLink(options: ConnectionOptions): Promise<void> {
  const answer = await ask(options, '/console/link', { method: 'POST' })
  const link = (await answer.json()) as { url: string; expiresAt: string }
  printText(wantsJson(options) ? `${JSON.stringify(link)}\n` : `${link.url}\n`)
}
