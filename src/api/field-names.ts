/** Problems of fields as sentences, with the names that each dialect has for fields. */
import { type FieldNames, type FieldProblem, problemSentence, problemWithoutField } from '../core/field-problem.ts'
import { type Dialect, dialectNames } from './dialect.ts'
import { ENDPOINT_MEMBERS, PART_MEMBERS } from './endpoint-fields.ts'
import { TEMPLATE_MEMBERS } from './template-fields.ts'

/** Names of other fields; those that are left out have the same name as in the model. */
const OTHERS: Readonly<Record<Dialect, FieldNames>> = {
  rest: {
    sizeGb: 'size',
    expiresAtMs: 'expiresAt',
    size: 'bucketSize',
    startMs: 'startTime',
    endMs: 'endTime',
    fromMs: 'from',
    toMs: 'to',
  },
  v1: { sizeGb: 'size', dataCenter: 'dataCenterId', size: 'bucketSize', startMs: 'startTime', endMs: 'endTime' },
  graphql: { sizeGb: 'size', dataCenter: 'dataCenterId', sshKeys: 'pubKey' },
}

function allNames(dialect: Dialect): FieldNames {
  return { ...dialectNames({ ...TEMPLATE_MEMBERS, ...ENDPOINT_MEMBERS, ...PART_MEMBERS }, dialect), ...OTHERS[dialect] }
}

const REST_NAMES = allNames('rest')
const V1_NAMES = allNames('v1')
const GRAPHQL_NAMES = allNames('graphql')

/**
 * A problem as REST version 2 shows it: the path of the field, then the problem.
 * @param place the part of the request
 */
export function restSentence(problem: FieldProblem, place: '$' | 'query' = '$'): string {
  const name = REST_NAMES[problem.field] ?? problem.field
  return `${place}.${name}: ${problemWithoutField(problem, REST_NAMES)}`
}

/** A problem as REST version 1 shows it: a sentence that begins with the name of the field. */
export function v1Sentence(problem: FieldProblem): string {
  return problemSentence(problem, V1_NAMES)
}

/** A problem as GraphQL shows it: a sentence that begins with the name of the field. */
export function graphqlSentence(problem: FieldProblem): string {
  return problemSentence(problem, GRAPHQL_NAMES)
}
