/** A control group of version 2 with one program in it, which the kernel can hold. */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Made by a check, and removed by it. */
export class FrozenGroup {
  readonly #folder

  /** @throws where this user may not make it */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder)
  }

  /** Moves a process into the group, and asks the kernel to hold it. @throws where this user may not */
  hold(pid: number): void {
    writeFileSync(join(this.#folder, 'cgroup.procs'), String(pid))
    writeFileSync(join(this.#folder, 'cgroup.freeze'), '1')
  }

  /** Thaws the processes of the group. */
  release(): void {
    writeFileSync(join(this.#folder, 'cgroup.freeze'), '0')
  }

  /** True if all processes of the group are frozen. */
  get isHeld(): boolean {
    return readFileSync(join(this.#folder, 'cgroup.events'), 'utf8').includes('frozen 1')
  }

  /** Removes the group. @returns false while there are processes in it */
  remove(): boolean {
    try {
      rmdirSync(this.#folder)
      return true
    } catch {
      return false
    }
  }
}
