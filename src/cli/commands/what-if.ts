import type { Command } from 'commander'
import { FLASHBOOTS } from '../../core/endpoints/endpoint.ts'
import { answerValue } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { printValue } from '../client/printing.ts'
import type { TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { type WhatIfShown, whatIfHead, whatIfTable } from '../terminal/what-if-table.ts'

interface WhatIfOptions extends ConnectionOptions {
  readonly idleTimeout?: string
  readonly workersMin?: string
  readonly workersMax?: string
  readonly scalerType?: string
  readonly scalerValue?: string
  readonly flashboot?: string
  readonly startAware?: string
  readonly days?: string
}

/** `runyard whatif <endpoint>`: replays its recorded jobs with other settings. */
export function addWhatIf(program: Command): void {
  const command = program
    .command('whatif')
    .argument('<endpoint>', 'the id or the name of a queue endpoint')
    .addOption(fieldOption('--idle-timeout <s>', 'seconds after which an idle worker ends', 'idleTimeout'))
    .addOption(fieldOption('--workers-min <n>', 'workers at least', 'workersMin'))
    .addOption(fieldOption('--workers-max <n>', 'workers at most', 'workersMax'))
    .addOption(
      fieldOption('--scaler-type <type>', 'what decides', 'scalerType').choices(['QUEUE_DELAY', 'REQUEST_COUNT']),
    )
    .addOption(
      fieldOption('--scaler-value <n>', 'seconds of QUEUE_DELAY, or the count of REQUEST_COUNT', 'scalerValue'),
    )
    .addOption(fieldOption('--flashboot <mode>', 'mode of idle workers', 'flashBootType').choices(FLASHBOOTS))
    .addOption(fieldOption('--start-aware <yes|no>', 'as the option of serve', 'startAware').choices(['yes', 'no']))
    .addOption(fieldOption('-n, --days <n>', 'number of past days to play (default: all)', 'days'))
  withConnection(command)
    .summary('play past jobs with other settings')
    .description(
      'say what other settings would have done with the jobs that an endpoint had, and what those of today did',
    )
    .action(whatIf)
}

async function whatIf(endpoint: string, options: WhatIfOptions): Promise<void> {
  const { idleTimeout, workersMin, workersMax, scalerType, scalerValue, flashboot, startAware, days } = options
  const given = {
    idleTimeout,
    workersMin,
    workersMax,
    scalerType,
    scalerValue,
    flashBootType: flashboot,
    startAware: startAware === undefined ? undefined : String(startAware === 'yes'),
    days,
  }
  const query = new URLSearchParams(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
  const answer = await withEndpointName(options, endpoint, id =>
    ask(options, `/v2/serverless/${encodeURIComponent(id)}/whatif?${query}`),
  )
  const shown = await answerValue<WhatIfShown>(answer)
  if (wantsJson(options)) return printValue(options, shown as unknown as TableRow)
  printText(whatIfHead(shown, endpoint))
  process.stdout.write(whatIfTable(shown))
}
