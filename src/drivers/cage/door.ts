/**
 * The program that holds the network of one worker: `door.ts <settings as JSON> <command...>`. It runs in the worker's
 * network and outside its cage, so it reaches the sockets of the server, and the worker does not see it.
 *
 * Calls of the worker to the address in its environment go to the worker surface, and nowhere else; those of a
 * function of an app also to what clients call. Requests of the gateway come through a socket beside the worker's
 * folder. It starts the worker when all of this is ready, and ends as the worker ends.
 */
import { spawn } from 'node:child_process'
import { closeSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, Socket } from 'node:net'
import { constants } from 'node:os'
import { joinSockets } from '../../disk/joined-sockets.ts'
import { readOptional } from '../../disk/optional-files.ts'
import { listenAtFile, shortSocketPath } from '../../disk/socket-file.ts'
import { DOOR_PROGRAM, type DoorSettings, FILTER_FD, OPTIONS_FD, SERVER_FD } from './door-settings.ts'

/** Limit of connections in each direction; further ones wait in the system's queue or are refused by it. */
const MAX_CONNECTIONS = 1_024
/** Interval between checks that the worker listens. */
const LISTEN_CHECK_MS = 50
/** Attempts and the pause between them: long enough for the replacement of a relay. */
const TRIES = 30
const PAUSE_MS = 100
const LISTENING = '0A'
const LOOPBACK = '127.0.0.1'

const [settings = '{}', program = '', ...words] = process.argv.slice(2)
const { surface, socket, functions, serves, control } = JSON.parse(settings) as DoorSettings

process.title = DOOR_PROGRAM
// The worker gets the signal too, and this program ends with it.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => {})

const functionPorts = functions?.ports ?? []
// At a port for both, the socket of functions has the worker surface, too.
if (surface !== null && !functionPorts.includes(surface.port)) await listenOn(leadingTo(socket), surface)
// A port below 1024 cannot be had; the function is refused there.
for (const port of functionPorts)
  await listenOn(leadingTo(functions!.socket), { host: LOOPBACK, port }).catch(error => console.error(String(error)))
for (const { port, path } of serves) void serve(port, path)
if (control !== null) await outside(control)
begin()

/** Leads connections of the worker to a socket of the server. */
function leadingTo(path: string): Server {
  return createServer({ allowHalfOpen: true }, inner => {
    void reach(() => connect({ path: shortSocketPath(path), allowHalfOpen: true }), TRIES).then(
      outer => joinSockets(inner, outer),
      () => inner.destroy(),
    )
    inner.on('error', () => inner.destroy())
  })
}

/**
 * Connections of the gateway to a port of the worker. While the worker does not listen there is no socket either, so
 * connections are refused as without a cage.
 */
async function serve(port: number, path: string): Promise<void> {
  for (;;) {
    while (!isListening(port)) await pause(LISTEN_CHECK_MS)
    const refused = Promise.withResolvers<void>()
    const server = createServer({ allowHalfOpen: true, noDelay: true }, outer => {
      outer.on('error', () => outer.destroy())
      void reach(() => connect({ host: LOOPBACK, port, noDelay: true, allowHalfOpen: true }), 1).then(
        inner => joinSockets(outer, inner),
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

/** Reports to the server that the network exists, and waits until it is connected to the outside. */
async function outside(path: string): Promise<void> {
  await listenOn(
    createServer(connection => connection.on('error', () => {})),
    path,
  )
  const server = new Socket({ fd: SERVER_FD })
  server.write(`${process.pid}\n`)
  let reply = ''
  server.on('error', () => {})
  for await (const piece of server) {
    reply += piece
    if (reply.endsWith('\n')) break
  }
  server.destroy()
  if (reply === 'go\n') return
  console.error(`runyard: ${reply.trim() || 'the server ended before the network of the worker was there'}`)
  process.exit(1)
}

function begin(): void {
  const child = spawn(program, words, { stdio: ['inherit', 'inherit', 'inherit', OPTIONS_FD, FILTER_FD] })
  closeSync(OPTIONS_FD)
  closeSync(FILTER_FD)
  child.on('error', error => {
    console.error(`runyard: the worker cannot be started: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, name) => process.exit(code ?? 128 + (name === null ? 0 : constants.signals[name])))
}

/** Connects, with further attempts after a pause. */
async function reach(attempt: () => Socket, tries: number): Promise<Socket> {
  for (let triesLeft = tries; ; triesLeft -= 1) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const connection = attempt().once('connect', resolve).once('error', reject)
    try {
      await promise
      return connection
    } catch (error) {
      connection.destroy()
      if (triesLeft <= 1) throw error
    }
    await pause(PAUSE_MS)
  }
}

function isListening(port: number): boolean {
  return ['/proc/self/net/tcp', '/proc/self/net/tcp6'].some(table =>
    readOptional(table)
      .split('\n')
      .some(line => {
        const [, local = '', , state] = line.trim().split(/\s+/)
        return state === LISTENING && Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16) === port
      }),
  )
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
