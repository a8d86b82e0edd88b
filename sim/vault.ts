import { AppError } from '../src/core/errors.ts'
import type { Vault } from '../src/ports/vault.ts'
import { fnv1a } from './random.ts'

/** A vault without encryption that fulfils the contract of the port, with the same values in each run. */
export function createSimVault(): Vault {
  let sealed = 0
  return {
    hash: text => [0x811c9dc5, 0x9e3779b9, 0x85ebca6b, 0xc2b2ae35].map(start => hex(fnv1a(text, start))).join(''),
    equal: (a, b) => a === b,
    sign: async (key, texts) => hex(fnv1a(`${key}.${texts.join('')}`)),
    seal(plain, { kind, row }) {
      sealed += 1
      return `sim.${sealed}.${hex(fnv1a(`${kind}.${row}.${plain}`))}.${plain}`
    },
    derive: ({ kind, row }) => hex(fnv1a(`${kind}.${row}`)),
    reseal: () => null,
    open(text, { kind, row }) {
      const [form, , check, ...plain] = text.split('.')
      const opened = plain.join('.')
      if (form === 'sim' && check === hex(fnv1a(`${kind}.${row}.${opened}`))) return opened
      throw new AppError('internal', 'a stored secret was changed, or sealed with another encryption key')
    },
  }
}

function hex(hash: number): string {
  return hash.toString(16).padStart(8, '0')
}
