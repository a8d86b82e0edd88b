/** Actions that interrupt jobs or cannot be undone. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { Endpoint } from '../../../client/api-types.d.ts'
import { useResource } from '../../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../../client/session.ts'
import { jobTopic } from '../../../client/topics.ts'
import { plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button, Section } from '../../../parts/basic.tsx'
import { Confirm } from '../../../parts/dialog.tsx'
import { navigate } from '../../../router.ts'

/** Creates a release that replaces the workers and changes nothing else. */
export async function restartWorkers(id: string): Promise<void> {
  await api('POST /v2/serverless/{id}/restart', { path: { id } })
  announce('New workers replace the running ones')
}

/** Restart, purge, delete. */
export function Danger({ endpoint: { id, name, type } }: { readonly endpoint: Endpoint }) {
  const [dialog, setDialog] = useState<'restart' | 'purge' | 'delete' | null>(null)
  const close = () => setDialog(null)
  return (
    <Section title="Danger zone">
      {mayManage('write') ? (
        <Row title="Restart workers" about="A new release with the same configuration replaces all workers.">
          <Button onPress={() => setDialog('restart')}>Restart workers</Button>
        </Row>
      ) : null}
      {type === 'QUEUE' && mayUseJobs('write', id) ? (
        <Row title="Purge the queue" about="Cancels all waiting jobs. Running jobs continue.">
          <Button kind="danger" onPress={() => setDialog('purge')}>
            Purge queue
          </Button>
        </Row>
      ) : null}
      {mayManage('write') ? (
        <Row title="Delete the endpoint" about="Its jobs are cancelled, its workers end, its results are deleted.">
          <Button kind="danger" onPress={() => setDialog('delete')}>
            Delete endpoint
          </Button>
        </Row>
      ) : null}
      {dialog === 'restart' ? (
        <Confirm
          title="Restart all workers?"
          action="Restart workers"
          onConfirm={() => restartWorkers(id)}
          onClose={close}
        >
          <p>Running workers continue until the first new one is ready, and finish their jobs.</p>
        </Confirm>
      ) : null}
      {dialog === 'purge' ? <Purge id={id} onClose={close} /> : null}
      {dialog === 'delete' ? (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete endpoint"
          typed={name}
          onConfirm={async () => {
            await api('DELETE /v2/serverless/{id}', { path: { id } })
            announce(`Deleted ${name}`)
            navigate('/endpoints')
          }}
          onClose={close}
        >
          <p>This cannot be undone.</p>
        </Confirm>
      ) : null}
    </Section>
  )
}

function Row({
  title,
  about,
  children,
}: {
  readonly title: string
  readonly about: string
  readonly children: ComponentChildren
}) {
  return (
    <div class="danger-row">
      <p>
        <b>{title}</b>
        <br />
        <span class="faint">{about}</span>
      </p>
      {children}
    </div>
  )
}

function Purge({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const health = useResource(
    `health ${id}`,
    signal => api('GET /v2/{endpoint}/health', { path: { endpoint: id }, signal }),
    { on: jobTopic(id) },
  )
  const { inQueue } = (health.data as { readonly jobs: { readonly inQueue: number } } | null)?.jobs ?? { inQueue: 0 }
  return (
    <Confirm
      title="Purge the queue?"
      action={`Cancel ${plural(inQueue, 'waiting job')}`}
      onConfirm={async () => {
        const answer = await api('POST /v2/{endpoint}/purge-queue', { path: { endpoint: id } })
        announce(`Cancelled ${plural((answer as { readonly removed?: number }).removed ?? 0, 'job')}`)
      }}
      onClose={onClose}
    >
      <p>Waiting jobs are cancelled. This cannot be undone.</p>
    </Confirm>
  )
}
