/**
 * A private layer over the image of a worker: it may change everything in the image's folder, and the folder itself
 * stays as it is. An overlay file system in a user namespace that is made before the cage, since bubblewrap has no way
 * to one before version 0.11.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { contains } from '../base/worker-paths.ts'

/** The layer of one worker. */
export interface Layer {
  /** The image's folder. */
  readonly image: string
  /** The folder of the layer, below which the kernel keeps the changes. */
  readonly folder: string
  /** True where changes are kept in memory, because no other place is outside of the image, as an overlay wants it. */
  readonly inMemory: boolean
  /** Folders of other file systems in the image's folder, which an overlay leaves out. */
  readonly mounts: readonly string[]
}

/** Path of the image with its changes, in the namespace of the layer. */
export function shownAt({ folder }: Layer): string {
  return join(folder, 'merged')
}

const MAX_IN_MEMORY = '1g'
const TRIAL_MS = 10_000
/** These mean something in the options of a mount. */
const SPECIAL = /[,:\\"\s]/

/**
 * Its arguments are the image, the folder of the layer, where changes are kept and the command. Where the kernel makes
 * no overlay of this image, as on some network file systems, the worker gets it read-only.
 */
const START = `
image=$1 folder=$2
if [ "$3" = memory ]; then mount -t tmpfs -o size=${MAX_IN_MEMORY},mode=700 runyard "$folder" || exit 125; fi
mkdir -p "$folder/upper" "$folder/work" "$folder/merged" || exit 125
if ! mount -t overlay -o "lowerdir=$image,upperdir=$folder/upper,workdir=$folder/work,userxattr" runyard "$folder/merged" 2>/dev/null; then
  echo "runyard: this worker cannot write to its image: no overlay of it can be made" >&2
  mount --bind "$image" "$folder/merged" && mount -o remount,bind,ro "$folder/merged" || exit 125
fi
shift 3
exec "$@"
`

/**
 * The layer of a worker; null where its path cannot be given to the kernel.
 * @param image its real path
 * @param folders possible places of the layer, in the order of preference; they need not exist, and the first can be
 *   made
 */
export function makeLayer(image: string, folders: readonly [string, ...string[]]): Layer | null {
  if ([image, ...folders].some(path => SPECIAL.test(path))) return null
  const [first, ...otherFolders] = folders
  const mounts = mountsBelow(image, readMounts())
  mkdirSync(first, { recursive: true, mode: 0o700 })
  if (!contains(image, realpathSync(first))) return { image, folder: first, inMemory: false, mounts }
  const outsideFolder = otherFolders.find(folder => !contains(image, folder) && makesFolder(folder))
  return { image, folder: outsideFolder ?? first, inMemory: outsideFolder === undefined, mounts }
}

function makesFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 })
    return true
  } catch {
    return false
  }
}

/** The words before the command of a cage that let it start with the layer. */
export function layerWords({ image, folder, inMemory }: Layer): string[] {
  return [...['unshare', '-Urm', '/bin/sh', '-c', START, 'sh'], image, folder, inMemory ? 'memory' : 'disk']
}

/** In the namespaces of the layer and of an own network the server's user is root; in the cage it is itself again. */
export function sameUser(): string[] {
  return ['--uid', String(process.geteuid?.() ?? 0), '--gid', String(process.getegid?.() ?? 0)]
}

/**
 * True where layers can be made here; a change in one of them is the proof.
 * @param folder place of the layers of workers
 * @param around the words before the command of a layer
 * @param cage a command that runs what follows it in a cage
 */
export function tryLayer(
  folder: string,
  around: readonly string[],
  cage: (layer: Layer) => readonly string[],
): boolean {
  const trial = mkdtempSync(join(folder, 'layer-trial-'))
  try {
    const image = join(trial, 'image')
    mkdirSync(image)
    const layer = makeLayer(image, [join(trial, 'layer')])
    if (layer === null) return false
    const [program = '', ...words] = [...around, ...layerWords(layer), ...cage(layer)]
    const change = ['/bin/sh', '-c', 'mkdir "$1/new" && echo x >"$1/new/file"', 'sh', image]
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }
    execFileSync(program, [...words, ...change], { env, stdio: 'ignore', timeout: TRIAL_MS })
    return !existsSync(join(image, 'new'))
  } catch {
    return false
  } finally {
    removeTrial(trial)
  }
}

/** The kernel leaves a folder in it that only root may read. */
function removeTrial(trial: string): void {
  const workFolder = join(trial, 'layer', 'work', 'work')
  if (existsSync(workFolder)) chmodSync(workFolder, 0o700)
  rmSync(trial, { recursive: true, force: true })
}

/** @param text as /proc/self/mountinfo */
export function mountsBelow(image: string, text: string): string[] {
  return text.split('\n').flatMap(line => {
    const path = (line.split(' ')[4] ?? '').replace(/\\(\d{3})/g, (_, digits) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    )
    return path !== '' && path !== image && contains(image, path) ? [path] : []
  })
}

function readMounts(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8')
}
