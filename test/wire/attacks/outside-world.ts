/** A machine outside of this one, played by a network namespace of this machine. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { atEnd } from '../support/cleanup.ts'

/** Of the range for documentation (RFC 5737), so it is nobody's: the address of this machine on the way there. */
export const HERE = '203.0.113.1'

/** An address that is not one of this machine, and listens. */
export interface Outside {
  readonly host: string
  readonly port: number
}

const THERE = '203.0.113.2'
const LINK = `ryout${process.pid % 100_000}`

const LISTENER = `
const server = require('node:net').createServer(socket => socket.on('error', () => {}).end('hello'))
process.stdin.once('data', () => server.listen(0, '${THERE}', () => console.log(server.address().port)))
process.stdin.on('end', () => process.exit())
console.log('ready')
`

let outside: Promise<Outside | string> | null = null

/** Makes it once, until the end of the tests; a reason where it cannot be made. */
export function makeOutside(): Promise<Outside | string> {
  outside ??= make()
  return outside
}

async function make(): Promise<Outside | string> {
  if (process.getuid?.() !== 0) return 'only root can make a link to another network namespace'
  const child = spawn('unshare', ['--net', process.execPath, '-e', LISTENER], { stdio: ['pipe', 'pipe', 'inherit'] })
  const line = async () => String((await once(child.stdout, 'data'))[0]).trim()
  atEnd(() => {
    child.kill('SIGKILL')
  })
  const ip = (...words: string[]) => execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    await line()
    ip('link', 'add', LINK, 'type', 'veth', 'peer', 'name', 'outside', 'netns', String(child.pid))
    ip('addr', 'add', `${HERE}/30`, 'dev', LINK)
    ip('link', 'set', LINK, 'up')
    const within = (...words: string[]) =>
      execFileSync('nsenter', ['--target', String(child.pid), '--net', 'ip', ...words])
    within('addr', 'add', `${THERE}/30`, 'dev', 'outside')
    within('link', 'set', 'outside', 'up')
    child.stdin.write('listen\n')
    return { host: THERE, port: Number(await line()) }
  } catch (thrown) {
    child.kill('SIGKILL')
    return `no link to another network namespace can be made: ${(thrown as Error).message.split('\n')[0]}`
  }
}
