/** Progress of the newest release, with actions if it does not advance. */
import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { ListEndpointReleasesResponse } from '../../../client/api-types.d.ts'
import { mayManage } from '../../../client/session.ts'
import { plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button, Section, State, type Tone } from '../../../parts/basic.tsx'
import { Confirm } from '../../../parts/dialog.tsx'
import { Meter } from '../../../parts/spark.tsx'
import { restartWorkers } from '../settings/danger.tsx'
import { canaryWord, type RolloutFacts, rolloutSentence, stopRule } from './release-words.ts'

const STATES: Readonly<Record<RolloutFacts['state'], readonly [Tone, string]>> = {
  IN_PROGRESS: ['busy', 'In progress'],
  STOPPED: ['bad', 'Stopped'],
  CANARY: ['wait', 'Canary'],
  COMPLETE: ['good', 'Complete'],
}

/** The state of the rollout, with its bar. */
export function Rollout({
  id,
  of: { endpointVersion: version, rollout },
  reload,
  onBack,
}: {
  readonly id: string
  readonly of: ListEndpointReleasesResponse
  readonly reload: () => void
  readonly onBack: (version: number) => void
}) {
  const [isPromoting, setPromoting] = useState(false)
  const { state, reason, workingVersion, percentOnLatest, workersOnLatest, workersTotal } = rollout
  const [tone, title]: (typeof STATES)['STOPPED'] =
    state === 'COMPLETE' && reason !== null ? ['bad', 'Does not work'] : STATES[state]
  const mayWrite = mayManage('write')
  return (
    <Section
      title={`Rollout of version ${version}`}
      actions={
        <span aria-live="polite">
          <State tone={tone}>{state === 'CANARY' ? canaryWord(rollout) : title}</State>
        </span>
      }
    >
      {workersTotal === 0 ? null : (
        <p class="rollout">
          <Meter share={percentOnLatest / 100} label={`Workers that run version ${version}`} />{' '}
          {state === 'CANARY' ? `${workersOnLatest} of ${plural(workersTotal, 'worker')}` : `${percentOnLatest}%`}
        </p>
      )}
      <p>{rolloutSentence(version, rollout)}</p>
      {reason === null ? null : <p class="notice bad">{reason}</p>}
      {state === 'STOPPED' ? <p class="faint">{stopRule(rollout)}</p> : null}
      {!mayWrite || (state !== 'STOPPED' && state !== 'CANARY') ? null : (
        <div class="actions">
          {state === 'CANARY' ? (
            <Button kind="main" onPress={() => setPromoting(true)}>
              Promote version {version}
            </Button>
          ) : null}
          {rollout.failures === null ? null : (
            <Button onPress={() => setPromoting(true)}>Promote version {version} anyway</Button>
          )}
          {workingVersion === null ? null : (
            <Button kind={state === 'STOPPED' ? 'main' : 'plain'} onPress={() => onBack(workingVersion)}>
              Roll back to version {workingVersion}
            </Button>
          )}
          {state === 'STOPPED' && rollout.failures === null ? (
            <Button onPress={() => restartWorkers(id)}>Try again</Button>
          ) : null}
        </div>
      )}
      {isPromoting ? (
        <Confirm
          title={`Promote version ${version}?`}
          action={`Promote version ${version}`}
          onConfirm={async () => {
            const path = { id, version: String(version) }
            await api('POST /v2/serverless/{id}/releases/{version}/promote', { path })
            announce(`Version ${version} replaces the others`)
            reload()
          }}
          onClose={() => setPromoting(false)}
        >
          <p>Its workers replace all others. A rollback undoes it.</p>
        </Confirm>
      ) : null}
    </Section>
  )
}
