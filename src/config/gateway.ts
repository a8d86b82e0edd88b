import { HOST_NAME, many, megabytes, optional, PATH, setting, TEXT, textOf, type ValueKind } from './setting.ts'

/** The settings of load-balancing endpoints. Addresses have colons, so commas separate several of them in a variable. */
export const GATEWAY_SETTINGS = {
  allowedHosts: many(
    '--allowed-host',
    '<name>',
    HOST_NAME,
    'name by which clients may call this server, besides its own and those of loopback; may be repeated',
    ',',
  ),
  lbFolders: many(
    '--lb',
    '<folder>',
    PATH,
    'run the server in this folder as a load-balancing endpoint; may be repeated',
  ),
  /** Null for paths below `/lb/`, and hosts below localhost. */
  lbDomain: optional(
    '--lb-domain',
    '<domain>',
    domainName(),
    'domain below which load-balancing endpoints are hosts, as <endpoint>.<domain> (default: paths below /lb/)',
  ),
  /** Ids and names of endpoints. */
  lbPublic: many(
    '--lb-public',
    '<endpoint>',
    TEXT,
    'id or name of a load-balancing endpoint that needs no key; may be repeated',
    ',',
  ),
  lbBodyBytes: setting(
    '--max-lb-body',
    '<megabytes>',
    '30',
    megabytes(1, 1_000_000),
    'largest body of a request for a load-balancing endpoint',
  ),
  trustedProxies: many(
    '--trusted-proxy',
    '<address>',
    textOf(networkProblem),
    'address or network (10.0.0.0/8) of a proxy whose X-Forwarded headers are trusted; may be repeated',
    ',',
  ),
}

/** A domain in lower case. Endpoints are names before it, which an IP address cannot have. */
function domainName(): ValueKind<string> {
  return {
    check: text => (HOST_NAME.check(text) === null && !isIpv4(text) ? null : 'must be a domain such as lb.example'),
    parse: text => text.toLowerCase(),
  }
}

function networkProblem(text: string): string | null {
  const [address = '', length, ...rest] = text.split('/')
  const bits = isIpv4(address) ? 32 : isIpv6(address) ? 128 : -1
  const fits = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits)
  return bits > 0 && fits && rest.length === 0 ? null : 'must be an IP address or a network such as 10.0.0.0/8'
}

function isIpv4(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) && text.split('.').every(part => Number(part) <= 255)
}

function isIpv6(text: string): boolean {
  return /^[0-9a-f:.]+$/i.test(text) && text.includes(':') && URL.canParse(`http://[${text}]/`)
}
