import { streamDurably } from '../../disk/durable-file.ts'
import { type BackupHeader, readBackup } from './backup-format.ts'

/**
 * Writes a backup from a server into a file, and checks it on the way: the file exists
 * only if the backup is complete.
 * @param report called with the bytes so far
 * @param draft path of the unfinished file, in the same folder
 * @throws AppError `invalid` when the backup was cut off or changed
 */
export async function keepBackup(
  source: AsyncIterable<Uint8Array>,
  file: string,
  report: (bytes: number, header: BackupHeader) => void,
  draft?: string,
): Promise<BackupHeader> {
  let header: BackupHeader | null = null
  // The reader stands between the source and the file, so that a fault of either ends both.
  const written: Uint8Array[] = []
  const tee = async function* () {
    for await (const piece of source) {
      written.push(piece)
      yield piece
    }
  }
  const checked = async function* () {
    const read = await readBackup(tee())
    header = read.header
    let bytes = 0
    for await (const piece of read.pieces) {
      bytes += piece.bytes.byteLength
      report(bytes, read.header)
      yield* written.splice(0)
    }
    yield* written.splice(0)
  }
  await streamDurably(file, checked(), draft)
  return header!
}
