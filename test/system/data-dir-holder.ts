/** Holds the data directory that it is given until it is killed; prints what came of it. */
import { lockDataDir } from '../../src/store/data-dir-lock.ts'

function hold(): string {
  const lock = lockDataDir(process.argv[2] ?? '')
  if (lock.held) return 'held'
  lock.publish({ pid: process.pid, url: 'http://127.0.0.1:1' })
  return 'mine'
}

process.stdin.resume()
const said = hold()
globalThis.gc?.()
process.stdout.write(`${said}\n`)
