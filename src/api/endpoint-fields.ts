/** The names of the fields of an endpoint in the three dialects, with their schemas. */
import { z } from '@hono/zod-openapi'
import { type EndpointConfig, FLASHBOOTS, PRIORITIES } from '../core/endpoints/endpoint.ts'
import { MAX_ITEMS } from '../core/endpoints/field.ts'
import { LOCATIONS } from '../core/hardware/catalog.ts'
import { MODEL_REFERENCE } from '../core/models/model-reference.ts'
import { listItems } from '../core/text-parts.ts'
import { type FieldMembers, graphql, type MemberTable, rest, v1 } from './dialect.ts'
import { Id, listed } from './rest/schemas/common.ts'
import { ShortText, Variables, variableList, variablesIn } from './template-fields.ts'

/** Modes in which idle workers are kept. */
export const FlashBoot = z.enum(FLASHBOOTS).openapi('FlashBoot')
/** An addition to the public contract: the order of endpoints where the machine has too little room for all. */
const Priority = z.enum(PRIORITIES).openapi('Priority')
const Timeout = z.int().min(5_000).max(604_800_000)
const Locations = z.array(listed(LOCATIONS)).max(100)
const VolumeIds = z.array(Id).max(100).openapi({ uniqueItems: true })
/** Core checks the rule, with a sentence that names the accepted forms. The document shows it. */
const ModelReferences = z.array(z.string().max(1_000).openapi({ pattern: MODEL_REFERENCE.source })).max(MAX_ITEMS)
const CorsOrigins = z
  .array(z.string().max(300).openapi({ pattern: '^(\\*|https?://[a-z0-9.-]+(:[1-9][0-9]{0,4})?)$' }))
  .max(MAX_ITEMS)
/**
 * An addition to the public contract, of load-balancing endpoints. Core checks the rules and names the violated one.
 * Null or empty removes it.
 */
const Domain = z.string().max(300).nullable()

/** Schemas of a list of texts. @param given in a request */
function texts<Given extends z.ZodType<readonly string[]>>(given: Given) {
  return { created: given.default([] as never), changed: given.optional(), shown: z.array(z.string()) }
}

/** Items of a list of GraphQL that are neither null nor empty. */
const items = { read: (sent: readonly (string | null)[]) => sent.flatMap(item => item || []) }
const ORIGINS = 'Origins of web pages that may call its job operations; * for all.'

/**
 * The members of each field of an endpoint, in the order in which bodies and documents have them. A field that a
 * dialect spreads over several members, or words differently, is written by hand: in `rest/endpoint-changes.ts` and
 * `rest/endpoint-view.ts`, `rest-v1/endpoints.ts`, and `graphql/inputs.ts` and `graphql/views.ts`.
 */
export const ENDPOINT_MEMBERS = {
  name: { rest: rest('name'), v1: v1('name', ShortText.optional()), graphql: graphql('name', 'String!') },
  type: { rest: { name: 'type' }, v1: null, graphql: { name: 'type' } },
  workersMin: {
    rest: rest('workers.min'),
    v1: v1('workersMin', z.int().min(0).optional()),
    graphql: graphql('workersMin', 'Int'),
  },
  workersMax: {
    rest: rest('workers.max'),
    v1: v1('workersMax', z.int().min(0).optional()),
    graphql: graphql('workersMax', 'Int'),
  },
  idleTimeoutS: {
    rest: rest('workers.idleTimeout'),
    v1: v1('idleTimeout', z.int().min(1).max(3600).optional()),
    graphql: graphql('idleTimeout', 'Int'),
  },
  scaler: { rest: { name: 'scaling' }, v1: null, graphql: null },
  compute: { rest: null, v1: null, graphql: null },
  runsOnce: { rest: null, v1: null, graphql: null },
  starters: { rest: null, v1: null, graphql: null },
  pausedFrom: { rest: null, v1: null, graphql: null },
  workersPfbTarget: { rest: null, v1: null, graphql: graphql('workersPFBTarget', 'Int') },
  executionTimeoutMs: {
    rest: rest('timeout', { created: Timeout.default(300_000), changed: Timeout.optional(), shown: z.int() }),
    v1: v1('executionTimeoutMs', z.int().optional()),
    graphql: graphql('executionTimeoutMs', 'Int', {
      // Clients send 0 for a timeout that is not set.
      read: (sent: number) => sent || undefined,
      aboutInput: '0 means as if left out.',
    }),
  },
  flashboot: {
    rest: rest('flashboot', {
      created: FlashBoot.default('OFF').openapi({ default: 'OFF' }),
      changed: FlashBoot.optional(),
      shown: FlashBoot,
    }),
    v1: { name: 'flashboot' },
    graphql: graphql('flashBootType', 'FlashBootType'),
  },
  priority: {
    rest: rest('priority', {
      created: Priority.default('normal').openapi({ default: 'normal' }),
      changed: Priority.optional(),
      shown: Priority,
    }),
    v1: v1('priority', Priority.optional()),
    graphql: graphql('priority', 'EndpointPriority', {
      about: 'Its order beside other endpoints where the machine has too little room for all.',
    }),
  },
  preemptible: {
    rest: rest('preemptible', {
      created: z.boolean().default(false),
      changed: z.boolean().optional(),
      shown: z.boolean().optional(),
    }),
    v1: v1('preemptible', z.boolean().optional()),
    graphql: graphql('preemptible', 'Boolean', {
      about: 'True if its workers may be paused in the middle of a job for an endpoint of higher priority.',
    }),
  },
  locations: {
    rest: rest('dataCenterIds', texts(Locations)),
    v1: { name: 'dataCenterIds' },
    graphql: graphql('locations', 'String', {
      read: (sent: string) => listItems(sent, ','),
      show: (locations: readonly string[]) => locations.join(','),
      about: 'Country codes and data centers, as they were given; empty for anywhere.',
      aboutInput: '',
    }),
  },
  networkVolumeIds: {
    rest: rest('networkVolumes', texts(VolumeIds)),
    v1: { name: 'networkVolumeIds' },
    graphql: { name: 'networkVolumeIds' },
  },
  env: {
    rest: { name: 'env' },
    v1: v1('env', Variables.optional()),
    graphql: graphql('env', '[EnvironmentVariable]', {
      read: variablesIn,
      show: variableList,
      about: "Variables of this endpoint alone; they win over the template's.",
      aboutInput: '',
      input: '[EnvironmentVariableInput]',
    }),
  },
  modelReferences: {
    rest: rest('modelReferences', texts(ModelReferences)),
    v1: null,
    graphql: graphql('modelReferences', '[String]', items),
  },
  corsOrigins: {
    rest: rest('corsOrigins', texts(CorsOrigins)),
    v1: null,
    graphql: graphql('corsOrigins', '[String]', { ...items, about: ORIGINS }),
  },
  domain: {
    rest: rest('domain', {
      created: Domain.optional(),
      changed: Domain.optional(),
      shown: z.string().nullable().optional(),
    }),
    v1: null,
    graphql: graphql('domain', 'String', {
      read: (sent: string) => sent || null,
      about: 'The own domain of a load-balancing endpoint.',
      aboutInput: 'The own domain of a load-balancing endpoint, such as chat.example.org; empty for none.',
    }),
  },
  compliance: { rest: null, v1: null, graphql: graphql('compliance', '[Compliance]', items) },
  flashEnvironmentId: {
    rest: null,
    v1: null,
    graphql: graphql('flashEnvironmentId', 'String', { read: (sent: string) => sent || null }),
  },
} satisfies Readonly<Record<keyof EndpointConfig, FieldMembers>>

/** The names of the parts of fields, for problems. */
export const PART_MEMBERS = {
  'scaler.type': part('scaling.type', 'scalerType', 'scalerType'),
  'scaler.queueDelayS': part('scaling.queueDelay', 'scalerValue', 'scalerValue'),
  'scaler.requestCount': part('scaling.requestCount', 'scalerValue', 'scalerValue'),
  'compute.pools': part('gpu.pools', 'gpuTypeIds', 'gpuIds'),
  'compute.excludedTypes': part('gpu.excludedTypes', 'gpuTypeIds', 'gpuIds'),
  'compute.count': part('gpu.count', 'gpuCount', 'gpuCount'),
  'compute.configs': part('cpu', 'cpuFlavorIds', 'instanceIds'),
  'compute.allowedCudaVersions': part('gpu.allowedCudaVersions', 'allowedCudaVersions', 'allowedCudaVersions'),
  'compute.minCudaVersion': part('gpu.minCudaVersion', 'minCudaVersion', 'minCudaVersion'),
  'compute.memoryGb': part('gpu.memoryGb', 'gpuMemoryGb', 'gpuMemoryGb'),
} satisfies MemberTable

function part(rest: string, v1: string, graphql: string): FieldMembers {
  return { rest: { name: rest }, v1: { name: v1 }, graphql: { name: graphql } }
}
