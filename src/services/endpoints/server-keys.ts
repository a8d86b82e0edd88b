import { callerFromKey, isValidAt, mayUseAllJobs } from '../../core/accounts/permission.ts'
import { APP_KEY, runsApp } from '../../core/endpoints/runtime-image.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import type { Template, TemplateInput } from '../../core/endpoints/template.ts'
import { WORKER_KEY } from '../../core/endpoints/worker-key.ts'
import type { OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

type Env = Readonly<Record<string, string>>
type Access = Pick<Ports, 'store' | 'vault' | 'clock'>

/**
 * The content of a template without the key of the person who deploys an app, which RunPod's SDK puts into the
 * variables: nobody else should read it there. Workers get a key of their own in its place, if the key may write all
 * jobs of the account; one with fewer rights is left out. A key of another server stays.
 * @param image the image where the content has none
 */
export async function withWorkerKey<Content extends Partial<TemplateInput>>(
  ports: Access,
  owner: OwnerId,
  content: Content,
  image = '',
): Promise<Content> {
  const { env } = content
  if (env === undefined || !runsApp(content.image ?? image, env)) return content
  const shown = await withoutServerKey(ports, owner, env)
  return shown === env ? content : { ...content, env: shown }
}

/** The variables of an endpoint, changed as {@link withWorkerKey} changes those of its template. */
export async function envWithWorkerKey(
  ports: Access,
  owner: OwnerId,
  env: Env,
  template: Pick<Template, 'image' | 'env'> | null,
): Promise<Env> {
  if (template === null || !runsApp(template.image, savedEnv({ env }, template))) return env
  return withoutServerKey(ports, owner, env)
}

/** The same object where it has no key of this server. */
async function withoutServerKey({ store, vault, clock }: Access, owner: OwnerId, env: Env): Promise<Env> {
  const text = env[APP_KEY]
  const key = text === undefined ? null : await store.keys.findByHash(vault.hash(text))
  if (key === null) return env
  const isOwn = key.owner === owner && isValidAt(key, clock.now())
  const { [APP_KEY]: _, ...others } = env
  const isGiven = isOwn && mayUseAllJobs(callerFromKey(key), 'write')
  return isGiven ? { ...others, [APP_KEY]: WORKER_KEY } : others
}
