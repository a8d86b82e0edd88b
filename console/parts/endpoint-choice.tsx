/** The choice of an endpoint for a page, in its address as `?endpoint=`. */
import type { ComponentChildren } from 'preact'
import { mayManage, who } from '../client/session.ts'
import { useEndpoints } from '../client/uses.ts'
import { query, setQuery } from '../router.ts'
import { Empty, Loaded, PageHead } from './basic.tsx'

const ALL = 'All endpoints'

/** Names of the endpoints that the key may see, by their ids. */
export type EndpointNames = ReadonlyMap<string, string>

/**
 * A page about one of the queue endpoints: the chosen one. Without a choice it is about all of them where it can be,
 * else about the first.
 */
export function EndpointPage({
  title,
  purpose,
  all: ofAll,
  children,
}: {
  readonly title: string
  /** Purpose of the page, shown while no endpoint exists. */
  readonly purpose: string
  /** The page about all endpoints; receives the control that chooses one, and names. */
  readonly all?: (chooser: ComponentChildren, names: EndpointNames) => ComponentChildren
  /** Receives the id, the control that chooses another endpoint, and names. */
  readonly children: (id: string, chooser: ComponentChildren, names: EndpointNames) => ComponentChildren
}) {
  const endpoints = useEndpoints()
  const of = mayManage('read') ? endpoints : { ...endpoints, data: [] }
  return (
    <>
      <PageHead title={title} />
      <Loaded of={of}>
        {all => {
          const queueOptions = all.filter(({ type }) => type === 'QUEUE').map(({ id, name }) => [id, name] as const)
          const options = mayManage('read') ? queueOptions : namedByKey()
          const hasAll = ofAll !== undefined && options.length > 0
          const id = query.value.get('endpoint') ?? (hasAll ? '' : (options[0]?.[0] ?? ''))
          const isKnown = options.some(([one]) => one === id)
          const chooser = <Chooser id={id} options={hasAll ? [['', ALL], ...options] : options} />
          const names = new Map(all.map(endpoint => [endpoint.id, endpoint.name]))
          if (hasAll && id === '') return ofAll(chooser, names)
          if (isKnown || (!mayManage('read') && id !== '')) return children(id, chooser, names)
          return (
            <>
              <div class="tools">{chooser}</div>
              <div class="card">
                <Empty title={id === '' ? 'No queue endpoint yet' : `The queue endpoint ${id} does not exist`}>
                  <p>{purpose}</p>
                </Empty>
              </div>
            </>
          )
        }}
      </Loaded>
    </>
  )
}

/** A choice among the listed endpoints, or a field for an id without a list. */
function Chooser({ id, options }: { readonly id: string; readonly options: readonly (readonly [string, string])[] }) {
  const attributes = {
    class: 'endpoint-choice',
    'aria-label': 'Endpoint',
    value: id,
    onChange: (event: { readonly currentTarget: { readonly value: string } }) =>
      setQuery({ endpoint: event.currentTarget.value.trim() || null, id: null, job: null }),
  }
  if (options.length === 0 && !mayManage('read')) return <input {...attributes} placeholder="Id of an endpoint" />
  return (
    <select {...attributes}>
      {options.some(([one]) => one === id) ? null : <option value={id}>{id}</option>}
      {options.map(([value, name]) => (
        <option key={value} value={value}>
          {name === value || value === '' ? name : `${name} (${value})`}
        </option>
      ))}
    </select>
  )
}

/** The endpoints that the key of the session names; none if it may use all. */
function namedByKey(): readonly (readonly [string, string])[] {
  const scope = who.value?.scope
  if (scope?.type !== 'restricted' || typeof scope.jobs === 'string') return []
  return Object.keys(scope.jobs).map(id => [id, id] as const)
}
