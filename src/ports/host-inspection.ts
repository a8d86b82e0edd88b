import type { EngineState, Finding } from '../core/observing/diagnosis.ts'

/** Facts about the host of the server besides its hardware. */
export interface HostInspection {
  /** The isolation of workers that are processes, as a sentence for people. */
  readonly processIsolation: string
  /**
   * The container engine as it describes itself; null where none is used or found. Never rejects: the state has the
   * problem.
   */
  engine(): Promise<EngineState | null>
  /**
   * Everything that `runyard doctor` finds. Takes some seconds, and a container where there is an engine.
   * @throws AppError `unavailable` when it could not be found out
   */
  diagnose(): Promise<readonly Finding[]>
}
