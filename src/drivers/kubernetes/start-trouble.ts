/** The reason why the program of a pod does not run yet, or never will, from the words of its node. */
import { parseReference } from '../../core/endpoints/image-reference.ts'
import { reclaimText } from '../../core/workers/platform-report.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import { clean, findRefusal, pullProblem } from '../base/refusals.ts'

/** The trouble of a start. */
export interface StartTrouble {
  readonly failure: StartFailure
  /**
   * True where no further attempt of the node can help; false where it may pass, such as a registry that cannot be
   * reached.
   */
  readonly isCertain: boolean
}

/** The words of a node about a container that does not run. */
export interface NodeWords {
  readonly reason?: string
  readonly message?: string
  readonly image: string
  readonly hasCredential: boolean
}

/** The trouble of a start; null where none is known. */
export function startTrouble({ reason = '', message = '', image, hasCredential }: NodeWords): StartTrouble | null {
  const problem = clean(message)
  switch (reason) {
    case 'InvalidImageName':
      return { failure: { kind: 'image_invalid', image }, isCertain: true }
    case 'ErrImagePull':
    case 'ImagePullBackOff':
    case 'ImageInspectError':
    case 'RegistryUnavailable':
    case 'SignatureValidationFailed':
    case 'ErrImageNeverPull':
      return pullTrouble(problem, image, hasCredential)
    case 'CreateContainerConfigError':
      return { failure: { kind: 'cluster_refused', said: problem }, isCertain: false }
    case 'CreateContainerError':
    case 'RunContainerError':
    case 'ContainerCannotRun':
    case 'StartError':
      return {
        failure: findRefusal(problem, null) ?? { kind: 'cluster_refused', said: problem },
        isCertain: reason !== 'CreateContainerError',
      }
    default:
      return null
  }
}

/** Problems of a download that the next attempt will have, too. */
const LASTING = new Set([
  'other_processor',
  'credential_missing',
  'credential_refused',
  'not_found',
  'not_found_or_private',
  'not_found_for_credential',
])

/** Registries name the image in front of their message, and an image may have any name. */
function pullTrouble(message: string, image: string, hasCredential: boolean): StartTrouble | null {
  const words = image === '' ? message : message.replaceAll(image, '')
  // A node that waits between two attempts may not repeat the problem.
  if (/^back-off pulling image\s*"[^"]*"$/i.test(words)) return null
  const host = parseReference(image)?.registry ?? 'its registry'
  const problem = pullProblem(words, hasCredential)
  return { failure: { kind: 'pull_failed', image, host, why: problem, said: message }, isCertain: LASTING.has(problem) }
}

/** The reason why a pod ended before its program was started. @param exit as it was observed */
export function lostText({ cause }: ObservedExit): string {
  return cause.kind === 'reclaimed'
    ? `its pod ${reclaimText(cause.why)}`
    : 'its pod ended before its program was started'
}
