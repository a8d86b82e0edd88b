/** Requests of each tool, and the expected answers. `<name>` stands for a value that an earlier step kept. */
import { APPS, FLASH } from './apps.ts'
import { PYTHON, TERRAFORM_V1, TERRAFORM_V2 } from './others.ts'
import { RUNPODCTL_2_7, RUNPODCTL_2_14 } from './runpodctl.ts'

/** One request with what its tool looks at in the answer. */
export interface Step {
  readonly what: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  /** 200 unless it is said. */
  readonly status?: number
  /** Members of the answer, by their paths. */
  readonly shows?: Readonly<Record<string, unknown>>
  /** Values that later steps need, by name, with their paths in the answer. */
  readonly keeps?: Readonly<Record<string, string>>
  /** Sent again until the job that it asks for has ended. */
  readonly ends?: true
  /** Name of the kept key that it is sent with, in place of the user's. */
  readonly key?: string
}

/** All requests of one tool, in order. */
export interface Script {
  readonly tool: string
  readonly headers: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}

export const SCRIPTS: readonly Script[] = [
  ...[RUNPODCTL_2_7, RUNPODCTL_2_14, TERRAFORM_V1, TERRAFORM_V2, PYTHON, APPS, FLASH],
]
