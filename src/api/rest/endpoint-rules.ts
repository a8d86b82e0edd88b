import {
  ENDPOINT_DEFAULTS,
  type EndpointConfig,
  endpointProblems,
  idleTimeoutProblems,
} from '../../core/endpoints/endpoint.ts'
import { servingValueProblems } from '../../core/endpoints/serving.ts'
import { envProblems, MAX_ENV_VARIABLES, portProblems } from '../../core/endpoints/template.ts'
import { restSentence } from '../field-names.ts'
import { computeFromBody, configFromBody, newCpuProblems } from './endpoint-changes.ts'
import type { Members, Rule } from './route.ts'
import type { CreateEndpoint, UpdateEndpoint } from './schemas/endpoint.ts'

type Created = Partial<Members<typeof CreateEndpoint>>

/** Rules of a container configuration in any request. */
export const containerRules: readonly Rule<Record<never, never>>[] = [
  ({ env = {} }: { env?: Readonly<Record<string, string>> }) => envProblems(env).map(problem => restSentence(problem)),
  ({ ports = [] }: { ports?: readonly string[] }) => portProblems(ports).map(problem => restSentence(problem)),
]

/** Rules of changed variables. The result is checked later, when they are merged with the existing variables. */
export const envChangeRules: readonly Rule<Record<never, never>>[] = [
  ({ env, envChanges }: { env?: object; envChanges?: object }) =>
    env !== undefined && envChanges !== undefined
      ? ['$.envChanges: cannot be beside env, which replaces all variables']
      : [],
  ({ envChanges = {} }: { envChanges?: object }) =>
    Object.keys(envChanges).length > MAX_ENV_VARIABLES
      ? [`$.envChanges: must have at most ${MAX_ENV_VARIABLES} variables`]
      : [],
]

/** Rules between the members of a request that creates an endpoint. */
export const createRules: readonly Rule<typeof CreateEndpoint>[] = [
  ({ cpu }) => newCpuProblems(cpu),
  (_, sent) =>
    sent.has('image') || sent.has('templateId') ? [] : ['$.image: is required where there is no templateId'],
  (_, sent) => (sent.has('gpu') === sent.has('cpu') ? ['$: exactly one of gpu and cpu is needed'] : []),
  given => {
    const config = createdFields(given)
    const problems = [
      ...endpointProblems(config, null),
      ...(given.workers?.idleTimeout === undefined ? [] : idleTimeoutProblems(config)),
      ...(given.type === 'LOAD_BALANCER' ? servingValueProblems(given.env ?? {}) : []),
    ]
    return problems.map(problem => restSentence(problem))
  },
]

/** {@link createRules} as far as the OpenAPI document can express them. */
export const createKeywords = {
  allOf: [
    { oneOf: [{ required: ['gpu'] }, { required: ['cpu'] }] },
    { anyOf: [{ required: ['image'] }, { required: ['templateId'] }] },
  ],
}

/**
 * Rules between the members of a request that changes an endpoint; those that depend on the endpoint are checked with
 * it.
 */
export const updateRules: readonly Rule<typeof UpdateEndpoint>[] = [
  (_, sent) => (sent.has('gpu') && sent.has('cpu') ? ['$: only one of gpu and cpu can be changed'] : []),
  ({ gpu }) =>
    gpu?.excludedTypes !== undefined && gpu.pools === undefined
      ? ['$.gpu.excludedTypes: needs gpu.pools beside it']
      : [],
  given => endpointProblems(configFromBody(given), null).map(problem => restSentence(problem)),
]

/** {@link updateRules} as far as the OpenAPI document can express them. */
export const updateKeywords = { not: { required: ['gpu', 'cpu'] } }

/** The fields that are known before the template of a request is read: the number of workers has its default. */
function createdFields(given: Created): Partial<EndpointConfig> {
  const { workersMin, workersMax } = ENDPOINT_DEFAULTS
  const compute = computeFromBody(given)
  const known = { workersMin, workersMax, ...configFromBody(given) }
  const withType = given.type === undefined ? known : { ...known, type: given.type }
  return compute === null ? withType : { ...withType, compute }
}
