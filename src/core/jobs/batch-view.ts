import { type Batch, type BatchRequest, batchStatus } from './batch.ts'

/** A batch for clients, as a JSON text. */
export function batchView(batch: Batch): string {
  const { id, endpointId, name, total, inProgress, completed, failed, createdAtMs } = batch
  return JSON.stringify({
    id,
    endpointId,
    ...(name === null ? {} : { name }),
    status: batchStatus(batch),
    requestTotal: total,
    requestInProgress: inProgress,
    requestCompleted: completed,
    requestFailed: failed,
    createdAt: createdAtMs,
  })
}

/** A request of a batch for clients, as a JSON text; its output is passed on unchanged. */
export function batchRequestView({ id, status, output, error, startedAtMs, finishedAtMs }: BatchRequest): string {
  const members = [`"id":${JSON.stringify(id)}`, `"status":"${status}"`]
  if (output !== null) members.push(`"output":${output}`)
  if (error !== null) members.push(`"error":${JSON.stringify(error)}`)
  members.push(`"startedAt":${startedAtMs}`, `"completedAt":${finishedAtMs}`)
  return `{${members.join(',')}}`
}
