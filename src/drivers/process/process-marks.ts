/**
 * Marks by which everything that a worker without a cage has started is found. A mark is a limit on the size of files
 * that no file reaches and that no other worker has: the kernel hands it on to each process that is started, whatever
 * that does to its parents, its session and its variables, and without rights of root a process can only lower it
 * (docs/adr/0050-how-workers-are-frozen.md).
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, createReadStream, readFileSync } from 'node:fs'
import { platform } from 'node:os'
import { delimiter, join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import type { LackOfMarks } from '../../core/workers/isolation.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import { hardFileLimit } from '../base/process-table.ts'
import { isProgram } from './program-files.ts'

/** The program that gives workers their marks. */
export interface Marker {
  /** The path of `prlimit`. */
  readonly program: string
  /** Marks are below this and not below the half of it; in bytes. */
  readonly below: string
}

/** The mark of one worker. */
export interface Mark {
  readonly worker: WorkerId
  /** The limit on the size of files. */
  readonly bytes: string
}

/** Larger than any file, and well within what the kernel compares. */
const MOST = 2n ** 62n
/** Limits below this might be reached, and are too few for all workers to differ. */
const LEAST = 2n ** 50n
const TRIAL_MS = 5_000
const MAX_LINE = 256

/** Finds what gives workers their marks on this machine, by a trial. @param path folders of programs */
export function findMarker(path = ''): Marker | LackOfMarks {
  if (platform() !== 'linux') return { problem: 'this system has no marks for processes', action: 'use Linux' }
  const folders = new Set([...path.split(delimiter), '/usr/bin', '/bin'])
  const program = [...folders].map(folder => join(folder, 'prlimit')).find(isExecutable)
  if (program === undefined) return { problem: 'prlimit is missing', action: 'install util-linux' }
  const below = ownLimit()
  if (below < LEAST)
    return { problem: 'the limit on the size of files (ulimit -f) is low', action: 'start the server without it' }
  const { status } = spawnSync(program, [...limitWords(String(below - 1n)), program, '--version'], {
    stdio: 'ignore',
    timeout: TRIAL_MS,
  })
  if (status === 0) return { program, below: String(below) }
  return { problem: `${program} cannot set the limit on the size of files`, action: 'install util-linux' }
}

/** The command that is started for a worker, and its mark; null for no mark. */
export interface MarkedCommand {
  readonly mark: Mark | null
  /** The path of a program. */
  readonly program: string
  readonly words: readonly string[]
}

/**
 * A command that gives itself the mark of a worker and then becomes its program; the program itself where there are no
 * marks.
 * @throws WorkerStartError for a script whose interpreter is missing, which would end after its start with a sentence
 * of `prlimit`
 */
export async function markedCommand(
  marker: Marker | null,
  worker: WorkerId,
  program: string,
  [name, ...words]: readonly string[],
): Promise<MarkedCommand> {
  if (marker === null) return { mark: null, program, words }
  await requireInterpreter(name ?? program, program)
  const bytes = bytesFor(marker, worker)
  return { mark: { worker, bytes }, program: marker.program, words: [...limitWords(bytes), program, ...words] }
}

function bytesFor({ below }: Marker, worker: WorkerId): string {
  const half = BigInt(below) / 2n
  let number = 0n
  for (const letter of worker) number = (number * 131n + BigInt(letter.codePointAt(0) ?? 0)) % half
  return String(half + number)
}

async function requireInterpreter(name: string, program: string): Promise<void> {
  const [line = ''] = (await readBeginning(program)).split('\n')
  const [interpreter = ''] = line.slice(2).trim().split(/[ \t]/)
  if (!line.startsWith('#!') || !interpreter.startsWith('/') || (await isProgram(interpreter))) return
  throw new WorkerStartError({ kind: 'program_refused', name, code: 'ENOENT' })
}

/** The first letters of a program; none of one that may only be run. */
async function readBeginning(program: string): Promise<string> {
  let text = ''
  try {
    for await (const piece of createReadStream(program, { end: MAX_LINE - 1, encoding: 'latin1' })) text += piece
  } catch {
    return ''
  }
  return text
}

/** The limit that this process has itself. */
function ownLimit(): bigint {
  const hard = hardFileLimit(readFileSync('/proc/self/limits', 'latin1'))
  return hard === null || !/^\d+$/.test(hard) || BigInt(hard) > MOST ? MOST : BigInt(hard)
}

function limitWords(bytes: string): string[] {
  return [`--fsize=${bytes}:${bytes}`]
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
