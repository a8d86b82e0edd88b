import { APP_KEY, runsApp } from '../../core/endpoints/runtime-image.ts'
import type { TemplateInput } from '../../core/endpoints/template.ts'
import type { Ports } from '../../ports/ports.ts'

/**
 * The content of a template without the key of the person who deploys an app, which RunPod's SDK puts into the
 * variables: nobody else should read it there, and workers get a key of their own. A key of another server stays.
 * @param image the image where the content has none
 */
export async function withoutServerKey<Content extends Partial<TemplateInput>>(
  { store, vault }: Pick<Ports, 'store' | 'vault'>,
  content: Content,
  image = '',
): Promise<Content> {
  const { env } = content
  const key = env?.[APP_KEY]
  if (env === undefined || key === undefined || !runsApp(content.image ?? image, env)) return content
  if ((await store.keys.findByHash(vault.hash(key))) === null) return content
  return { ...content, env: Object.fromEntries(Object.entries(env).filter(([name]) => name !== APP_KEY)) }
}
