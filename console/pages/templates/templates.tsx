/** Templates: common starting points for the workers of several endpoints. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { Template } from '../../client/api-types.d.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { Button, Empty, Loaded, PageHead } from '../../parts/basic.tsx'
import { useGrowingList } from '../../parts/more.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { query, setQuery } from '../../router.ts'
import { TemplateDrawer } from './template-drawer.tsx'

const COLUMNS: readonly Column<Template>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name.toLowerCase() },
  {
    id: 'image',
    title: 'Image',
    width: 'minmax(0, 2fr)',
    cell: ({ image }) => <code>{image}</code>,
    sort: ({ image }) => image,
  },
  {
    id: 'for',
    title: 'For',
    width: '130px',
    cell: ({ serverless }) => (serverless ? 'endpoints' : 'other tools'),
    sort: ({ serverless }) => Number(!serverless),
    isExtra: true,
  },
  {
    id: 'env',
    title: 'Variables',
    width: '90px',
    align: 'end',
    cell: ({ env }) => Object.keys(env).length,
    isExtra: true,
  },
  {
    id: 'public',
    title: 'Seen by',
    width: '130px',
    cell: one => (one.public ? 'all accounts' : 'this account'),
    isExtra: true,
  },
]

/** The page of all templates of the account. */
export function Templates() {
  const [search, setSearch] = useState('')
  const templates = useGrowingList(
    'all templates',
    async (cursor, signal) => {
      const page = await api('GET /v2/templates', { query: { cursor: cursor ?? undefined }, signal })
      return { rows: page.templates, nextCursor: page.pagination.nextCursor }
    },
    ({ id }) => id,
    changeTopic(/Template$/i),
  )
  const open = query.value.get('open')
  const lowerCaseSearch = search.toLowerCase()
  const close = () => setQuery({ open: null })
  return (
    <>
      <PageHead title="Templates">
        {mayManage('write') ? (
          <Button kind="main" onPress={() => setQuery({ open: 'new' })}>
            New template
          </Button>
        ) : null}
      </PageHead>
      <div class="tools">
        <input
          type="search"
          data-search
          aria-label="Search templates"
          placeholder="Search"
          value={search}
          onInput={event => setSearch(event.currentTarget.value)}
        />
      </div>
      <Loaded of={templates}>
        {rows => (
          <>
            <Table
              label="Templates"
              rows={rows.filter(({ name, image }) => `${name} ${image}`.toLowerCase().includes(lowerCaseSearch))}
              columns={COLUMNS}
              rowKey={({ id }) => id}
              onOpen={({ id }) => setQuery({ open: id })}
              onEnd={templates.more}
              height={rows.length > 12 ? 'fill' : 'content'}
              empty={
                <Empty title={lowerCaseSearch === '' ? 'No template yet' : 'No template matches'}>
                  A template stores an image with its variables for several endpoints.
                </Empty>
              }
            />
            {open === null ? null : (
              <TemplateDrawer
                key={open}
                id={open}
                template={rows.find(({ id }) => id === open)}
                onChange={templates.reload}
                onClose={close}
              />
            )}
          </>
        )}
      </Loaded>
    </>
  )
}
