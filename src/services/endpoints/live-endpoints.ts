import type { Caller } from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { devApp, isLiveWorker } from '../../core/endpoints/runtime-image.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import { isAppWorker } from '../accounts/app-worker-keys.ts'
import { isOnMachine } from './host-folders.ts'

/** Limit of endpoints of which the answer is kept. */
const MAX_CACHED = 10_000

/**
 * True for an endpoint whose workers are processes of the machine and run the source that a call brings, as those of a
 * dev session do.
 */
export function runsSentSource(
  ports: Pick<Ports, 'driver'>,
  endpoint: Pick<Endpoint, 'env'>,
  { image, env }: Pick<Template, 'image' | 'env'>,
): boolean {
  return isLiveWorker(image, savedEnv(endpoint, { env })) && isOnMachine(ports, image)
}

/**
 * True for an endpoint of a dev session: an edit makes a release whose functions run in fresh processes, so workers of
 * the release before take nothing more.
 */
export function isOfDevSession(
  endpoint: Pick<Endpoint, 'env'>,
  { image, env }: Pick<Template, 'image' | 'env'>,
): boolean {
  const all = savedEnv(endpoint, { env })
  return devApp(all) !== null && isLiveWorker(image, all)
}

/**
 * Refuses a caller who would choose the program of the machine by a call, which only the operator may. A worker of the
 * same app runs such a program already.
 * @param caller null for a call without a key
 * @throws AppError `forbidden`
 */
export function requireSourceRight(caller: Caller | null): void {
  if (caller !== null && (caller.operator || isAppWorker(caller))) return
  throw new AppError(
    'forbidden',
    "a call of a dev session brings its program, which runs as a process of this machine: it needs a key of the operator's account that has all rights",
  )
}

/** Guards calls of endpoints that run the source of their calls. The answer is kept for a version of an endpoint. */
export class LiveEndpoints {
  readonly #ports
  readonly #known = new Map<EndpointId, { readonly version: number; readonly isLive: boolean }>()

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** @throws AppError `forbidden` as {@link requireSourceRight}, for an endpoint that runs the source of its calls */
  async requireRight(caller: Caller, endpoint: Endpoint): Promise<void> {
    if (await this.#isLive(endpoint)) requireSourceRight(caller)
  }

  async #isLive(endpoint: Endpoint): Promise<boolean> {
    const { id, owner, version, templateId } = endpoint
    const known = this.#known.get(id)
    if (known?.version === version) return known.isLive
    const template = await this.#ports.store.templates.find(owner, templateId)
    if (template === null) return false
    const isLive = runsSentSource(this.#ports, endpoint, template)
    if (this.#known.size >= MAX_CACHED) this.#known.clear()
    this.#known.set(id, { version, isLive })
    return isLive
  }
}
