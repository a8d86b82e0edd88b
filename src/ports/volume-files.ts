import type { WritingCondition } from '../core/files/conditions.ts'
import type { FilePath } from '../core/files/file-key.ts'
import type { VolumeId } from '../core/ids.ts'

/** A file as it is now. */
export interface FileFacts {
  readonly bytes: number
  readonly modifiedMs: number
  /** Entity tag with its quotes. Another one after each change. */
  readonly tag: string
}

/** A file that is read. What replaces or removes it in the meantime does not change what is read. */
export interface OpenFile extends FileFacts {
  /** The bytes from `first` to `last`. Closes the file at the end, and where the reader stops. */
  read(first: number, last: number): AsyncGenerator<Uint8Array>
  /** Closes the file unless {@link read} does. */
  close(): Promise<void>
}

/** A file that nobody else sees yet. */
export interface FileDraft {
  readonly bytes: number
  append(data: Uint8Array): Promise<void>
  /**
   * Puts the file at its place, in one step and on stable storage; makes folders on the way. Closes the draft.
   * @throws FileError `PreconditionFailed`, `NoSuchKey`, `NoSuchBucket`, or `InvalidArgument` for a file or
   *   a link in the way
   */
  place(path: FilePath, condition: WritingCondition): Promise<FileFacts>
  /** Removes the file, unless it has been placed. Never fails. */
  drop(): Promise<void>
}

/** The request of a list. */
export interface ListRequest {
  /** Beginning of the keys. */
  readonly prefix: string
  /** Keys up to this one are left out; empty for none. */
  readonly after: string
  /** True to give folders instead of what is in them. */
  readonly byFolder: boolean
  readonly limit: number
}

/** Files and folders in the order of their keys. */
export interface FileList {
  readonly files: readonly (FileFacts & { readonly key: string })[]
  /** Keys of folders, which end with a slash. */
  readonly folders: readonly string[]
  /** Key after which the list goes on; null at its end. */
  readonly next: string | null
}

/** A multipart upload. */
export interface FileUpload {
  readonly id: string
  /** The place of the file. */
  readonly path: FilePath
  readonly startedMs: number
}

/** A part of an upload. */
export interface UploadPart {
  readonly number: number
  readonly bytes: number
  /** Entity tag with its quotes: the MD5 of its bytes. */
  readonly tag: string
  readonly modifiedMs: number
}

/**
 * Files in the folders of network volumes. Links are not followed, whoever places one at whatever time; what is
 * neither a file nor a folder does not exist here.
 */
export interface VolumeFiles {
  /** Null if there is no such file. @throws FileError `NoSuchBucket` without the folder of the volume, as all here */
  open(volume: VolumeId, path: FilePath): Promise<OpenFile | null>
  /** A file, or with `isFolder` a folder, which has no bytes; null if there is none. */
  facts(volume: VolumeId, path: FilePath, isFolder?: boolean): Promise<FileFacts | null>
  /** The files below a folder. @param base the folder of the keys */
  list(volume: VolumeId, base: FilePath, request: ListRequest, signal: AbortSignal): Promise<FileList>
  /** @throws FileError `InsufficientStorage` if the disk has no room for the bytes and what others need */
  draft(volume: VolumeId, bytes: number): Promise<FileDraft>
  makeFolder(volume: VolumeId, path: FilePath): Promise<void>
  /** Removes a file, or an empty folder; others stay. */
  remove(volume: VolumeId, path: FilePath, isFolder: boolean): Promise<void>
  /** Bytes of all files and parts of a volume; a lower figure where there are too many to count. */
  measure(volume: VolumeId): Promise<number>
  readonly uploads: VolumeUploads
}

/** Multipart uploads to volumes. They outlive the server. */
export interface VolumeUploads {
  /** @throws FileError `SlowDown` if the volume has too many */
  begin(volume: VolumeId, path: FilePath): Promise<FileUpload>
  find(volume: VolumeId, id: string): Promise<FileUpload | null>
  /** Those of a volume, the oldest first. */
  list(volume: VolumeId): Promise<FileUpload[]>
  /** A draft of a part. {@link FileDraft.place} is not for it. @throws FileError as {@link VolumeFiles.draft} */
  draft(volume: VolumeId, id: string, bytes: number): Promise<PartDraft>
  /** The parts of an upload in the order of their numbers; empty for an unknown one. */
  parts(volume: VolumeId, id: string): Promise<UploadPart[]>
  /**
   * Puts the parts together at the place of the file, and removes the upload.
   * @throws FileError as {@link FileDraft.place}; the upload stays
   */
  complete(
    volume: VolumeId,
    upload: FileUpload,
    parts: readonly UploadPart[],
    condition: WritingCondition,
  ): Promise<FileFacts>
  /** Removes an upload with its parts. */
  abort(volume: VolumeId, id: string): Promise<void>
  /** Removes uploads and drafts that have not changed for a time, by the clock of the disk. */
  removeOld(forMs: number): Promise<void>
}

/** A part that is being uploaded. */
export interface PartDraft extends Pick<FileDraft, 'bytes' | 'append' | 'drop'> {
  /** Keeps it in place of an earlier one with its number. @param md5 of its bytes, hexadecimal */
  keep(number: number, md5: string): Promise<UploadPart>
}
