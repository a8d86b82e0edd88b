/** The note of the head of the audit log, in the data directory. */
import { existsSync, readFileSync } from 'node:fs'
import { AppError } from '../core/errors.ts'
import { writeDurably } from '../disk/durable-file.ts'
import type { AuditHeadNote } from '../ports/audit-head.ts'

/** The note in a file: the number of the entry and its hash in one line. */
export function createAuditHeadNote(file: string): AuditHeadNote {
  return {
    read() {
      if (!existsSync(file)) return null
      const match = /^(\d{1,15}) ([\da-f]{64})\n$/.exec(readFileSync(file, 'utf8'))
      if (match === null) throw new AppError('internal', `${file} is not what the server wrote`)
      return { sequence: Number(match[1]), hash: match[2]! }
    },
    keep: ({ sequence, hash }) => writeDurably(file, `${sequence} ${hash}\n`),
  }
}
