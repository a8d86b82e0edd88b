import { callerFromKey, isValidAt, mayUseAllJobs } from '../../core/accounts/permission.ts'
import { APP_KEY, runsApp } from '../../core/endpoints/runtime-image.ts'
import type { TemplateInput } from '../../core/endpoints/template.ts'
import { WORKER_KEY } from '../../core/endpoints/worker-key.ts'
import type { OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/**
 * The content of a template without the key of the person who deploys an app, which RunPod's SDK puts into the
 * variables: nobody else should read it there. Workers get a key of their own in its place, if the key may write all
 * jobs of the account; one with fewer rights is left out. A key of another server stays.
 * @param image the image where the content has none
 */
export async function withWorkerKey<Content extends Partial<TemplateInput>>(
  { store, vault, clock }: Pick<Ports, 'store' | 'vault' | 'clock'>,
  owner: OwnerId,
  content: Content,
  image = '',
): Promise<Content> {
  const { env } = content
  const text = env?.[APP_KEY]
  if (env === undefined || text === undefined || !runsApp(content.image ?? image, env)) return content
  const key = await store.keys.findByHash(vault.hash(text))
  if (key === null) return content
  const isOwn = key.owner === owner && isValidAt(key, clock.now())
  const { [APP_KEY]: _, ...others } = env
  const isGiven = isOwn && mayUseAllJobs(callerFromKey(key), 'write')
  return { ...content, env: isGiven ? { ...others, [APP_KEY]: WORKER_KEY } : others }
}
