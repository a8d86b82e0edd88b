/** The models that the machine keeps for workers, and their downloads. For the operator. */
import { useState } from 'preact/hooks'
import { errorSentence, request } from '../../client/api.ts'
import { type Resource, useResource } from '../../client/resource.ts'
import { bytes, percent } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Ask } from '../../parts/ask.tsx'
import { Ago, Button, Loaded, Section } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import {
  type CachedModel,
  type Download,
  downloadShare,
  type MachineContent,
  modelPath,
  pull,
  readMachineModels,
} from './downloads.ts'

/** Time between two reads: while a download goes on, and otherwise. */
const AGAIN_MS = { downloading: 2_000, quiet: 20_000 }

/** Time after which a new download is in the list, in milliseconds. */
const SHOWN_MS = 500

/** The section of the machine's models. */
export function MachineModels() {
  const [isBusy, setBusy] = useState(false)
  const [isAsked, setAsked] = useState(false)
  const [removed, setRemoved] = useState<CachedModel | null>(null)
  const content = useResource(
    'models of the machine',
    async signal => {
      const read = await readMachineModels(signal)
      setBusy(read.downloads.length > 0)
      return read
    },
    { everyMs: isBusy ? AGAIN_MS.downloading : AGAIN_MS.quiet },
  )
  return (
    <Section
      title="On this machine"
      actions={content.data === null ? undefined : <Button onPress={() => setAsked(true)}>Download a model</Button>}
    >
      <Loaded of={content}>{data => <Content of={data} onRemove={setRemoved} />}</Loaded>
      {isAsked ? <NewDownload of={content} onClose={() => setAsked(false)} /> : null}
      {removed === null ? null : (
        <Confirm
          title={`Remove ${removed.name}?`}
          action="Remove the model"
          onClose={() => setRemoved(null)}
          onConfirm={async () => {
            await request('DELETE', `${modelPath(removed.name).path}?commit=${encodeURIComponent(removed.commit)}`)
            content.reload()
          }}
        >
          <p>
            {bytes(removed.bytes)} of commit <code>{removed.commit}</code>. The next worker that needs it downloads it
            again.
          </p>
        </Confirm>
      )}
    </Section>
  )
}

function Content({
  of: { models, downloads, usedBytes, limitBytes },
  onRemove,
}: {
  readonly of: MachineContent
  readonly onRemove: (model: CachedModel) => void
}) {
  return (
    <>
      <p class="hint">
        Models that endpoints name in their model references are downloaded before their workers start.{' '}
        {bytes(usedBytes)} of {bytes(limitBytes)} used.
      </p>
      {downloads.length === 0 ? null : (
        <ul class="downloads" aria-label="Downloads">
          {downloads.map(download => (
            <Progress key={`${download.name}:${download.revision}`} of={download} />
          ))}
        </ul>
      )}
      <Table
        label="Models on this machine"
        rows={models}
        columns={columns(onRemove)}
        rowKey={({ name, commit }) => `${name}@${commit}`}
        height="content"
        empty="No model yet."
      />
    </>
  )
}

function Progress({ of }: { readonly of: Download }) {
  const { name, revision, receivedBytes, totalBytes } = of
  const share = downloadShare(of)
  const text = `${bytes(receivedBytes)}${totalBytes === null ? '' : ` of ${bytes(totalBytes)}`}`
  return (
    <li>
      <b>{name}</b> <span class="faint">{revision}</span>{' '}
      {share === null ? null : (
        <span
          class="meter"
          role="progressbar"
          aria-label={`Download of ${name}`}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(share * 100)}
          aria-valuetext={text}
        >
          <span style={{ width: `${share * 100}%` }} />
        </span>
      )}{' '}
      {text}
      {share === null ? '' : `, ${percent(share)}`}
    </li>
  )
}

function columns(onRemove: (model: CachedModel) => void): readonly Column<CachedModel>[] {
  return [
    { id: 'name', title: 'Model', cell: ({ name }) => name, sort: ({ name }) => name, width: 'minmax(0, 1.6fr)' },
    {
      id: 'commit',
      title: 'Commit',
      width: '150px',
      cell: ({ commit, refs }) => (
        <>
          <code>{commit.slice(0, 8)}</code> {refs.join(', ')}
        </>
      ),
      isExtra: true,
    },
    { id: 'size', title: 'Size', width: '90px', cell: model => bytes(model.bytes), sort: model => model.bytes },
    {
      id: 'used',
      title: 'Last used',
      width: '110px',
      cell: ({ usedAt }) => (usedAt === null ? 'never' : <Ago at={usedAt} suffix=" ago" />),
      isExtra: true,
    },
    { id: 'workers', title: 'Workers', width: '90px', cell: ({ workers }) => workers, isExtra: true },
    {
      id: 'remove',
      title: 'Remove',
      width: '100px',
      cell: model =>
        // The server removes none that a worker has.
        model.workers > 0 ? (
          <span class="faint">in use</span>
        ) : (
          <Button kind="quiet" onPress={() => onRemove(model)} aria-label={`Remove ${model.name} ${model.commit}`}>
            Remove
          </Button>
        ),
    },
  ]
}

function NewDownload({ of, onClose }: { readonly of: Resource<MachineContent>; readonly onClose: () => void }) {
  return (
    <Ask
      title="Download a model"
      action="Download"
      asked={[
        {
          name: 'model',
          label: 'Model',
          placeholder: 'owner/name',
          hint: 'As the hub names it, or owner/name:revision. The secret HF_TOKEN is used where the hub wants a token.',
        },
      ]}
      act={async ({ model = '' }) => {
        const text = String(model)
        const pulled = pull(text)
        // The server answers once the model is there, or after some seconds.
        const shown = setTimeout(of.reload, SHOWN_MS)
        if (await pulled.finally(() => clearTimeout(shown))) announce(`${text} is there`)
        else void follow(text).finally(of.reload)
        of.reload()
      }}
      onClose={onClose}
    />
  )
}

/** Waits for the end of a download, and says how it ended. */
async function follow(text: string): Promise<void> {
  try {
    while (!(await pull(text)));
    announce(`${text} is there`)
  } catch (error) {
    announce(errorSentence(error), 'problem')
  }
}
