/**
 * Registries that accounts other than the operator's may name in images. Whoever names a registry makes the container
 * engine call it, from the network of this machine.
 */
export interface ImageRegistries {
  /**
   * True if a registry may be named, by its name alone.
   * @param registry host and port as the image has them
   */
  isAllowed(registry: string): boolean
  /**
   * Checks that an engine may call the registry now: its name is resolved where that decides.
   * @returns `unresolved` when its name has no address here
   */
  reach(registry: string): Promise<'allowed' | 'refused' | 'unresolved'>
}
