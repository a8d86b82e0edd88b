/** How far the starts of this server are: the downloads of images, as nodes tell of them. */
import type { StartWatch } from '../../ports/driver.ts'

/** Tells those who watch starts, each by the name of its pod. */
export class StartProgress {
  readonly #watches = new Map<string, { readonly watch: StartWatch; isPulling: boolean }>()

  /** Tells of a pod from now on. */
  begin(pod: string, watch: StartWatch | undefined): void {
    if (watch !== undefined) this.#watches.set(pod, { watch, isPulling: false })
  }

  /** Tells of it no more. */
  end(pod: string): void {
    this.#watches.delete(pod)
  }

  /** Its node downloads its image. */
  pulls(pod: string): void {
    const started = this.#watches.get(pod)
    if (started === undefined || started.isPulling) return
    started.isPulling = true
    started.watch.pulling(null)
  }

  /** Its node has its image, or its program runs. */
  hasImage(pod: string): void {
    const started = this.#watches.get(pod)
    if (started?.isPulling !== true) return
    started.isPulling = false
    started.watch.pulled()
  }
}
