import { isJsonObject } from '../json/json-text.ts'
import recorded from './ready-workers.json' with { type: 'json' }

/** A variable of a ready worker. */
export interface ReadyWorkerVariable {
  readonly name: string
  /** One sentence. */
  readonly about: string
  /** Default value; omitted if the image has a default, or needs no value. */
  readonly default?: string
}

/** A public worker image with its requirements. */
export interface ReadyWorker {
  readonly title: string
  /** One sentence. */
  readonly about: string
  readonly image: string
  /** GPU memory that one worker needs, in GB; 0 for a worker without a GPU. */
  readonly gpuMemoryGb: number
  readonly diskGb: number
  /** Execution timeout of a job, in milliseconds. */
  readonly timeoutMs: number
  /** Variable for the part of the GPU memory that it takes; it gets the share of a worker. Omitted without one. */
  readonly fractionVariable?: string
  readonly env: readonly ReadyWorkerVariable[]
  /** Input of a first job that shows that the worker works. */
  readonly input: Readonly<Record<string, unknown>>
  /** True if OpenAI clients can call it. */
  readonly openAi: boolean
}

/** Ready workers by their names. */
export type ReadyWorkers = Readonly<Record<string, ReadyWorker>>

/** The workers of the package. */
export const READY_WORKERS: ReadyWorkers = recorded

/** The variable for the part of the GPU memory that an image of the package takes; null for other images. */
export function fractionVariable(image: string): string | null {
  return findByImage(image)?.fractionVariable ?? null
}

/**
 * The GPU memory, in MiB, that a worker of an image of the package needs at least, if its program takes the part that
 * it is given: its use shows no need. Null for other images, and if the environment gives the part.
 */
export function givenMemoryMb(image: string, env: Readonly<Record<string, string>>): number | null {
  const worker = findByImage(image)
  if (worker?.fractionVariable === undefined || Object.hasOwn(env, worker.fractionVariable)) return null
  return worker.gpuMemoryGb * 1024
}

function findByImage(image: string): ReadyWorker | undefined {
  return Object.values(READY_WORKERS).find(ready => repositoryOf(ready.image) === repositoryOf(image))
}

/** The name of an image without its tag or digest. */
function repositoryOf(image: string): string {
  const [name = ''] = image.split('@', 1)
  const tag = name.lastIndexOf(':')
  return tag > name.lastIndexOf('/') ? name.slice(0, tag) : name
}

const NAME = /^[a-z][a-z0-9-]{0,62}$/
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Reads a catalog of ready workers. @returns it, or all mistakes in it, one sentence each */
export function readReadyWorkers(
  value: unknown,
): { readonly workers: ReadyWorkers } | { readonly mistakes: readonly string[] } {
  if (!isJsonObject(value)) return { mistakes: ['it must be an object of workers by their names'] }
  const mistakes = Object.entries(value).flatMap(([name, worker]) => [
    ...(NAME.test(name) ? [] : [`'${name}' must begin with a small letter, and have small letters, digits and - only`]),
    ...workerMistakes(worker).map(mistake => `${name}: ${mistake}`),
  ])
  return mistakes.length > 0 ? { mistakes } : { workers: value as unknown as ReadyWorkers }
}

/** The members of a worker, each with its rule. */
const MEMBERS: Readonly<Record<keyof ReadyWorker, readonly [rule: string, holds: (value: unknown) => boolean]>> = {
  title: ['must be a text', isText],
  about: ['must be a text', isText],
  image: ['must be the reference of an image', isText],
  gpuMemoryGb: ['must be a whole number of GB, 0 for none', value => isWhole(value, 0)],
  diskGb: ['must be a whole number of GB', value => isWhole(value, 1)],
  timeoutMs: ['must be a whole number of milliseconds from 5000', value => isWhole(value, 5_000)],
  fractionVariable: ['must be the name of a variable', value => value === undefined || isVariableName(value)],
  env: ['must be a list of {"name", "about", "default"?}', value => Array.isArray(value) && value.every(isVariable)],
  input: ['must be an object', isJsonObject],
  openAi: ['must be true or false', value => typeof value === 'boolean'],
}

function workerMistakes(worker: unknown): string[] {
  if (!isJsonObject(worker)) return ['it must be an object']
  const unknown = Object.keys(worker).filter(name => !Object.hasOwn(MEMBERS, name))
  return [
    ...unknown.map(name => `"${name}" is not known`),
    ...Object.entries(MEMBERS).flatMap(([name, [rule, holds]]) => (holds(worker[name]) ? [] : [`"${name}" ${rule}`])),
  ]
}

function isVariable(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const { name, about, default: given = '', ...others } = value
  return isVariableName(name) && isText(about) && typeof given === 'string' && Object.keys(others).length === 0
}

function isVariableName(value: unknown): boolean {
  return typeof value === 'string' && VARIABLE.test(value)
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '' && value.length <= 1_000
}

function isWhole(value: unknown, min: number): boolean {
  return Number.isInteger(value) && Number(value) >= min
}
