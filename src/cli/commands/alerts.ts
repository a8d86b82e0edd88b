import type { Command } from 'commander'
import { answerValue, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, withConnection } from '../client/connection.ts'
import { secretText } from '../client/hidden-input.ts'
import { idOrName, KINDS } from '../client/kinds.ts'
import { withName } from '../client/names.ts'
import { pages } from '../client/pages.ts'
import { print, printList } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import type { TableRow } from '../terminal/table.ts'
import { addDeletion } from './deletion.ts'

interface CreateOptions extends ConnectionOptions {
  readonly name: string
  readonly webhook?: true
  readonly slack?: true
  readonly email?: string
}

const RECEIVERS = KINDS.alerts

const ABOUT = `
The address of a webhook or of a Slack channel is a password: it is read from
the terminal or from standard input, not from arguments. E-mail needs a server
with --smtp-url, and goes out for the operator's account alone.`

/** `runyard alerts`: endpoints that need attention, and the receivers that get a message about them. */
export function addAlerts(program: Command): void {
  const group = program.command('alerts').description('send a message when an endpoint needs attention')
  withConnection(group.command('list').alias('ls').description('list the receivers of alerts')).action(
    async (options: ConnectionOptions) =>
      printList(options, await pages(options, RECEIVERS.path, 'alertReceivers'), RESOURCE_COLUMNS.alerts, 'receivers'),
  )
  withConnection(group.command('open').description('list the alerts that are not over')).action(
    async (options: ConnectionOptions) => {
      const page = await answerValue<object>(await ask(options, '/v2/account/alerts'))
      printList(options, pageItems<TableRow>(page, 'alerts'), RESOURCE_COLUMNS.openAlerts, 'open alerts')
    },
  )
  withConnection(group.command('create').description('add a receiver of alerts'))
    .requiredOption('--name <text>', 'name of the receiver')
    .option('--webhook', 'POST JSON to an address')
    .option('--slack', 'write to the channel of an incoming webhook of Slack')
    .option('--email <address>', 'send mails')
    .addHelpText('after', ABOUT)
    .action(create)
  const test = group.command('test').argument('<id>', idOrName(RECEIVERS)).description('send a test to a receiver')
  withConnection(test).action(async (given: string, options: ConnectionOptions) => {
    await withName(options, RECEIVERS, given, async receiver => {
      await print(options, await ask(options, '/v2/account/alert-tests', { method: 'POST', body: { receiver } }))
    })
  })
  addDeletion(
    group,
    { name: 'alerts', ...RECEIVERS },
    { word: 'delete', alias: 'rm', description: 'remove a receiver', done: 'removed' },
  )
}

async function create({ name, webhook, slack, email, ...options }: CreateOptions): Promise<void> {
  const kinds = [webhook && 'webhook', slack && 'slack', email !== undefined && 'email'].filter(kind => kind)
  if (kinds.length !== 1) throw new CliError('give one of --webhook, --slack and --email', EXIT.usage)
  const [kind] = kinds
  const address = email ?? (await secretText('address'))
  await print(options, await ask(options, RECEIVERS.path, { method: 'POST', body: { name, kind, address } }))
}
