/** Lines with which programs say that a port is in use. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { portInUse } from '../../../src/core/workers/taken-port.ts'

test('the port is found in the words of each runtime, and not in the time before them', () => {
  const lines: readonly (readonly [line: string, port: number | 'unnamed' | null])[] = [
    ['Error: listen EADDRINUSE: address already in use 127.0.0.1:8000', 8000],
    ['Error: listen EADDRINUSE: address already in use :::8000', 8000],
    ["ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", 8000],
    ['12:00:01 listen tcp :8000: bind: address already in use', 8000],
    ['nginx: [emerg] bind() to 0.0.0.0:8000 failed (98: Address already in use)', 8000],
    ["[2026-01-01 12:00:01] [ERROR] Connection in use: ('0.0.0.0', 8000)", 8000],
    ['Port 8000 is in use by another program. Either identify and stop that program', 8000],
    ['The server socket has failed to listen on any local network address. port: 29500, code: -98', 29_500],
    ["couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", 8080],
    ['2026-01-01 12:00:01,123 OSError: [Errno 98] Address already in use', 'unnamed'],
    ['Error: Os { code: 98, kind: AddrInUse, message: "Address already in use" }', 'unnamed'],
    ['it listens on port 8000', null],
    ['the port 8000 is free', null],
    [`${' '.repeat(3_000)}EADDRINUSE :::8000`, null],
  ]
  for (const [line, port] of lines) assert.equal(portInUse(line), port, line)
})
