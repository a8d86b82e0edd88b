/** The configuration of an endpoint: as a form and as JSON, its keys, and actions that cannot be undone. */
import type { Endpoint } from '../../../client/api-types.d.ts'
import { mayManage, mayUseJobs } from '../../../client/session.ts'
import { Section } from '../../../parts/basic.tsx'
import { listLeaves } from '../../endpoint-form/difference.ts'
import { bodyFromDraft, draftFromBody } from '../../endpoint-form/draft.ts'
import { Facts } from '../../endpoint-form/parts.tsx'
import { Danger } from './danger.tsx'
import { Editor } from './editor.tsx'
import { EndpointKeys } from './endpoint-keys.tsx'

/** A tab of an endpoint. */
export function Settings({ endpoint }: { readonly endpoint: Endpoint }) {
  const mayWrite = mayManage('write')
  return (
    <>
      {mayWrite ? (
        <Editor endpoint={endpoint} />
      ) : (
        <Section title="Configuration">
          <Facts of={listLeaves(bodyFromDraft(draftFromBody(endpoint)))} />
        </Section>
      )}
      {mayWrite ? <EndpointKeys endpoint={endpoint} /> : null}
      {mayWrite || mayUseJobs('write', endpoint.id) ? <Danger endpoint={endpoint} /> : null}
    </>
  )
}
