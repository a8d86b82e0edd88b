/** What an engine says of a container. */
export interface InspectedContainer {
  readonly Id: string
  readonly Config?: { readonly Labels?: Readonly<Record<string, string>> | null }
  readonly HostConfig?: {
    readonly Memory?: number
    readonly NanoCpus?: number
    readonly PidsLimit?: number | null
    readonly StorageOpt?: Readonly<Record<string, string>> | null
    readonly NetworkMode?: string
  }
  readonly NetworkSettings?: {
    readonly Ports?: Readonly<Record<string, readonly { readonly HostPort?: string }[] | null>> | null
    readonly Networks?: Readonly<Record<string, { readonly IPAddress?: string }>> | null
  }
  readonly State: {
    /** Docker counts paused ones, Podman does not. */
    readonly Running: boolean
    readonly Paused?: boolean
    readonly Pid?: number
    readonly ExitCode?: number
    readonly OOMKilled?: boolean
    readonly Error?: string
  }
}

/** Whether it has begun and not ended. A paused one has not. */
export function hasNotEnded({ State: { Running, Paused } }: Pick<InspectedContainer, 'State'>): boolean {
  return Running || Paused === true
}
