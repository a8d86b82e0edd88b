/** The chart, as Helm renders it; Helm is in the folder that `RUNYARD_TEST_HELM` names, see `.ci/helm`. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubernetesObject } from './kubernetes-objects.ts'

const folder = process.env.RUNYARD_TEST_HELM ?? ''

/** Reason why tests of the chart cannot run; false if they can. */
export const noHelm: string | false =
  folder === '' ? 'set RUNYARD_TEST_HELM to run the tests of the chart; .ci/helm build makes it' : false

/** The description of all objects of Kubernetes. */
export const objectsFile = join(folder, 'swagger.json')

/** The folder of the chart. */
export const CHART = 'deploy/helm/runyard'

/** Values of the chart. */
export type Values = Readonly<Record<string, unknown>>

/** Runs Helm. @param env the environment in which it finds a cluster; that of the tests unless given */
export function helm(
  words: readonly string[],
  input = '',
  env: Readonly<Record<string, string | undefined>> = process.env,
) {
  return spawnSync(join(folder, 'helm'), words, { input, env, encoding: 'utf8' })
}

/** Rendered release of the chart; `runyard` in the namespace `serving` by default. */
export interface Release {
  readonly release?: string
  readonly namespace?: string
}

const rendered = new Map<string, ReturnType<typeof helm>>()

/**
 * Renders the chart, or another one, once for the same values. Workers have the namespace `gpu-workers`
 * unless the values name another.
 */
export function template(
  values: Values,
  { release = 'runyard', namespace = 'serving' }: Release = {},
  chart = CHART,
): ReturnType<typeof helm> {
  const words = ['template', release, chart, '--namespace', namespace, '--kube-version', '1.34.0', '--values', '-']
  const workers = { namespace: 'gpu-workers', ...(values.workers as object | undefined) }
  const input = JSON.stringify({ ...values, workers })
  const key = [...words, input].join(' ')
  const result = rendered.get(key) ?? helm(words, input)
  rendered.set(key, result)
  return result
}

/** The objects of the chart. */
export function render(values: Values, release?: Release): KubernetesObject[] {
  const { status, stdout, stderr } = template(values, release)
  assert.equal(status, 0, stderr)
  return parseAllDocuments(stdout).flatMap(document => (document.contents === null ? [] : [document.toJS()]))
}
