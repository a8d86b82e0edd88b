/** Holds the data directory that it is given until it is killed; prints what came of it. */
import { lockDataDir } from '../../src/store/data-dir-lock.ts'

const lock = lockDataDir(process.argv[2] ?? '')
if (!lock.held) lock.publish({ pid: process.pid, url: 'http://127.0.0.1:1' })
process.stdout.write(lock.held ? 'held\n' : 'mine\n')
process.stdin.resume()
