import { initial } from './0001-initial.ts'
import type { Migration } from './migration.ts'

/** All steps, in order. */
export const migrations: readonly Migration[] = [initial]
