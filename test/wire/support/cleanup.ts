/** Removes what a test file leaves behind, also when the file fails. */
import { chmodSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { removeFolder } from '../../support/remove-folder.ts'

type Action = () => unknown

const actions: Action[] = []
const lastResorts = new Set<() => void>()

after(async () => {
  for (const action of actions.reverse()) await action()
})

process.on('exit', () => {
  for (const action of [...lastResorts].reverse()) action()
})

// By default a signal ends the process without an exit event, and a second one in the middle of it.
for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => process.exit(1))

/** Runs at the end of the test file, the last one first. */
export function atEnd(action: Action): void {
  actions.push(action)
}

/** Runs when this process exits, however that comes about, unless it is taken back; must not wait. */
export function atExit(action: () => void): () => void {
  lastResorts.add(action)
  return () => lastResorts.delete(action)
}

/** Folder of all temporary folders of this test file. */
export const temporaryRoot = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-wire-')))
// Programs that run as another user have folders in it.
chmodSync(temporaryRoot, 0o711)
atExit(() => removeFolder(temporaryRoot))

/** A new folder that is removed at the end. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(temporaryRoot, 'f-'))
  atEnd(() => removeFolder(folder))
  return folder
}
