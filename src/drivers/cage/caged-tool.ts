/** A cage for a tool of the server that reads files of clients. */
import { homedir } from 'node:os'
import { CAGE_BASE } from './arguments.ts'
import { outermost, programFolders, systemFolders } from './folders.ts'

/** A tool, and the only folder that it may change. */
export interface CagedTool {
  readonly program: string
  readonly words: readonly string[]
  readonly folder: string
}

/**
 * The words that start a tool in a cage: it reads the system and its own installation, changes one folder, has no
 * network, no variables and no other process, and ends with this one.
 * @param bwrap the program bubblewrap
 */
export async function cagedWords(bwrap: string, { program, words, folder }: CagedTool): Promise<string[]> {
  const { readable, links } = systemFolders()
  const own = await programFolders({ image: folder, programs: [program], path: '', home: homedir() })
  return [
    ...[bwrap, ...CAGE_BASE, '--unshare-net', '--die-with-parent', '--proc', '/proc', '--dev', '/dev'],
    ...['--tmpfs', '/tmp', ...links.flatMap(({ path, target }) => ['--symlink', target, path])],
    ...outermost([...readable, ...own]).flatMap(path => ['--ro-bind-try', path, path]),
    ...['--bind', folder, folder, '--remount-ro', '/', '--clearenv', '--chdir', folder, '--', program, ...words],
  ]
}
