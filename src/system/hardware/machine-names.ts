import { hostname } from 'node:os'
import { readOptional } from '../../disk/optional-files.ts'

/** Names of this machine for itself: its host name, with the domains that it searches, and its line in /etc/hosts. */
export function machineNames(hostName = hostname(), read: (file: string) => string = readOptional): string[] {
  const name = hostName.toLowerCase()
  const [label = name] = name.split('.')
  const searched = splitWords(read('/etc/resolv.conf'))
    .filter(([word]) => word === 'search' || word === 'domain')
    .flatMap(([, ...domains]) => domains.filter(domain => domain !== '.'))
  const beside = splitWords(read('/etc/hosts')).flatMap(([, ...names]) => (names.includes(name) ? names : []))
  return [name, label, `${label}.local`, ...searched.map(domain => `${label}.${domain}`), ...beside]
}

function splitWords(text: string): string[][] {
  return text.split('\n').map(line => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
}
