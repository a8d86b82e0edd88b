/** The settings about load-balancing endpoints. */
import { hostName, many, notEmpty, type Setting, setting, wholeNumber } from './setting.ts'

/** How load-balancing endpoints are reached. */
export interface GatewayConfig {
  /** Endpoints are hosts below it; null for paths below `/lb/` alone, and hosts below localhost. */
  readonly lbDomain: string | null
  /** Folders with a server, each to be a load-balancing endpoint. */
  readonly lbFolders: readonly string[]
  /** Ids and names of endpoints that need no key. */
  readonly lbPublic: readonly string[]
  /** Addresses and networks of proxies that are believed who sent a request. */
  readonly trustedProxies: readonly string[]
  /** Names that this server goes by, besides its own. */
  readonly allowedHosts: readonly string[]
  /** How many bytes the body of a request may have. */
  readonly lbBodyBytes: number
}

/** By the names of their options, as SETTINGS has them. */
export const GATEWAY_SETTINGS: Readonly<Record<string, Setting>> = {
  allowedHost: list(
    '--allowed-host',
    'ALLOWED_HOST',
    '<name>',
    'name by which clients may call this server, besides its own and those of loopback; may be repeated',
    hostName,
  ),
  lb: many(
    setting(
      '--lb',
      'LB',
      '<folder>',
      null,
      'run the server in this folder as a load-balancing endpoint; may be repeated',
      notEmpty,
    ),
  ),
  lbDomain: setting(
    '--lb-domain',
    'LB_DOMAIN',
    '<domain>',
    null,
    'domain below which load-balancing endpoints are hosts, as <endpoint>.<domain> (default: paths below /lb/)',
    domainName,
  ),
  lbPublic: list(
    '--lb-public',
    'LB_PUBLIC',
    '<endpoint>',
    'id or name of a load-balancing endpoint that needs no key; may be repeated',
    notEmpty,
  ),
  maxLbBody: setting(
    '--max-lb-body',
    'MAX_LB_BODY',
    '<megabytes>',
    '30',
    'largest body of a request for a load-balancing endpoint',
    wholeNumber(1, 1_000_000),
  ),
  trustedProxy: list(
    '--trusted-proxy',
    'TRUSTED_PROXY',
    '<address>',
    'address or network (10.0.0.0/8) of a proxy whose X-Forwarded headers are believed; may be repeated',
    network,
  ),
}

/** @param texts what was given for each of {@link GATEWAY_SETTINGS} */
export function gatewayConfig(
  texts: (name: string) => readonly string[],
  absolute: (path: string) => string,
): GatewayConfig {
  return {
    lbFolders: texts('lb').map(absolute),
    lbDomain: texts('lbDomain')[0]?.toLowerCase() ?? null,
    lbPublic: texts('lbPublic'),
    trustedProxies: texts('trustedProxy'),
    allowedHosts: texts('allowedHost'),
    lbBodyBytes: Number(texts('maxLbBody')[0]) * 1024 * 1024,
  }
}

/** Addresses have colons, so that the variable of such a setting has commas between them. */
function list(flag: string, variable: string, argument: string, help: string, check: Setting['check']): Setting {
  return { ...many(setting(flag, variable, argument, null, help, check)), separator: ',' }
}

/** Endpoints are names before it, which an address cannot have. */
function domainName(text: string): string | null {
  const isName = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text) && !isIpv4(text)
  return isName ? null : 'must be a domain such as lb.example'
}

function network(text: string): string | null {
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
