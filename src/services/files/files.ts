import { type Caller, mayUseFiles, scopeVolumes } from '../../core/accounts/permission.ts'
import type { Volume } from '../../core/endpoints/volume.ts'
import type { WritingCondition } from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import { type FileKey, type FilePath, isFileName, MAX_KEY_BYTES, readFileKey } from '../../core/files/file-key.ts'
import type { VolumeId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import type {
  FileFacts,
  FileList,
  FileUpload,
  ListRequest,
  OpenFile,
  UploadPart,
  VolumeFiles,
} from '../../ports/volume-files.ts'
import type { Access } from '../accounts/access.ts'
import { VolumeUse } from './volume-use.ts'

/** Limits of S3: bytes of a file in one request, of a part, and of parts before the last one; number of parts. */
export const FILE_LIMITS = {
  putBytes: 5 * 1024 ** 3,
  partBytes: 5 * 1024 ** 3,
  minPartBytes: 5 * 1024 ** 2,
  parts: 10_000,
}

/** A network volume, or a folder of one, as a bucket. */
export interface Bucket {
  readonly name: string
  readonly volume: Volume
  /** The folder of its keys. */
  readonly base: FilePath
}

/** Bytes that arrive, with their number. */
export interface IncomingFile {
  readonly bytes: number
  /** The bytes. Throws where they are not the announced ones. */
  readonly pieces: () => AsyncIterable<Uint8Array>
  readonly condition: WritingCondition
}

/** A part that a completion names. */
export interface NamedPart {
  readonly number: number
  readonly tag: string
}

/** Files of the network volumes of accounts, by the rights of keys. */
export class Files {
  readonly #ports
  readonly #access
  readonly #files
  readonly #use

  constructor(ports: Ports, files: VolumeFiles, access: Access) {
    this.#ports = ports
    this.#access = access
    this.#files = files
    this.#use = new VolumeUse(files, ports.clock)
  }

  /** The network volumes whose files the caller may read. */
  async buckets(caller: Caller): Promise<Volume[]> {
    const all = await this.#ports.store.volumes.list(caller.owner)
    return all.filter(({ id }) => mayUseFiles(caller, 'read', id))
  }

  /**
   * The bucket of a name: the network volume with that id. For a key whose scope names one network volume, each other
   * name is a folder of it: `rp_upload` names a bucket by the month unless it is told one.
   * @throws FileError `NoSuchBucket`, AppError `forbidden`
   */
  async bucket(caller: Caller, name: string, level: 'read' | 'write'): Promise<Bucket> {
    const volume = await this.#volume(caller, name)
    if (volume !== null) {
      this.#access.requireFiles(caller, level, volume.id)
      return { name, volume, base: [] }
    }
    const [only, ...more] = scopeVolumes(caller.scope)
    if (only === undefined || more.length > 0 || !isFileName(name)) throw new FileError('NoSuchBucket')
    const onlyVolume = await this.#volume(caller, only)
    if (onlyVolume === null) throw new FileError('NoSuchBucket')
    this.#access.requireFiles(caller, level, onlyVolume.id)
    return { name, volume: onlyVolume, base: [name] }
  }

  async #volume(caller: Caller, id: string): Promise<Volume | null> {
    return /^[a-z0-9]{1,63}$/.test(id) ? this.#ports.store.volumes.find(caller.owner, id as VolumeId) : null
  }

  /** Null if there is no such file. @throws FileError for a key that no file can have, as all here */
  async open(bucket: Bucket, key: string): Promise<OpenFile | null> {
    const { path, isFolder } = placeIn(bucket, key)
    return isFolder ? null : this.#files.open(bucket.volume.id, path)
  }

  /** A file, or for a key with a slash at its end a folder; null if there is none. */
  facts(bucket: Bucket, key: string): Promise<FileFacts | null> {
    const { path, isFolder } = placeIn(bucket, key)
    return this.#files.facts(bucket.volume.id, path, isFolder)
  }

  /** Keys of a list are as long as the bucket allows. */
  list({ volume, base }: Bucket, request: ListRequest, signal: AbortSignal): Promise<FileList> {
    return this.#files.list(volume.id, base, request, signal)
  }

  /**
   * Stores a file, in one step when all of it is there; for a key with a slash at its end it makes a folder.
   * @throws FileError, after which nothing has changed
   */
  async put(bucket: Bucket, key: string, file: IncomingFile): Promise<FileFacts> {
    const { path, isFolder } = placeIn(bucket, key)
    const { volume } = bucket
    if (file.bytes > FILE_LIMITS.putBytes) throw new FileError('EntityTooLarge')
    if (isFolder) return this.#putFolder(bucket, path, file)
    return this.#use.adding(volume, file.bytes, async () => {
      const draft = await this.#files.draft(volume.id, file.bytes)
      try {
        await fill(draft, file)
        return await draft.place(path, file.condition)
      } finally {
        await draft.drop()
      }
    })
  }

  async #putFolder({ volume }: Bucket, path: FilePath, { bytes, pieces }: IncomingFile): Promise<FileFacts> {
    if (bytes > 0) throw new FileError('InvalidArgument', 'a key that ends with / is a folder, which has no bytes')
    for await (const _ of pieces()) throw new FileError('IncompleteBody')
    await this.#files.makeFolder(volume.id, path)
    const facts = await this.#files.facts(volume.id, path, true)
    if (facts === null) throw new FileError('NoSuchKey')
    return facts
  }

  /** Removes a file, or an empty folder. Nothing happens without one. */
  async remove(bucket: Bucket, key: string): Promise<void> {
    const { path, isFolder } = placeIn(bucket, key)
    await this.#files.remove(bucket.volume.id, path, isFolder)
  }

  /** Begins a multipart upload. */
  async beginUpload(bucket: Bucket, key: string): Promise<FileUpload> {
    const { path, isFolder } = placeIn(bucket, key)
    if (isFolder) throw new FileError('InvalidArgument', 'a key that ends with / is a folder, which has no bytes')
    return this.#files.uploads.begin(bucket.volume.id, path)
  }

  /** The uploads to a bucket with their keys, the oldest first. */
  async uploads({ volume, base }: Bucket): Promise<(FileUpload & { readonly key: string })[]> {
    const uploads = await this.#files.uploads.list(volume.id)
    const bucketUploads = uploads.filter(({ path }) => base.every((name, at) => path[at] === name))
    return bucketUploads.map(upload => ({ ...upload, key: upload.path.slice(base.length).join('/') }))
  }

  /** Stores a part. @param md5 gives the MD5 of the bytes once all were read, hexadecimal */
  async putPart(
    bucket: Bucket,
    key: string,
    { upload, number }: { readonly upload: string; readonly number: number },
    file: Omit<IncomingFile, 'condition'>,
    md5: () => string,
  ): Promise<UploadPart> {
    if (!Number.isInteger(number) || number < 1 || number > FILE_LIMITS.parts) {
      throw new FileError('InvalidArgument', `a part has a number from 1 to ${FILE_LIMITS.parts}`)
    }
    if (file.bytes > FILE_LIMITS.partBytes) throw new FileError('EntityTooLarge')
    const { volume } = bucket
    const { id } = await this.#upload(bucket, key, upload)
    return this.#use.adding(volume, file.bytes, async () => {
      const draft = await this.#files.uploads.draft(volume.id, id, file.bytes)
      try {
        await fill(draft, file)
        return await draft.keep(number, md5())
      } finally {
        await draft.drop()
      }
    })
  }

  /** The parts of an upload. @throws FileError `NoSuchUpload` */
  async parts(bucket: Bucket, key: string, upload: string): Promise<UploadPart[]> {
    const { id } = await this.#upload(bucket, key, upload)
    return this.#files.uploads.parts(bucket.volume.id, id)
  }

  /**
   * The parts of a completion, checked, with the work that puts them together.
   * @throws FileError `InvalidPart`, `InvalidPartOrder`, `EntityTooSmall` or `NoSuchUpload`
   */
  async completion(
    bucket: Bucket,
    key: string,
    upload: string,
    named: readonly NamedPart[],
    condition: WritingCondition,
  ) {
    const stored = await this.#upload(bucket, key, upload)
    const storedParts = new Map(
      (await this.#files.uploads.parts(bucket.volume.id, stored.id)).map(part => [part.number, part]),
    )
    if (named.length === 0) throw new FileError('MalformedXML', 'a completion names at least one part')
    const isSorted = named.every(({ number }, at) => at === 0 || named[at - 1]!.number < number)
    if (!isSorted) throw new FileError('InvalidPartOrder')
    const parts = named.map(({ number, tag }, at) => {
      const part = storedParts.get(number)
      if (part === undefined || part.tag !== `"${tag.replaceAll('"', '')}"`) throw new FileError('InvalidPart')
      if (at < named.length - 1 && part.bytes < FILE_LIMITS.minPartBytes) throw new FileError('EntityTooSmall')
      return part
    })
    return {
      bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
      complete: () => this.#files.uploads.complete(bucket.volume.id, stored, parts, condition),
    }
  }

  /** Removes an upload with its parts. @throws FileError `NoSuchUpload` */
  async abort(bucket: Bucket, key: string, upload: string): Promise<void> {
    const { id } = await this.#upload(bucket, key, upload)
    await this.#files.uploads.abort(bucket.volume.id, id)
  }

  async #upload(bucket: Bucket, key: string, id: string): Promise<FileUpload> {
    const { path } = placeIn(bucket, key)
    const upload = await this.#files.uploads.find(bucket.volume.id, id)
    if (upload === null || upload.path.join('/') !== path.join('/')) throw new FileError('NoSuchUpload')
    return upload
  }
}

/** The place of a key in the volume of a bucket. */
function placeIn({ base }: Bucket, key: string): FileKey {
  const { path, isFolder } = readFileKey(key)
  const place = [...base, ...path]
  if (Buffer.byteLength(place.join('/')) > MAX_KEY_BYTES) throw new FileError('KeyTooLongError')
  return { path: place, isFolder }
}

/** @throws FileError `IncompleteBody` for another number of bytes than the announced one */
async function fill(
  draft: { readonly bytes: number; append(data: Uint8Array): Promise<void> },
  { bytes, pieces }: Pick<IncomingFile, 'bytes' | 'pieces'>,
): Promise<void> {
  for await (const piece of pieces()) {
    if (draft.bytes + piece.length > bytes) throw new FileError('IncompleteBody')
    await draft.append(piece)
  }
  if (draft.bytes !== bytes) throw new FileError('IncompleteBody')
}
