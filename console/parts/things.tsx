/** Pages of things that an account keeps: a list with a search, a form for a new one, a drawer for each. */
import type { ComponentChildren } from 'preact'
import { Fragment } from 'preact'
import { useState } from 'preact/hooks'
import type { Resource } from '../client/resource.ts'
import { mayManage } from '../client/session.ts'
import { count, plural } from '../format.ts'
import { query, setQuery } from '../router.ts'
import { Button, Code, Empty, Loaded, PageHead } from './basic.tsx'
import { Confirm, Dialog } from './dialog.tsx'
import { type Column, Table } from './table.tsx'

/** Closes the drawer of a row. */
export function closeRow(): void {
  setQuery({ id: null })
}

/** A page of things. `?id=` opens one, `?new=` begins one, `?q=` is the search. */
export function ResourcePage<Row extends { readonly id: string }>({
  title,
  what,
  purpose,
  of,
  columns,
  searchText,
  form,
  detail,
  children,
}: {
  readonly title: string
  /** One of them, such as `secret`. */
  readonly what: string
  /** One sentence about the purpose of these things. */
  readonly purpose: string
  readonly of: Resource<readonly Row[]>
  readonly columns: readonly Column<Row>[]
  /** Text of a row that the search matches. */
  readonly searchText: (row: Row) => string
  /** Left out where this page makes none. */
  readonly form?: (onClose: () => void, name: string) => ComponentChildren
  readonly detail: (row: Row) => ComponentChildren
  readonly children?: ComponentChildren
}) {
  const [isNew, setNew] = useState(false)
  const begun = query.value.get('new')
  const text = query.value.get('q') ?? ''
  const opened = of.data?.find(({ id }) => id === query.value.get('id'))
  const sought = text.toLowerCase()
  const list = (rows: readonly Row[]) => {
    if (rows.length === 0) {
      return (
        <div class="card">
          <Empty title={`No ${what}s yet`}>
            <p>{purpose}</p>
          </Empty>
        </div>
      )
    }
    const matches = rows.filter(row => searchText(row).toLowerCase().includes(sought))
    return (
      <>
        <div class="tools">
          <input
            type="search"
            data-search
            aria-label={`Search ${what}s`}
            placeholder="Search"
            value={text}
            onInput={event => setQuery({ q: event.currentTarget.value })}
          />
          <span class="faint" role="status">
            {sought === '' ? plural(rows.length, what) : `${count(matches.length)} of ${count(rows.length)}`}
          </span>
        </div>
        <Table
          label={title}
          rows={matches}
          columns={columns}
          rowKey={({ id }) => id}
          onOpen={({ id }) => setQuery({ id }, { replace: false })}
          initialSort={{ column: 'name', isDown: false }}
          empty={<Empty title={`No ${what} matches`} />}
        />
      </>
    )
  }
  if (!mayManage('read')) {
    return (
      <>
        <PageHead title={title} />
        <Empty title={`Your key may not see ${what}s`} />
      </>
    )
  }
  const endNew = () => {
    setNew(false)
    setQuery({ new: null })
  }
  return (
    <>
      <PageHead title={title}>
        {form !== undefined && mayManage('write') ? (
          <Button kind="main" onPress={() => setNew(true)}>
            New {what}
          </Button>
        ) : null}
      </PageHead>
      <Loaded of={of}>{list}</Loaded>
      {children}
      {form !== undefined && (isNew || begun !== null) && mayManage('write') ? form(endNew, begun ?? '') : null}
      {opened === undefined ? null : <Fragment key={opened.id}>{detail(opened)}</Fragment>}
    </>
  )
}

/** An action on a thing: its button, and the dialog that the button opens. */
export type Action = readonly [
  title: string,
  dialog: (onClose: () => void) => ComponentChildren,
  kind?: 'main' | 'danger',
]

/**
 * The action that deletes a thing, after a question that states the effects.
 * @param typed text that the person has to type first
 */
export function deletion({
  what,
  name,
  action = `Delete the ${what}`,
  typed,
  onConfirm,
  children,
}: {
  readonly what: string
  readonly name: string
  readonly action?: string
  readonly typed?: string
  readonly onConfirm: () => Promise<unknown>
  readonly children: ComponentChildren
}): Action {
  return [
    'Delete',
    onClose => (
      <Confirm
        title={`Delete the ${what} ${name}?`}
        action={action}
        {...(typed === undefined ? {} : { typed })}
        onClose={onClose}
        onConfirm={async () => {
          await onConfirm()
          closeRow()
        }}
      >
        {children}
      </Confirm>
    ),
    'danger',
  ]
}

/** One thing in a drawer, with the actions that the key may use. */
export function Drawer({
  title,
  facts = [],
  actions,
  onClose = closeRow,
  children,
}: {
  readonly title: string
  readonly facts?: readonly (readonly [string, ComponentChildren])[]
  readonly actions: readonly Action[]
  readonly onClose?: () => void
  readonly children?: ComponentChildren
}) {
  const [acting, setActing] = useState<Action[1] | null>(null)
  return (
    <Dialog
      kind="drawer"
      title={title}
      onClose={onClose}
      actions={
        actions.length === 0
          ? undefined
          : actions.map(([name, dialog, kind]) => (
              <Button key={name} kind={kind} onPress={() => setActing(() => dialog)}>
                {name}
              </Button>
            ))
      }
    >
      <Facts of={facts} />
      {children}
      {acting?.(() => setActing(null))}
    </Dialog>
  )
}

/** Names with their values. */
export function Facts({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

/** A part of a drawer. */
export function Part({ title, children }: { readonly title: ComponentChildren; readonly children: ComponentChildren }) {
  return (
    <div class="drawer-part">
      <h3>{title}</h3>
      {children}
    </div>
  )
}

/** A key that is shown once. It takes two presses to leave it, so that nobody does so by accident. */
export function ShownOnce({
  title,
  text,
  beside = [],
  onClose,
}: {
  readonly title: string
  readonly text: string
  /** Secrets that come with it: what each is, and its text. */
  readonly beside?: readonly (readonly [string, string])[]
  readonly onClose: () => void
}) {
  const [isWarned, setWarned] = useState(false)
  return (
    <Dialog
      title={title}
      onClose={() => (isWarned ? onClose() : setWarned(true))}
      actions={
        <Button kind="main" onPress={onClose}>
          I have copied it
        </Button>
      }
    >
      <p class={isWarned ? 'notice wait' : ''} role={isWarned ? 'alert' : undefined}>
        This is the only time that the key is shown. {isWarned ? 'Copy it before you close this.' : ''}
      </p>
      <Code text={text} what="key" />
      {beside.map(([what, secret]) => (
        <div key={what}>
          <p>{what}</p>
          <Code text={secret} what={what} />
        </div>
      ))}
    </Dialog>
  )
}
