/** Users of a thing, shown before it is changed or deleted. */

import type { Used } from '../client/users.ts'
import { useUsers } from '../client/uses.ts'
import { plural } from '../format.ts'
import { Loaded } from './basic.tsx'

const MAX_NAMED = 20

const PATHS = { endpoint: '/endpoints/', template: '/templates?id=', task: '/tasks?id=' } as const

/** The endpoints, templates and tasks that use a thing, as links. */
export function UsedBy({ of }: { readonly of: Used }) {
  return (
    <Loaded of={useUsers(of)}>
      {users =>
        users.length === 0 ? (
          <p>Nothing uses it.</p>
        ) : (
          <ul class="used-by">
            {users.slice(0, MAX_NAMED).map(({ kind, id, name }) => (
              <li key={id}>
                {kind} <a href={`${PATHS[kind]}${id}`}>{name}</a>
              </li>
            ))}
            {users.length > MAX_NAMED ? <li>and {plural(users.length - MAX_NAMED, 'other')}</li> : null}
          </ul>
        )
      }
    </Loaded>
  )
}
