/** One worker of nginx as a proxy, with persistent connections, unbuffered like the gateway. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

/** A running nginx; `pid` is that of its worker. */
export interface Nginx {
  readonly child: ChildProcess
  readonly port: number
  readonly pid: number
}

/** Starts nginx. @param folder for its files @param port a free one @param target port of the backend */
export async function startNginx(folder: string, port: number, target: number): Promise<Nginx> {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(kind => `${kind}_temp_path ${folder}/${kind};`)
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
    events { worker_connections 16384; }
    http {
      access_log ${folder}/access.log; keepalive_requests 1000000000; keepalive_timeout 600s; ${paths.join(' ')}
      map $http_upgrade $upgrading { default upgrade; "" ""; }
      upstream backend { server 127.0.0.1:${target}; keepalive 1024; keepalive_requests 1000000000; }
      server {
        listen 127.0.0.1:${port} backlog=4096;
        location / {
          proxy_pass http://backend; proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off;
          proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $upgrading; proxy_set_header X-Forwarded-For $remote_addr;
          proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto http;
        }
      }
    }`,
  )
  const child = spawn('nginx', ['-e', join(folder, 'error.log'), '-c', file], { stdio: 'inherit' })
  for (;;) {
    const pid = firstChild(join(folder, 'nginx.pid'))
    if (pid !== null && (await listens(port))) return { child, port, pid }
    if (child.exitCode !== null) throw new Error('nginx ended before it was ready')
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

function firstChild(pidFile: string): number | null {
  try {
    const parent = readFileSync(pidFile, 'utf8').trim()
    return Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')[0]) || null
  } catch {
    return null
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}
