import type { LoginRequest } from '../../../core/accounts/login-request.ts'
import type { ApiParts } from '../../parts.ts'
import type { GraphqlContext } from '../context.ts'

/** Queries of logins of command lines. They need no key: the id of a login is a secret. */
export function loginQueries({ logins }: ApiParts) {
  return {
    flashAuthRequestStatus(
      _: unknown,
      { flashAuthRequestId: id }: { flashAuthRequestId: string },
      context: GraphqlContext,
    ) {
      const { key, ...login } = logins.poll(id, addressOf(context))
      return { ...loginView(login), apiKey: key }
    },
  }
}

/** Mutations of logins of command lines, which have no key yet. */
export function loginMutations({ logins }: ApiParts) {
  return {
    createFlashAuthRequest(_: unknown, __: unknown, context: GraphqlContext) {
      return loginView(logins.ask(addressOf(context), context.agent))
    },
  }
}

function addressOf({ env }: GraphqlContext): string {
  return env.address?.() ?? ''
}

function loginView({ id, status, expiresAtMs }: LoginRequest) {
  return { id, status, expiresAt: new Date(expiresAtMs).toISOString() }
}
