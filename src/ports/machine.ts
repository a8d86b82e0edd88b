/** A GPU of this machine. */
export interface MachineGpu {
  /** Its name as the vendor's tool tells it, which is the catalogue's id for the types that are in it. */
  readonly name: string
  readonly memoryGb: number
}

/** What this machine has. */
export interface MachineParts {
  readonly vcpus: number
  readonly memoryGb: number
  readonly gpus: readonly MachineGpu[]
}

/** The machine that workers run on. */
export interface Machine {
  /** What it has, as far as it can be seen; a tool that is missing or fails means none of what it would tell. */
  parts(): Promise<MachineParts>
}
