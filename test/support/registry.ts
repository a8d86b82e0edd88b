/** An image registry for the tests, with plain HTTP and one user. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** A registry that listens. */
export interface TestRegistry {
  /** The prefix of the names of its images, like `127.0.0.1:5000`. */
  readonly host: string
  readonly user: { readonly username: string; readonly password: string }
  /** Method and path of the authorized requests, in order. */
  readonly calls: string[]
  /** Creates an image that runs `sh`, or moves its tag. @returns its digest */
  publish(name: string, tag: string, marker: string): string
  /** Resolves when a layer is requested; it is sent only after `release`. */
  hold(): { readonly asked: Promise<void>; release(): void }
  close(): Promise<void>
}

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json'

/** Starts a registry. @param open true if it allows anonymous reads @param address to listen on */
export async function openRegistry(open = false, address = '127.0.0.1'): Promise<TestRegistry> {
  const user = { username: 'me', password: 'open sesame' }
  const expected = `Basic ${Buffer.from(`${user.username}:${user.password}`).toString('base64')}`
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, Buffer>()
  const calls: string[] = []
  let gate: { asked: () => void; released: Promise<void> } | null = null

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (!open && request.headers.authorization !== expected) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="test"', 'content-type': 'application/json' })
      return response.end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}')
    }
    const path = request.url ?? ''
    calls.push(`${request.method} ${path}`)
    if (path === '/v2/') return response.writeHead(200).end('{}')
    const blob = blobs.get(path.split('/').at(-1) ?? '')
    const manifest = manifests.get(path)
    const content = path.includes('/blobs/') ? blob : manifest
    if (content === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' })
      return response.end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
    }
    if (blob !== undefined && gate !== null && blob.length > 10_000) {
      gate.asked()
      await gate.released
    }
    response.writeHead(200, {
      'content-type': manifest === undefined ? 'application/octet-stream' : MANIFEST,
      'content-length': content.length,
      'docker-content-digest': contentDigest(content),
    })
    response.end(request.method === 'HEAD' ? undefined : content)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>(resolve => server.listen(0, address, resolve))
  const keep = (content: Buffer) => {
    blobs.set(contentDigest(content), content)
    return { size: content.length, digest: contentDigest(content) }
  }
  return {
    host: `${address}:${(server.address() as AddressInfo).port}`,
    user,
    calls,
    publish(name, tag, marker) {
      const layer = shellLayer(marker)
      const config = JSON.stringify({
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        os: 'linux',
        config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh', '-c', `echo ${marker}`] },
        rootfs: { type: 'layers', diff_ids: [contentDigest(layer)] },
      })
      const manifest = Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          mediaType: MANIFEST,
          config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...keep(Buffer.from(config)) },
          layers: [{ mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', ...keep(gzipSync(layer)) }],
        }),
      )
      for (const reference of [tag, contentDigest(manifest)])
        manifests.set(`/v2/${name}/manifests/${reference}`, manifest)
      return contentDigest(manifest)
    },
    hold() {
      const arrival = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      gate = { asked: arrival.resolve, released: released.promise }
      return {
        asked: arrival.promise,
        release() {
          gate = null
          released.resolve()
        },
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function contentDigest(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

/** A file system with a shell of this machine, its libraries, and a marker. */
function shellLayer(marker: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-layer-'))
  try {
    const libraries = execFileSync('ldd', ['/bin/sh'], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
    for (const file of libraries) {
      mkdirSync(join(folder, dirname(file)), { recursive: true })
      copyFileSync(realpathSync(file), join(folder, file))
    }
    mkdirSync(join(folder, 'bin'), { recursive: true })
    copyFileSync(realpathSync('/bin/sh'), join(folder, 'bin/sh'))
    writeFileSync(join(folder, 'mark'), marker)
    return execFileSync('tar', ['-C', folder, '-cf', '-', '.'], { maxBuffer: 64 * 1024 * 1024 })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
