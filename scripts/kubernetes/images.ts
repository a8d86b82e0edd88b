/** Images for a cluster without a registry: archives as `docker save` writes them, made of files of this machine. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Packs an image. @param archive the file to write */
export function packImage(
  archive: string,
  {
    name,
    files,
    entrypoint = [],
    command,
    env = [],
    workingDir = '/',
  }: {
    /** Its name and tag. */
    readonly name: string
    /** Folder with the content of its file system. */
    readonly files: string
    /** Words before the command; none unless given. */
    readonly entrypoint?: readonly string[]
    readonly command: readonly string[]
    readonly env?: readonly string[]
    readonly workingDir?: string
  },
): void {
  const folder = `${archive}.parts`
  mkdirSync(folder, { recursive: true })
  execFileSync('tar', ['-C', files, '--owner=0', '--group=0', '--numeric-owner', '-cf', join(folder, 'layer.tar'), '.'])
  const layer = createHash('sha256')
    .update(readFileSync(join(folder, 'layer.tar')))
    .digest('hex')
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      Entrypoint: entrypoint,
      Cmd: command,
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin', ...env],
      WorkingDir: workingDir,
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  writeFileSync(
    join(folder, 'manifest.json'),
    JSON.stringify([{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]),
  )
  execFileSync('tar', ['-C', folder, '-cf', archive, 'manifest.json', 'config.json', 'layer.tar'])
  rmSync(folder, { recursive: true })
}

/**
 * Writes the file system of an image for workers of the tests: a shell, a few programs of this machine with the
 * libraries that they need, the pinned Node, and `@runyard/worker` in a folder where handlers in `/app` find it.
 */
export function workerFiles(repository: string, folder: string): void {
  for (const path of ['app/node_modules/@runyard', 'bin', 'usr/bin', 'usr/local/bin', 'etc', 'opt', 'root', 'tmp'])
    mkdirSync(join(folder, path), { recursive: true })
  const node = join(repository, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')
  addProgram(folder, node, '/usr/local/bin/node')
  addProgram(folder, '/bin/sh', '/bin/sh')
  for (const name of ['cat', 'dd', 'echo', 'env', 'head', 'id', 'ls', 'sleep', 'true'])
    addProgram(folder, `/bin/${name}`, `/bin/${name}`)
  cpSync(join(repository, 'packages', 'worker'), join(folder, 'opt', 'worker'), {
    recursive: true,
    filter: path => basename(path) !== 'node_modules',
  })
  symlinkSync('/opt/worker', join(folder, 'app/node_modules/@runyard/worker'))
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
}

/** Copies a program of this machine and its libraries. @param folder the root of the file system */
export function addProgram(folder: string, program: string, path: string): void {
  const copy = (from: string, to: string) => {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(realpathSync(from), join(folder, to))
  }
  copy(program, path)
  const printed = execFileSync('ldd', [realpathSync(program)], { encoding: 'utf8' })
  for (const [, library] of printed.matchAll(/(?:=> )?(\/\S+) \(0x/g)) copy(library!, library!)
}
