/** What an engine says of a container. */
export interface InspectedContainer {
  readonly Id: string
  readonly Config?: { readonly Labels?: Readonly<Record<string, string>> | null }
  readonly HostConfig?: { readonly Memory?: number }
  readonly NetworkSettings?: {
    readonly Ports?: Readonly<Record<string, readonly { readonly HostPort?: string }[] | null>> | null
    readonly Networks?: Readonly<Record<string, { readonly IPAddress?: string }>> | null
  }
  readonly State: {
    readonly Running: boolean
    readonly Pid?: number
    readonly ExitCode?: number
    readonly OOMKilled?: boolean
    readonly Error?: string
  }
}
