import { unsupported } from '../errors.ts'

const NO_PODS = 'Runyard runs serverless endpoints and tasks of apps, not pods'
const NO_BUCKETS = 'a global volume is created over REST, with POST /v2/global-volumes'

const NO_MODEL_REPOSITORY = 'Runyard has no model repository; name models in modelReferences of an endpoint'

const POD_MUTATIONS = [
  ...['podRentInterruptable', 'podEditJob', 'podStop', 'podResume', 'podBidResume', 'podRestart', 'podReset'],
]
const MODEL_MUTATIONS = [
  ...['addModelToRepo', 'removeModelFromRepo', 'createModelRepoUpload', 'completeModelRepoUpload'],
  'updateModelVersionStatus',
]

/** Queries of unsupported features. */
export const unsupportedQueries = {
  ...answerAll(['listing', 'listingFromRepo', 'myModel'], () => null),
  ...answerAll(['listings', 'allAiApiPublicConfigs', 'models', 'myModels', 'cpuTypes', 'machines'], () => []),
}

/** Mutations of unsupported features. Each is refused with a message. */
export const unsupportedMutations = {
  ...refusing(POD_MUTATIONS, NO_PODS),
  ...refusing(['globalStoreBucketCreate'], NO_BUCKETS),
  ...refusing(MODEL_MUTATIONS, NO_MODEL_REPOSITORY),
}

function refusing(names: readonly string[], why: string): Record<string, () => never> {
  return answerAll(names, () => unsupported(why))
}

function answerAll<Answer>(names: readonly string[], answer: () => Answer): Record<string, () => Answer> {
  return Object.fromEntries(names.map(name => [name, answer]))
}
