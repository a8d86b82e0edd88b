/** A real Kubernetes with one node for the tests of a process; `scripts/kubernetes/README.md` says how it is made. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, startCluster } from '../../scripts/kubernetes/cluster.ts'
import { packImage, workerFiles } from '../../scripts/kubernetes/images.ts'
import { canMakeMachines } from '../../scripts/kubernetes/machine.ts'
import { buildPrograms } from '../../scripts/kubernetes/programs.ts'

const programs = process.env.RUNYARD_TEST_KUBERNETES ?? ''

/** An image with a shell, Node and `@runyard/worker`, which the node of each cluster has. */
export const nodeImage = 'runyard-test-node:1'

/** Reason why tests with a Kubernetes cannot run; false if they can. */
export const noKubernetes: string | false =
  programs === ''
    ? 'set RUNYARD_TEST_KUBERNETES to run the tests with a Kubernetes; .ci/kubernetes installs and builds what it needs'
    : !canMakeMachines() && 'a Kubernetes of the tests runs in namespaces, which only root may make here'

/** A cluster of the tests. */
export interface TestCluster extends Cluster {
  /** The environment in which `kubectl` is found, and finds the cluster. */
  readonly env: Readonly<Record<string, string>>
}

/** Starts a cluster that has {@link nodeImage}. It ends with this process; `stop` also removes its files. */
export async function openCluster(): Promise<TestCluster> {
  if (noKubernetes !== false) throw new Error(noKubernetes)
  await buildPrograms(programs)
  const cluster = await startCluster({ programs })
  const files = join(cluster.folder, 'image')
  mkdirSync(files)
  workerFiles(join(import.meta.dirname, '..', '..'), files)
  const archive = join(cluster.folder, 'image.tar')
  packImage(archive, { name: `docker.io/library/${nodeImage}`, files, command: ['node'], workingDir: '/app' })
  await cluster.load(archive)
  // Without a home, kubectl would keep what it has learned in the folder that the tests run in.
  const KUBECACHEDIR = join(cluster.folder, 'kubectl')
  return {
    ...cluster,
    env: { KUBECONFIG: cluster.kubeconfig, KUBECACHEDIR, PATH: `${programs}:${process.env.PATH ?? ''}` },
  }
}
