/** The program of a thread that copies a database: the copy is made in one call, which holds its thread. */
import { DatabaseSync } from 'node:sqlite'
import { workerData } from 'node:worker_threads'
import { CHANGE_COUNT } from './change-note.ts'

const { from, to } = workerData as { readonly from: string; readonly to: string }
using database = new DatabaseSync(from, { readOnly: true, timeout: 5_000 })
database.prepare('VACUUM INTO ?').run(to)
// The copy changes on its own, so the change count of the original does not apply.
using copy = new DatabaseSync(to)
copy.exec(`DROP TABLE IF EXISTS ${CHANGE_COUNT}; PRAGMA incremental_vacuum`)
