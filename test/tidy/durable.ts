/** Finds writes of files past src/disk/durable-file.ts: a power cut may lose, empty or roll back such a file. */
import { type Finding, findingsOf } from './scan.ts'

const IMPORT = /import\s+(?!type\b)(\{[^}]*\}|[^'"]*?)\s+from\s+['"](?:node:)?fs(?:\/promises)?['"]/g

const WRITERS =
  /^(?:(?:writeFile|appendFile|rename|link|symlink|copyFile|cp|open|mkdir|mkdtemp|truncate)(?:Sync)?|createWriteStream)$/

/** The names that a source imports from `node:fs` to create, move or change files or folders. */
export function findDirectWrites(source: string): Finding[] {
  return findingsOf(source, IMPORT, match => {
    const what = match[1] ?? ''
    if (!what.startsWith('{')) return `import of all of fs`
    const names = what
      .slice(1, -1)
      .split(',')
      .map(name => name.trim())
      .filter(name => !name.startsWith('type '))
      .map(name => name.split(/\s+as\s+/)[0] ?? '')
    return names.filter(name => WRITERS.test(name)).join(', ')
  }).filter(({ what }) => what !== '')
}

/** Files of `src` that may do so, and why. */
export const DIRECT_WRITERS: Readonly<Record<string, string>> = {
  'src/disk/durable-file.ts': 'all others write through it',
  'src/disk/worker-output.ts': 'output of workers, which may be lost with the machine',
  'src/cli/commands/audit.ts':
    'an export, which is flushed before the command says that it is there, and can be made again',
  'src/cli/commands/init.ts': 'a folder that can be made again',
  'src/main/folders/worker-archive.ts': 'an archive that can be made again',
  'src/cli/client/temporary-server.ts': 'the folder of a server that is removed with it',
  'src/drivers/base/log-copy.ts': 'output of workers, which may be lost with the machine',
  'src/system/backup/backup-format.ts': 'backups that are read',
  'src/system/backup/data-dir-backups.ts': 'files that are read into a backup',
  'src/disk/socket-file.ts': 'sockets, which end with their process',
  'src/doctor/gpu.ts': 'control groups, which are no files on a disk',
  'src/drivers/cage/cage.ts': 'options without a name, which are gone with their process, and caches',
  'src/drivers/cage/layer.ts': 'folders of running workers, which do not outlive the boot of the machine',
  'src/drivers/cage/outside.ts': 'a folder that is opened to reach a socket in it',
  'src/drivers/cage/own-network.ts': 'a file of a running worker, which does not outlive the boot of the machine',
  'src/drivers/base/control-group.ts': 'control groups, which are no files on a disk',
  'src/drivers/base/thread-hold.ts': 'control groups, which are no files on a disk',
  'src/drivers/cage/limits.ts': 'control groups, which are no files on a disk',
  'src/drivers/process/worker-watches.ts': 'a folder that is opened to reach sockets in it',
  'src/drivers/process/endpoint-caches.ts': 'what workers can make or download again',
  'src/drivers/process/offered-hub.ts': 'links in the cache of an endpoint, which tools of workers mend',
  'src/drivers/process/process.ts': 'notes on processes that do not outlive the boot of the machine',
  'src/drivers/process/volume-link.ts': 'links for running workers, which do not outlive the boot of the machine',
  'src/drivers/process/working-folder.ts': 'folders of running workers, which do not outlive the boot of the machine',
  'src/pump/pump.ts': 'pipes, which end with the boot of the machine',
  'src/pump/worker-pipes.ts': "pipes, which end with the boot of the machine, and the pump's log",
  'src/relay/relay-supervisor.ts': "the relay's log",
  'src/relay/spool.ts': 'files without a name, which are gone with their process',
  'src/store/engines/change-note.ts': 'a note that may be older than the database after a power cut, and never newer',
  'src/store/data-dir-lock.ts': 'server.json means nothing without the lock of a process',
  'src/store/engines/sqlite.ts': 'a file that measures how long a flush takes',
  'src/system/apps/artifact-files.ts': 'archives, which are flushed before they have their name, and folders as below',
  'src/system/apps/unpack.ts': 'folders that count in one run of the machine alone, and are made again of an archive',
  'src/system/bodies/spill-files.ts': 'files without a name, which are gone with their process',
  'src/system/files/file-draft.ts':
    'files of network volumes, which are flushed, then named, then their folder flushed',
  'src/system/files/safe-folder.ts': 'folders of network volumes, opened without links',
  'src/system/files/upload-folders.ts': 'parts of uploads, which are flushed before they get their names',
  'src/system/files/volume-files.ts': 'files of network volumes that are read, and the folder of drafts',
  'src/system/models/blob-download.ts': 'parts of files, which count only once their hash was checked',
  'src/system/models/model-folders.ts': 'links of a folder that is flushed before it gets its name',
  'src/system/observing/log-destination.ts': 'standard error, which is opened again so that no write waits',
  'src/system/worker-logs/worker-log-journal.ts': 'output of workers, which may be lost with the machine',
  'src/system/worker-logs/worker-log-output.ts': 'output of workers, which may be lost with the machine',
}
