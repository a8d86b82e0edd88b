/** Statements on texts that are too large for one row. */
import { type LargeTextKind, ONE_ROW_BYTES } from '../../core/jobs/large-text.ts'

/** The id of a large text of the job of a row, as the column `large_input` or `large_output`; null without one. */
export function largeText(kind: LargeTextKind): string {
  return `CASE WHEN ${kind} IS NULL AND ${kind}_bytes > ${ONE_ROW_BYTES}
      THEN (SELECT id FROM large_texts WHERE job_id = jobs.id AND kind = '${kind}') END AS large_${kind}`
}

/** As {@link largeText}, of the input that a record keeps. */
export function recordedInput(): string {
  return `CASE WHEN input IS NULL AND input_bytes > ${ONE_ROW_BYTES}
      THEN (SELECT id FROM large_texts WHERE record_id = job_records.id) END AS large_input`
}

/** $1 text, $2 owner, $3 now, $4 kind. */
export const beginLargeText = `
  INSERT INTO large_texts (id, owner, written_at_ms, kind, parts) VALUES ($1, $2, $3, $4, 1) RETURNING id`

const UNUSED = 'job_id IS NULL AND record_id IS NULL'

/** $1 text, $2 now. */
export const continueLargeText = `
  UPDATE large_texts SET written_at_ms = $2, parts = parts + 1
  WHERE id = $1 AND ${UNUSED} AND written_at_ms > 0 RETURNING id`

/** $1 id of the part, $2 text, $3 owner, $4 the part. */
export const insertPart = 'INSERT INTO large_text_parts (id, text_id, owner, text) VALUES ($1, $2, $3, $4)'

/** $1 id of the part. */
export const findPart = 'SELECT text FROM large_text_parts WHERE id = $1'

/** $1 text, $2 job, $3 number of its parts. No row when it is not whole. */
export const takeLargeText = `
  UPDATE large_texts SET job_id = $2 WHERE id = $1 AND ${UNUSED} AND written_at_ms > 0 AND parts = $3 RETURNING id`

/** $1 job. Its record keeps its input. */
export const keepLargeInput = `
  UPDATE large_texts SET job_id = NULL, record_id = $1
  WHERE job_id = $1 AND kind = 'input' AND EXISTS (SELECT 1 FROM job_records WHERE id = $1)`

/** $1 job. */
export const giveUpOutput = `
  UPDATE large_texts SET job_id = NULL, written_at_ms = 0 WHERE job_id = $1 AND kind = 'output'`

/** $1 job. */
export const giveUpTexts = 'UPDATE large_texts SET job_id = NULL, written_at_ms = 0 WHERE job_id = $1'

/** $1 record. */
export const giveUpRecordedInput = 'UPDATE large_texts SET record_id = NULL, written_at_ms = 0 WHERE record_id = $1'

/** $1 text. */
export const giveUpLargeText = `UPDATE large_texts SET written_at_ms = 0 WHERE id = $1 AND ${UNUSED} RETURNING id`

/** $1 owner. */
export const countUnusedParts = `SELECT COALESCE(SUM(parts), 0) AS parts FROM large_texts WHERE owner = $1 AND ${UNUSED}`

/** $1 instant. The first text that is not used, and got its last part before; none of its parts is added any more. */
export const giveUpUnused = `
  UPDATE large_texts SET written_at_ms = 0 WHERE id = (
    SELECT id FROM large_texts WHERE ${UNUSED} AND written_at_ms < $1 ORDER BY written_at_ms, id LIMIT 1 {{skip_locked}})
  RETURNING id`

/** $1 text, $2 limit. */
export const deleteParts = `
  DELETE FROM large_text_parts WHERE id IN (
    SELECT id FROM large_text_parts WHERE text_id = $1 ORDER BY id LIMIT $2)
  RETURNING id`

/** $1 text. */
export const deleteLargeText = 'DELETE FROM large_texts WHERE id = $1'
