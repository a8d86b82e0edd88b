/**
 * Compiles the Python files of a build once. Otherwise the first worker of each endpoint would do that, which takes
 * longer than its start.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { RUNTIME_PYTHONS } from '../../core/endpoints/runtime-image.ts'
import type { Clock } from '../../ports/clock.ts'
import type { HostEnvironment } from '../base/host-environment.ts'
import { exists } from './program-files.ts'
import { PythonInterpreters } from './python-interpreters.ts'

/** The file that a wholly compiled build has. */
const MARK = '.runyard-compiled'
const MANIFEST = 'runpod_manifest.json'
/** Limit of the time; what is not compiled by then is compiled by workers. */
const LIMIT_MS = 60_000
/** Limit of the memory of the compiler, in bytes. A file of a stranger may want any amount. */
const MEMORY_BYTES = 1024 ** 3

/**
 * Nothing of the build runs. The compiler gives way to workers, leaves out what it cannot compile, and makes what it
 * wrote for reading alone. Files have the paths at which workers see them.
 */
const COMPILE = `
import os, py_compile, resource, sys, time
root, final, memory, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
os.nice(10)
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
end = time.monotonic() + seconds
for folder, folders, files in os.walk(root):
    if "__pycache__" in folders:
        folders.remove("__pycache__")
    sources = [name for name in files if name.endswith(".py")]
    if not sources:
        continue
    cache = os.path.join(folder, "__pycache__")
    os.chmod(folder, 0o755)
    try:
        os.makedirs(cache, exist_ok=True)
        os.chmod(cache, 0o755)
        for name in sources:
            if time.monotonic() > end:
                sys.exit("it takes too long")
            source = os.path.join(folder, name)
            seen = os.path.join(final, os.path.relpath(source, root))
            try:
                compiled = py_compile.compile(source, dfile=seen, doraise=True)
                os.chmod(compiled, 0o444)
            except (py_compile.PyCompileError, OSError, ValueError, RecursionError, MemoryError):
                pass
        os.chmod(cache, 0o555)
    except OSError:
        pass
    finally:
        os.chmod(folder, 0o555)
os.chmod(root, 0o755)
open(os.path.join(root, "${MARK}"), "w").close()
os.chmod(root, 0o555)
`

/** True for a build of which workers need to compile nothing. */
export function isCompiled(folder: string): Promise<boolean> {
  return exists(join(folder, MARK))
}

/** The program and the words that start a tool in a cage in which it may change one folder. */
export type Caging = (program: string, words: readonly string[], folder: string) => Promise<readonly string[]>

/** Compiles builds with the interpreters of this machine. */
export class BuildCompiler {
  readonly #interpreters
  readonly #cage

  /** @param cage null to compile as the user of the server, without a cage */
  constructor(hostEnv: HostEnvironment, clock: Clock, cage: Caging | null) {
    this.#cage = cage
    this.#interpreters = new PythonInterpreters(hostEnv, clock)
  }

  /**
   * Compiles a build, within a minute. Never fails: without the Python that its manifest names, or in too little time,
   * its workers compile what they import.
   * @param folder the unpacked build, which nobody uses yet
   * @param final the path at which workers will see it
   */
  async compile(folder: string, final: string): Promise<void> {
    const version = await pythonOf(folder)
    const python = version === null ? null : await this.#interpreters.find(version)
    if (python === null) return
    const words = [folder, final, String(MEMORY_BYTES), String(LIMIT_MS / 1_000)]
    const options = { env: {}, timeout: LIMIT_MS * 1.5, killSignal: 'SIGKILL' as const }
    // Its complaints are about files of a client; a worker that imports them says the same.
    const own = ['-I', '-S', '-W', 'ignore', '-c', COMPILE, ...words]
    const [program = python, ...rest] = (await this.#cage?.(python, own, folder)) ?? [python, ...own]
    await promisify(execFile)(program, rest, options).catch(() => {})
  }
}

/** The version of Python that the manifest of a build names; null where it names none that the SDK knows. */
async function pythonOf(folder: string): Promise<string | null> {
  try {
    const { pythonVersion } = Object(JSON.parse(await readFile(join(folder, MANIFEST), 'utf8'))) as {
      pythonVersion?: unknown
    }
    return RUNTIME_PYTHONS.find(version => version === pythonVersion) ?? null
  } catch {
    return null
  }
}
