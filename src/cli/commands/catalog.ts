import type { Command } from 'commander'
import { type ConnectionOptions, withConnection } from '../client/connection.ts'
import { pages } from '../client/pages.ts'
import { printList } from '../client/printing.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import type { Column } from '../terminal/table.ts'

const LISTS: readonly { readonly name: string; readonly wrapper: string; readonly columns: readonly Column[] }[] = [
  { name: 'gpus', wrapper: 'gpus', columns: RESOURCE_COLUMNS.gpus },
  { name: 'cpus', wrapper: 'cpus', columns: RESOURCE_COLUMNS.cpus },
  { name: 'datacenters', wrapper: 'dataCenters', columns: RESOURCE_COLUMNS.datacenters },
]

/** `runyard catalog gpus|cpus|datacenters`: names that endpoints can ask for, with those of this machine marked. */
export function addCatalog(program: Command): void {
  const group = program.command('catalog').description('list the hardware that endpoints can ask for')
  for (const { name, wrapper, columns } of LISTS) {
    withConnection(group.command(name).description(`list ${name} by their names and ids`)).action(
      async (options: ConnectionOptions) =>
        printList(options, await pages(options, `/v2/catalog/${name}`, wrapper), columns, name),
    )
  }
}
