/**
 * The program that holds the network of one worker: `door.ts <settings as JSON> <command...>`. It runs in the worker's network but
 * outside of its cage, so it sees the sockets of the server, and the worker does not see it.
 *
 * What the worker calls at the address in its environment goes to the worker surface, and nowhere else. What the gateway sends to the
 * worker comes through a socket beside its folder. It starts the worker once all of this is there, and ends as the worker ends.
 */
import { spawn } from 'node:child_process'
import { closeSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, Socket } from 'node:net'
import { constants } from 'node:os'
import { listenAtFile, shortSocketPath } from '../../disk/socket-file.ts'
import { DOOR_PROGRAM, type DoorSettings, OPTIONS_FD, SERVER_FD } from './door-settings.ts'

/** Most connections in each direction; more wait in the system's queue or are refused by it. */
const MAX_CONNECTIONS = 1_024
/** How often it is looked whether the worker has begun to listen. */
const LOOK_MS = 50
/** A relay is replaced within this time. */
const TRIES = 30
const PAUSE_MS = 100
const LISTENING = '0A'

const [settings = '{}', program = '', ...words] = process.argv.slice(2)
const { surface, socket, serves, control } = JSON.parse(settings) as DoorSettings

process.title = DOOR_PROGRAM
// The worker is asked to end, and this ends with it.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => {})

if (surface !== null) await listenOn(createServer({ allowHalfOpen: true }, toSurface), surface)
for (const { port, path } of serves) void serve(port, path)
if (control !== null) await outside(control)
begin()

/** A connection of the worker to the address in its environment. */
function toSurface(inner: Socket): void {
  void reach(() => connect({ path: shortSocketPath(socket), allowHalfOpen: true }), TRIES).then(
    outer => coupled(inner, outer),
    () => inner.destroy(),
  )
  inner.on('error', () => inner.destroy())
}

/**
 * Connections of the gateway to a port of the worker. As long as nobody listens there is no socket either, so that who connects is
 * refused as without a cage.
 */
async function serve(port: number, path: string): Promise<void> {
  for (;;) {
    while (!isListening(port)) await pause(LOOK_MS)
    const refused = Promise.withResolvers<void>()
    const server = createServer({ allowHalfOpen: true, noDelay: true }, outer => {
      outer.on('error', () => outer.destroy())
      void reach(() => connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true }), 1).then(
        inner => coupled(outer, inner),
        () => {
          outer.destroy()
          refused.resolve()
        },
      )
    })
    await listenOn(server, path)
    await refused.promise
    rmSync(path, { force: true })
    server.close()
  }
}

/** Tells the server that the network is there, and waits until it leads to the outside. */
async function outside(path: string): Promise<void> {
  await listenOn(
    createServer(held => held.on('error', () => {})),
    path,
  )
  const server = new Socket({ fd: SERVER_FD })
  server.write(`${process.pid}\n`)
  let told = ''
  server.on('error', () => {})
  for await (const piece of server) {
    told += piece
    if (told.endsWith('\n')) break
  }
  server.destroy()
  if (told === 'go\n') return
  console.error(`runyard: ${told.trim() || 'the server ended before the network of the worker was there'}`)
  process.exit(1)
}

function begin(): void {
  const child = spawn(program, words, { stdio: ['inherit', 'inherit', 'inherit', OPTIONS_FD] })
  closeSync(OPTIONS_FD)
  child.on('error', error => {
    console.error(`runyard: the worker cannot be started: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, name) => process.exit(code ?? 128 + (name === null ? 0 : constants.signals[name])))
}

/** Connects, again after a pause where nobody is there yet. */
async function reach(attempt: () => Socket, tries: number): Promise<Socket> {
  for (let left = tries; ; left -= 1) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const made = attempt().once('connect', resolve).once('error', reject)
    try {
      await promise
      return made
    } catch (error) {
      made.destroy()
      if (left <= 1) throw error
    }
    await pause(PAUSE_MS)
  }
}

/** Each half ends by itself; a cut of one is a cut of the other. */
function coupled(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => {})
    from.on('close', hadError => {
      if (hadError || !from.readableEnded) to.destroy()
    })
    from.pipe(to)
  }
  if (one.destroyed) other.destroy()
}

function isListening(port: number): boolean {
  return ['/proc/self/net/tcp', '/proc/self/net/tcp6'].some(table =>
    textOf(table)
      .split('\n')
      .some(line => {
        const [, local = '', , state] = line.trim().split(/\s+/)
        return state === LISTENING && Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16) === port
      }),
  )
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

async function listenOn(server: Server, at: string | { host: string; port: number }): Promise<void> {
  server.maxConnections = MAX_CONNECTIONS
  if (typeof at === 'string') return listenAtFile(server, at)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen({ ...at }, resolve)
  await promise
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
