/**
 * Runs a real Kubernetes with one node: `scripts/kubernetes.ts build` builds its programs if they are missing,
 * `scripts/kubernetes.ts up [folder]` runs a cluster with an image of workers until it is interrupted.
 */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startCluster } from './kubernetes/cluster.ts'
import { packImage, workerFiles } from './kubernetes/images.ts'
import { buildPrograms, KUBERNETES_VERSION, usualFolder } from './kubernetes/programs.ts'

const [verb, folder] = process.argv.slice(2)
const programs = process.env.RUNYARD_TEST_KUBERNETES ?? usualFolder()
const began = performance.now()
const printLine = (text: string) => console.log(`${((performance.now() - began) / 1000).toFixed(1)} s: ${text}`)

if (verb === 'build') {
  await buildPrograms(programs)
  console.log(programs)
} else if (verb === 'up') await up()
else {
  console.error('scripts/kubernetes.ts build | up [folder]')
  process.exitCode = 64
}

async function up(): Promise<void> {
  await buildPrograms(programs)
  printLine(`the programs of Kubernetes ${KUBERNETES_VERSION} are in ${programs}`)
  const cluster = await startCluster({
    programs,
    say: printLine,
    ...(folder === undefined ? {} : { folder: resolve(folder) }),
  })
  const image = 'runyard-test-node:1'
  const files = join(cluster.folder, 'image')
  mkdirSync(files)
  workerFiles(join(import.meta.dirname, '..'), files)
  const archive = join(cluster.folder, 'image.tar')
  packImage(archive, { name: `docker.io/library/${image}`, files, command: ['node'], workingDir: '/app' })
  await cluster.load(archive)
  printLine(
    `export KUBECONFIG=${cluster.kubeconfig} PATH=${programs}:$PATH; pods reach this host at ${cluster.hostAddress}; image ${image}`,
  )
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => void cluster.stop().then(() => process.exit(0)))
}
