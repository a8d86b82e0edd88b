/**
 * Sockets with names in the file system. Programs in other networks of this machine reach them through their files.
 */
import { chmodSync, openSync, renameSync } from 'node:fs'
import type { Server } from 'node:net'
import { dirname, join } from 'node:path'

const folders = new Map<string, number>()

/**
 * Listens at a path, which appears once it accepts connections and replaces an earlier one. Only the same user can
 * connect.
 * @throws the system's error
 */
export async function listenAtFile(server: Server, path: string): Promise<void> {
  // Node removes the file by the name at which it listened: that may be another program's by then.
  const own = shortSocketPath(`${path}.${process.pid}`)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(own, () => {
      server.off('error', reject)
      resolve()
    })
  })
  chmodSync(own, 0o600)
  renameSync(own, shortSocketPath(path))
}

/**
 * A short name of the same file, valid in this process alone: names of sockets have at most 107 bytes. The folder
 * stays open as long as the process lives, so this is for few folders.
 */
export function shortSocketPath(path: string): string {
  if (process.platform !== 'linux') return path
  const folder = dirname(path)
  const open = folders.get(folder) ?? openSync(folder, 'r')
  folders.set(folder, open)
  return join(`/proc/self/fd/${open}`, path.slice(folder.length + 1))
}
