import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * The process that listens on a TCP port of this machine, if this user may see it: "pid 123 (node)". Null for an
 * unknown one, as on systems without /proc.
 */
export function portHolder(port: number): string | null {
  try {
    const socket = ['/proc/net/tcp', '/proc/net/tcp6']
      .map(file => listeningSocket(file, port))
      .find(inode => inode !== null)
    return socket == null ? null : processWith(`socket:[${socket}]`)
  } catch {
    return null
  }
}

function listeningSocket(file: string, port: number): string | null {
  const portDigits = port.toString(16).toUpperCase().padStart(4, '0')
  for (const line of readFileSync(file, 'utf8').split('\n').slice(1)) {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
    if (state === '0A' && local?.endsWith(`:${portDigits}`)) return inode ?? null
  }
  return null
}

function processWith(target: string): string | null {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    if (openFiles(pid).includes(target)) return `pid ${pid} (${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()})`
  }
  return null
}

function openFiles(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map(name => readlinkSync(`/proc/${pid}/fd/${name}`))
  } catch {
    return []
  }
}
