/**
 * Registries that accounts other than the operator's may name in images. Whoever names a registry makes the container
 * engine call it, from the network of this machine.
 */
export interface ImageRegistries {
  /**
   * True when a registry may be named, as far as its name says it.
   * @param registry host and port as the image has them
   */
  isAllowed(registry: string): boolean
  /**
   * Checks that an engine may call the registry now: its name is resolved where that decides.
   * @returns `unresolved` when its name has no address here
   */
  reach(registry: string): Promise<'allowed' | 'refused' | 'unresolved'>
}
