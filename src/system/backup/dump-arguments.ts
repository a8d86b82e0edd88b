/** Arguments of `pg_dump`: those of the server's own copies, and of the command in messages to people. */

/** The table whose rows no copy has: the present active server means nothing to a server on the copy. */
export const LEASE_TABLE = '*.server_lease'

/** The address of a PostgreSQL for arguments of commands, which others on the machine can read. */
export function withoutPassword(url: string): string {
  const address = new URL(url)
  address.password = ''
  address.searchParams.delete('password')
  return address.href.replaceAll('+', '%20')
}
