/** A disk that loses at a power cut what was not flushed: contents of files and names in folders, independently. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'

/** The power cut: no further operation is done. */
export class PowerCut extends Error {}

/** The state of a folder or file after a power cut. */
type Durable = { readonly names: ReadonlyMap<string, number> } | { readonly content: Buffer }

const STEPS = ['openSync', 'writeFileSync', 'fsyncSync', 'renameSync', 'linkSync', 'mkdirSync', 'rmSync'] as const
type Step = (typeof STEPS)[number]
type Run = (...args: unknown[]) => unknown

/** The disk below one real folder, while {@link withPowerCut} runs. */
class ForgetfulDisk {
  readonly #root: string
  readonly #cutAt: number
  readonly #durable = new Map<number, Durable>()
  readonly #paths = new Map<number, string>()
  #steps = 0

  constructor(root: string, cutAt: number) {
    this.#root = root
    this.#cutAt = cutAt
    this.#flush(root)
  }

  wrap(step: Step, real: Run): Run {
    return (...args) => {
      const path = this.#pathOf(args[0])
      if (path?.startsWith(this.#root) !== true) return real(...args)
      this.#steps += 1
      if (this.#steps >= this.#cutAt) throw new PowerCut()
      const result = real(...args)
      if (step === 'openSync') this.#opened(result as number, path)
      if (step === 'fsyncSync') this.#flush(path)
      return result
    }
  }

  /** Writes the state after the power cut to a separate folder. */
  restore(to: string): void {
    const put = (inode: number, path: string) => {
      const node = this.#durable.get(inode)
      if (node === undefined) fs.writeFileSync(path, '')
      else if ('content' in node) fs.writeFileSync(path, node.content)
      else {
        fs.mkdirSync(path, { recursive: true })
        for (const [name, inner] of node.names) put(inner, join(path, name))
      }
    }
    put(fs.statSync(this.#root).ino, to)
  }

  #pathOf(target: unknown): string | undefined {
    return typeof target === 'number' ? this.#paths.get(target) : String(target)
  }

  /** Forgets a removed file: a new file may get its number. */
  #opened(handle: number, path: string): void {
    this.#paths.set(handle, path)
    const { ino, size } = fs.fstatSync(handle)
    if (size === 0) this.#durable.delete(ino)
  }

  #flush(path: string): void {
    const { ino } = fs.statSync(path)
    if (!fs.statSync(path).isDirectory()) {
      this.#durable.set(ino, { content: fs.readFileSync(path) })
      return
    }
    const names = fs.readdirSync(path).map(name => [name, fs.statSync(join(path, name)).ino] as const)
    for (const [name, inode] of names) {
      // An empty folder is a folder, not an empty file.
      const isFolder = fs.statSync(join(path, name)).isDirectory()
      if (isFolder && !this.#durable.has(inode)) this.#durable.set(inode, { names: new Map() })
    }
    this.#durable.set(ino, { names: new Map(names) })
  }
}

/**
 * Runs something that writes below `root`, and cuts the power at its `cutAt`-th step.
 * @returns a folder with the remaining data, and whether all was done before the cut
 */
export function withPowerCut(root: string, cutAt: number, run: () => void): { left: string; done: boolean } {
  const disk = new ForgetfulDisk(root, cutAt)
  const files = fs as unknown as Record<Step, Run>
  const real = Object.fromEntries(STEPS.map(step => [step, files[step]])) as Record<Step, Run>
  for (const step of STEPS) files[step] = disk.wrap(step, real[step])
  syncBuiltinESMExports()
  let done = false
  try {
    run()
    done = true
  } catch (error) {
    if (!(error instanceof PowerCut)) throw error
  } finally {
    Object.assign(files, real)
    syncBuiltinESMExports()
  }
  const remains = join(root, '..', `${basename(root)}-left-${cutAt}`)
  disk.restore(remains)
  return { left: remains, done }
}
