import { AppError, invalidRequest } from '../../core/errors.ts'
import type { OwnerId } from '../../core/ids.ts'
import { LargeSubmissionReader } from '../../core/jobs/large-submission.ts'
import { type LargeText, MAX_INPUT_BYTES, ONE_ROW_BYTES } from '../../core/jobs/large-text.ts'
import type { Submission } from '../../core/jobs/submission.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { LargeTexts, LargeTextWriter, PassingBody } from './large-texts.ts'

/** Makes a job of a submission. Its input has no job, and is removed, where this fails. */
type Submit<Job> = (submission: Submission) => Promise<Job>

/**
 * Inputs that are larger than what is held in memory: stored in parts as they arrive. The parts belong to nobody until
 * the insert of the job takes them, so a body that breaks off leaves nothing but them.
 */
export class LargeInputs {
  readonly #texts
  readonly #quotas
  readonly #maxBytes

  /** @param maxBytes limit of the bodies of run and runsync; undefined for the limit that each has by itself */
  constructor(texts: LargeTexts, quotas: Quotas, maxBytes: number | undefined) {
    this.#texts = texts
    this.#quotas = quotas
    this.#maxBytes = maxBytes
  }

  /** The limits of a body, in bytes: of one that is held in memory, and of one that passes. */
  bodyLimit(kind: 'run' | 'runsync'): { readonly keptBytes: number; readonly passedBytes: number } {
    const passedBytes = this.#maxBytes ?? MAX_INPUT_BYTES[kind]
    return { keptBytes: Math.min(passedBytes, ONE_ROW_BYTES), passedBytes }
  }

  /**
   * Receives a body of run or runsync to its end, stores its input, and makes a job of it.
   * @param job `submit` makes it; `ended` aborts with the reason why its sender may not have it any more
   * @throws that reason, AppError `invalid` for a body that is refused, or whose connection ended, `rate_limited` past
   * a limit of the account, `unavailable` when the store failed; and as `submit` does
   */
  async receive<Job>(
    owner: OwnerId,
    body: PassingBody,
    { ended, submit }: { readonly ended: AbortSignal; readonly submit: Submit<Job> },
  ): Promise<Job> {
    // Before anything of it is read and stored: the client may have gigabytes to send.
    await this.#quotas.checkRoom(owner, body.announcedBytes ?? ONE_ROW_BYTES)
    return this.#submitted(owner, submit, async writer => {
      const reader = new LargeSubmissionReader(part => writer.add(part))
      const decoder = new TextDecoder('utf-8', { fatal: true })
      for await (const piece of body.pieces) {
        ended.throwIfAborted()
        if (reader.isRefused) continue
        reader.push(decoded(() => decoder.decode(piece, { stream: true })))
        await writer.storeWhole()
      }
      if (!reader.isRefused) reader.push(decoded(() => decoder.decode()))
      ended.throwIfAborted()
      const reading = reader.end()
      if ('failures' in reading) throw invalidRequest(reading.failures)
      return reading.submission
    })
  }

  /**
   * Copies a large input for another job.
   * @param submission the other job, without its input
   * @throws AppError as {@link receive}, or `not_found` when the input is gone
   */
  async copy<Job>(owner: OwnerId, input: LargeText, submission: Submission, submit: Submit<Job>): Promise<Job> {
    await this.#quotas.checkRoom(owner, input.bytes)
    return this.#submitted(owner, submit, async writer => {
      for await (const part of this.#texts.read(input)) {
        writer.add(part)
        await writer.storeWhole()
      }
      return submission
    })
  }

  /** @param read writes the input, and returns the submission without it */
  async #submitted<Job>(
    owner: OwnerId,
    submit: Submit<Job>,
    read: (writer: LargeTextWriter) => Promise<Submission>,
  ): Promise<Job> {
    const writer = this.#texts.write(owner, 'input')
    try {
      const submission = await read(writer)
      const input = await writtenInput(writer)
      // The parts of an input that is one row are not needed.
      if (input.largeInput === undefined) await writer.settle()
      const job = await submit({ ...submission, ...input })
      writer.keep()
      return job
    } finally {
      // The store changes nothing where the job has the text.
      await writer.settle()
    }
  }
}

/** The input that was written. Up to the size of one row it is as any other. */
async function writtenInput(writer: LargeTextWriter): Promise<Pick<Submission, 'input' | 'largeInput'>> {
  if (!writer.isBegun) return { input: writer.waiting }
  await writer.storeRest()
  return writer.bytes > ONE_ROW_BYTES ? { input: '', largeInput: writer.text } : { input: await writer.joined() }
}

/** @throws AppError `invalid` for bytes that are not UTF-8 */
function decoded(decode: () => string): string {
  try {
    return decode()
  } catch {
    throw new AppError('invalid', 'the request body is not UTF-8')
  }
}
