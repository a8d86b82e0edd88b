import { gunzipSync } from 'node:zlib'
import { ArtifactError } from '../../src/core/apps/archive.ts'
import type { ArtifactKey, BuildId } from '../../src/core/ids.ts'
import type { ArtifactDraft, ArtifactFiles } from '../../src/ports/artifact-files.ts'

/** Archives and folders of builds in memory, for tests in virtual time. */
export class MemoryArtifacts implements ArtifactFiles {
  readonly archives = new Map<ArtifactKey, { readonly content: Buffer; readonly changedMs: number }>()
  readonly folders = new Set<BuildId>()
  /** Number of folders that were made. */
  made = 0
  now: () => number = () => 0
  /** Awaited before a folder is made. */
  delay: () => Promise<void> = async () => {}

  async draft(key: ArtifactKey): Promise<ArtifactDraft> {
    const parts: Uint8Array[] = []
    const draft = {
      bytes: 0,
      append: async (data: Uint8Array) => {
        parts.push(data)
        draft.bytes += data.length
      },
      keep: async () => void this.archives.set(key, { content: Buffer.concat(parts), changedMs: this.now() }),
      drop: async () => {},
    }
    return draft
  }

  async bytes(key: ArtifactKey): Promise<number | null> {
    return this.archives.get(key)?.content.length ?? null
  }

  async unpack(id: BuildId, key: ArtifactKey): Promise<number | null> {
    if (this.folders.has(id)) return null
    const archive = this.archives.get(key)
    if (archive === undefined) throw new ArtifactError('does not exist on this machine')
    await this.delay()
    this.folders.add(id)
    this.made += 1
    return gunzipSync(archive.content).length
  }

  isWhole(id: BuildId): boolean {
    return this.folders.has(id)
  }

  path(id: BuildId): string {
    return `/builds/${id}`
  }

  async unpacked(): Promise<BuildId[]> {
    return [...this.folders]
  }

  async removeFolder(id: BuildId): Promise<void> {
    this.folders.delete(id)
  }

  async removeArtifact(key: ArtifactKey): Promise<void> {
    this.archives.delete(key)
  }

  async old(forMs: number): Promise<ArtifactKey[]> {
    return [...this.archives].flatMap(([key, { changedMs }]) => (changedMs <= this.now() - forMs ? [key] : []))
  }
}
