/**
 * The arguments of bubblewrap for one worker. A pure function, so that everything a worker can see is in one place and
 * tested.
 */
import { KERNEL_FOLDER, KERNEL_MEMORY, type Mask } from './kernel-tables.ts'
import { type Layer, shownAt } from './layer.ts'

/**
 * All that a worker in a cage sees and is. Paths are absolute and the same inside as outside unless another is named.
 */
export interface CageSpec {
  /** Existing folders and files that it may read. One inside another comes after it. */
  readonly readable: readonly string[]
  /** Folders that it may change as other workers do; {@link hidden} parts of them stay hidden. */
  readonly shared: readonly string[]
  /** The image with a private layer over it, where it has one; it lies above {@link readable}. */
  readonly layer: Layer | null
  /** Tables of the kernel that are empty here; all of them exist. */
  readonly masks: readonly Mask[]
  /** Folders and files of the server that lie in a readable folder, and are empty here. */
  readonly hidden: readonly { readonly path: string; readonly isFolder: boolean }[]
  /** Parts of hidden folders that it may read all the same: its image, and files that the server made for it. */
  readonly shown: readonly string[]
  /** Folders that it may change; they win over {@link readable} ones that hold them. */
  readonly writable: readonly string[]
  /** Its own folder for short-lived files, which is /tmp as well. */
  readonly tmp: string
  /** The file with the name servers, as /etc/resolv.conf; null for the system's. */
  readonly resolver: string | null
  /** Its network volume, which is /runpod-volume as well; null without one. */
  readonly volume: string | null
  /** More of its volumes, at paths where nothing else lies. */
  readonly mounts: readonly { readonly path: string; readonly at: string }[]
  /** Models that it may read, at their places below /runpod-volume; empty for none. */
  readonly models: readonly { readonly path: string; readonly at: string }[]
  /**
   * Its own folder for what it downloads beside them, and where that is seen; null where its network volume takes it.
   */
  readonly modelFolder: { readonly path: string; readonly at: string } | null
  /** Symbolic links of the system, such as /bin. */
  readonly links: readonly { readonly path: string; readonly target: string }[]
  /** Device files beside the harmless ones. */
  readonly devices: readonly string[]
  /** The folder in which it starts. */
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  readonly program: string
  readonly words: readonly string[]
}

/** Namespaces of its own, no capabilities, and no way to more of either. Bubblewrap itself sets no_new_privs. */
export const CAGE_BASE: readonly string[] = [
  ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--disable-userns', '--cap-drop', 'ALL', '--hostname', 'worker'],
]

/**
 * Settings of the whole kernel. The root user may write them even without any capability, and bubblewrap covers only
 * those whose folder can be written.
 */
const GLOBAL_PROC = ['sys', 'irq', 'bus', 'fs', 'driver']

/**
 * The options for bubblewrap, to be handed over in a file and not in its command line: variables are secrets. What
 * comes later lies on top of what came before.
 */
export function cageOptions(spec: CageSpec): string[] {
  const { readable, shared, layer, hidden, shown, writable, tmp, volume, links, devices, folder, env, resolver } = spec
  const { models, modelFolder, masks, mounts } = spec
  return [
    ...CAGE_BASE,
    ...['--proc', '/proc', '--dev', '/dev', '--ro-bind', '/sys', '/sys'],
    ...GLOBAL_PROC.flatMap(name => ['--ro-bind-try', `/proc/${name}`, `/proc/${name}`]),
    ...masks.flatMap(maskOptions),
    ...['--bind', tmp, '/tmp', '--dir', '/var', '--symlink', '/tmp', '/var/tmp'],
    ...links.flatMap(({ path, target }) => ['--symlink', target, path]),
    ...readable.flatMap(path => ['--ro-bind-try', path, path]),
    ...shared.flatMap(path => ['--bind-try', path, path]),
    ...(layer === null ? [] : layerOptions(layer)),
    ...(resolver === null ? [] : ['--ro-bind', resolver, '/etc/resolv.conf']),
    ...hidden.flatMap(({ path, isFolder }) => (isFolder ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path])),
    ...shown.flatMap(path => (path === layer?.image ? layerOptions(layer) : ['--ro-bind-try', path, path])),
    ...devices.flatMap(path => ['--dev-bind-try', path, path]),
    ...[...writable, tmp].flatMap(path => ['--bind', path, path]),
    ...(volume === null ? [] : ['--bind', volume, volume, '--bind', volume, '/runpod-volume']),
    ...mounts.flatMap(({ path, at }) => ['--bind', path, at]),
    ...(modelFolder === null ? [] : ['--bind', modelFolder.path, modelFolder.at]),
    ...models.flatMap(({ path, at }) => ['--ro-bind', path, at]),
    ...['--remount-ro', '/', '--clearenv'],
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--chdir', folder],
  ]
}

function maskOptions({ path, isFolder }: Mask): string[] {
  if (!isFolder) return ['--dev-bind', '/dev/null', path]
  const memoryWords = path === KERNEL_FOLDER ? ['--ro-bind-try', KERNEL_MEMORY, KERNEL_MEMORY] : []
  return ['--tmpfs', path, ...memoryWords, '--remount-ro', path]
}

function layerOptions(layer: Layer): string[] {
  const { image, mounts } = layer
  return [...['--bind', shownAt(layer), image], ...mounts.flatMap(path => ['--ro-bind-try', path, path])]
}
