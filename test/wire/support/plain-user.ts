/** A user that may not enter everything: the one of the test, or nobody where that is root. */
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { root } from './server.ts'

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

/** The means to run commands as that user. `uid` is null for the user of the test. */
export const plainUser = {
  user,
  uid: isRoot ? NOBODY : null,
  skip: spawnSync('test', ['-r', `${root}/package.json`], user).status === 0 ? false : 'nobody cannot read this clone',
}

/** The clause of a command of that user about a file or folder that it may not use. */
export function refusedText(path: string, done: 'entered' | 'read' | 'changed'): string {
  const { uid, mode } = statSync(path)
  const modeText = (mode & 0o7777).toString(8).padStart(3, '0')
  const owner = `it belongs to ${userName(uid)}, with mode ${modeText}`
  return `${path} may not be ${done} (EACCES): ${owner}, and this user is ${userName(plainUser.uid ?? userInfo().uid)}`
}

function userName(uid: number): string {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const name = lines.find(line => line.split(':')[2] === String(uid))?.split(':')[0]
  return name === undefined ? `uid ${uid}` : `${name} (uid ${uid})`
}
