/**
 * Reach of a malicious worker that is a process in a cage: its own image and folders, and nothing of the server or of
 * others.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { findLimits } from '../../../src/drivers/cage/limits.ts'
import { tryCage } from '../../../src/drivers/cage/trial.ts'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, healthOf, makeEndpoint, runJob } from '../support/client.ts'
import { root, rootUrl } from '../support/server.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const trial = tryCage()
const isRequired = process.env.RUNYARD_NO_SKIP === '1'
const skip = 'problem' in trial && !isRequired ? trial.problem : false
const limits = findLimits()

const EPERM = 1
const EAFNOSUPPORT = 97

/** Calls of the kernel in Perl, with their numbers on x64. The server makes no other process refuse them. */
const REFUSED_CALLS: Readonly<Record<string, string>> = {
  add_key: 'syscall(248, my $t = "user", my $d = "x", my $p = "y", 1, -2)',
  request_key: 'syscall(249, my $t = "user", my $d = "x", 0, 0)',
  keyctl: 'syscall(250, 0, -3, 1)',
  bpf: 'syscall(321, 0, 0, 0)',
  userfaultfd: 'syscall(323, 1)',
  perf_event_open: 'syscall(298, 0, 0, 0, 0, 0)',
  io_uring_setup: 'syscall(425, 1, 0)',
  open_by_handle_at: 'syscall(304, 0, 0, 0)',
  unshare: 'syscall(272, 0x10000000)',
  setns: 'syscall(308, 0, 0)',
  mount: 'syscall(165, 0, 0, 0, 0, 0)',
  syslog: 'syscall(103, 10, 0, 0)',
  kexec_load: 'syscall(246, 0, 0, 0, 0)',
  AF_VSOCK: 'syscall(41, 40, 1, 0)',
  AF_ALG: 'syscall(41, 38, 5, 0)',
}
const noCalls = process.arch !== 'x64' && 'the numbers of the calls are those of x64'
const noPython = !existsSync('/usr/bin/python3') && !isRequired && 'there is no Python of the system'

/** Runs the shell command of its job and reports the result. */
const HANDLER = `
import { spawnSync } from 'node:child_process'
import { start } from '@runyard/worker'
start({ handler({ input }) {
  const { stdout, stderr, status, signal } = spawnSync('/bin/sh', ['-c', input.command], { encoding: 'utf8', timeout: 60000 })
  return { out: stdout.slice(-20000), err: stderr.slice(-2000), status, signal }
} })
`

describe('from inside of a caged process', { skip, timeout: patient(180_000) }, () => {
  let server: ProbedServer
  let endpoint: string
  let other: string

  const shell = async (command: string, at = endpoint) => {
    const done = await runJob(server, at, { command })
    assert.equal(done.status, 'COMPLETED', JSON.stringify(done))
    return done.output as { out: string; err: string; status: number | null; signal: string | null }
  }

  before(async () => {
    const images = temporaryFolder()
    for (const name of ['evil', 'other']) {
      mkdirSync(join(images, name, 'node_modules', '@runyard'), { recursive: true })
      writeFileSync(
        join(images, name, 'handler.mjs'),
        HANDLER.replace('@runyard/worker', `${rootUrl}/packages/worker/index.js`),
      )
    }
    const sandbox = ['--worker-sandbox', 'required', '--worker-network', 'server']
    const args = ['--process-root', images, ...sandbox, '--worker-readable', `${root}/packages`]
    server = await startProbedServer({ args })
    const settings = { workersMax: 1, idleTimeout: 3600, instanceIds: ['cpu3c-2-4'] }
    endpoint = await makeEndpoint(server, { folder: join(images, 'evil'), settings })
    other = await makeEndpoint(server, { folder: join(images, 'other'), settings })
    await Promise.all([shell('true'), shell('true', other)])
    server.forgetHolds()
  })

  test('the files of the server cannot be read: API key, encryption key, database, logs, relay', async () => {
    const names = ['api-key', 'encryption-key', 'runyard.sqlite', 'logs', 'relay', 'volumes', 'store']
    for (const name of names.slice(0, 3)) assert.ok(existsSync(join(server.dataDir, name)), name)
    const { out } = await shell(names.map(name => `ls '${join(server.dataDir, name)}' && echo SEEN`).join('; '))
    assert.doesNotMatch(out, /SEEN/)
    const key = readFileSync(join(server.dataDir, 'api-key'), 'utf8').trim()
    const found = await shell(
      `grep -rsl '${key.slice(0, 12)}' /tmp /etc /var '${server.dataDir}' | grep -v '^/proc'; cat /etc/shadow`,
    )
    assert.equal(found.out, '')
  })

  test('other workers are not there: neither processes, nor their environment, nor their folders', async () => {
    const mine = await shell(
      'echo $RUNPOD_POD_ID; cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep ^RUNPOD_POD_ID= | sort -u',
    )
    const [own, ...seen] = mine.out.trim().split('\n')
    assert.deepEqual(seen, [`RUNPOD_POD_ID=${own}`])
    const folders = await shell(`ls '${server.dataDir}/workers'`)
    assert.deepEqual(folders.out.trim().split('\n'), [own])
    assert.equal((await shell(`kill -0 ${server.pid} && echo SEEN`)).out, '')
  })

  test('sockets of the container engine and of the system are not there', async () => {
    const { out } = await shell(
      'find / -xdev -type s 2>/dev/null; ls -d /run/docker* /run/podman* /run/dbus /run/systemd 2>/dev/null',
    )
    assert.equal(out, '')
  })

  test('the system cannot be changed, and what it changes in its image is gone with it', async () => {
    const found = await shell(
      'for d in /usr /etc /; do echo x > $d/planted && echo WRITTEN; done; readlink -f handler.mjs',
    )
    assert.doesNotMatch(found.out, /WRITTEN/)
    const image = dirname(found.out.trim())
    const before = readFileSync(join(image, 'handler.mjs'), 'utf8')
    const changed = await shell(
      `cd '${image}' && echo x > planted && echo y > handler.mjs && mkdir -p cache && echo z > cache/new && cat planted handler.mjs cache/new`,
    )
    assert.equal(changed.out, 'x\ny\nz\n', changed.err)
    assert.equal(readFileSync(join(image, 'handler.mjs'), 'utf8'), before)
    assert.deepEqual([existsSync(join(image, 'planted')), existsSync(join(image, 'cache'))], [false, false])
    const own = await shell('echo x > mine && cat mine && echo y > $HOME/mine && echo z > /tmp/mine && echo DONE')
    assert.match(own.out, /DONE/)
  })

  test('there are no capabilities, no way to more of them, and no mount', async () => {
    const { out } = await shell(
      'grep -E "^(CapEff|CapPrm|CapBnd|NoNewPrivs)" /proc/self/status; mount -t tmpfs x /tmp && echo MOUNTED; unshare -U true && echo NAMESPACE; test -w /proc/sys/kernel/core_pattern && echo WRITTEN; test -w /proc/sysrq-trigger && echo WRITTEN; find /sys /proc/sys -xdev -writable -type f 2>/dev/null | head -3',
    )
    assert.deepEqual(
      out.match(/\t\S+/g)?.map(text => text.trim()),
      ['0000000000000000', '0000000000000000', '0000000000000000', '1'],
    )
    assert.doesNotMatch(out, /MOUNTED|NAMESPACE|WRITTEN|sys\//)
  })

  test('the kernel makes no keys, programs, traces and virtual sockets for it', { skip: noCalls }, async () => {
    const names = Object.keys(REFUSED_CALLS)
    const attempts = names.map(name => `{ my $r = ${REFUSED_CALLS[name]}; printf "%s %d %d\\n", "${name}", $r, $!; }`)
    const { out, err } = await shell(`perl -e '${attempts.join(' ')}'`)
    assert.deepEqual(
      out.trim().split('\n'),
      names.map(name => `${name} -1 ${name.startsWith('AF_') ? EAFNOSUPPORT : EPERM}`),
      err,
    )
    assert.match((await shell('grep Seccomp: /proc/self/status')).out, /Seccomp:\t2/)
  })

  test('programs still start others, share memory and use semaphores', { skip: noPython }, async () => {
    const program = [
      'import multiprocessing as m, threading, socket, tempfile, subprocess',
      'from multiprocessing import shared_memory',
      'def work(n): return n * n',
      'if __name__ == "__main__":',
      '  for method in ("fork", "spawn", "forkserver"):',
      '    with m.get_context(method).Pool(2) as pool: assert pool.map(work, [1, 2, 3]) == [1, 4, 9], method',
      '  lock = m.Semaphore(1); lock.acquire(); lock.release()',
      '  memory = shared_memory.SharedMemory(create=True, size=4096); memory.buf[0] = 7; memory.close(); memory.unlink()',
      '  t = threading.Thread(target=work, args=(1,)); t.start(); t.join()',
      '  for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6): socket.socket(family).close()',
      '  a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"',
      '  print(subprocess.run(["sh", "-c", "echo DONE"], capture_output=True, text=True).stdout, end="")',
    ]
    const { out, err } = await shell(`cat >work.py <<'END'\n${program.join('\n')}\nEND\n/usr/bin/python3 work.py`)
    assert.equal(out, 'DONE\n', err)
  })

  test('tables of the kernel about the whole machine are empty and cannot be written', async () => {
    const tables = ['kcore', 'keys', 'key-users', 'kallsyms', 'kmsg', 'timer_list', 'sched_debug', 'slabinfo', 'iomem']
    const { out } = await shell(
      [
        ...tables.map(name => `[ ! -e /proc/${name} ] || head -c 20 /proc/${name} || echo UNREADABLE ${name}`),
        'ls /sys/firmware /sys/fs/bpf /sys/fs/pstore /sys/kernel/debug /sys/kernel/security /sys/kernel/slab 2>/dev/null | grep -v :$',
        'ls /sys/kernel',
        'for f in sysrq-trigger sys/kernel/sysrq sys/vm/drop_caches sys/kernel/core_pattern; do (echo 0 >/proc/$f) 2>/dev/null && [ ! -c /proc/$f ] && echo WRITTEN $f; done',
        'mkdir /sys/kernel/x /sys/firmware/x 2>/dev/null && echo WRITTEN',
        'grep -c MemTotal /proc/meminfo; grep -c processor /proc/cpuinfo >/dev/null && echo CPUS',
      ].join('\n'),
    )
    assert.equal(out.trim(), 'mm\n1\nCPUS')
  })

  test('workers of different endpoints share no folder that one of them may change', async () => {
    const writable = `$(grep -E '^[^ ]+ [^ ]+ [^ ]+ rw' /proc/self/mounts | cut -d' ' -f2 | grep -v ^/proc)`
    const plant = [
      'for d in "$XDG_CACHE_HOME" "$HF_HOME" "$TRITON_CACHE_DIR" "$CUDA_CACHE_PATH" ~/.cache/torch ~/.nv; do mkdir -p $d; done',
      `for d in $(find ${writable} -xdev -type d 2>/dev/null); do echo x >$d/planted-here && echo PLANTED; done 2>/dev/null | wc -l`,
    ]
    const { out } = await shell(plant.join('\n'))
    assert.ok(Number(out) >= 8, out)
    const look = `ls -d ~/.cache/torch; find ${writable} -xdev -name planted-here 2>/dev/null`
    assert.equal((await shell(look, other)).out, '')
    // A later worker of the same endpoint finds what this one has compiled.
    assert.match((await shell('ls $XDG_CACHE_HOME/torch/planted-here')).out, new RegExp(`/caches/${endpoint}/torch/`))
  })

  test('a variable of a template cannot act outside of the cage', async () => {
    const { out } = await shell('cat /proc/1/environ | tr "\\0" "\\n" | cut -d= -f1 | sort')
    assert.doesNotMatch(out, /LD_PRELOAD|RUNPOD_AI_API_KEY/)
  })

  test('a fork bomb ends at its limit, and the server and other workers are not affected', {
    skip: limits.processes === null && 'this machine lets the server make no control group for processes',
  }, async () => {
    const bomb = 'i=0; while [ $i -lt 4500 ]; do sleep 1 & i=$((i+1)); done 2>/dev/null; echo STARTED $i'
    const started = runJob(server, endpoint, { command: bomb })
    await shell('true', other)
    const done = await started
    assert.ok(['COMPLETED', 'FAILED'].includes(done.status), done.status)
    assert.equal((await healthOf(server, other)).workers.ready >= 0, true)
  })

  test('a program that takes all memory ends alone, and the server and other workers are not affected', {
    skip: limits.memory === null && 'this machine lets the server make no control group for memory',
  }, async () => {
    const { out } = await shell(`node -e 'const a = []; for (;;) a.push(Buffer.alloc(64 << 20, 1))'; echo $?`)
    assert.equal(out.trim(), '137')
    await shell('true', other)
  })

  test('no process outside is traced, and no file system gives the rights of the owner of a program', async () => {
    const { out } = await shell(
      `cat /proc/${server.pid}/mem && echo SEEN; grep NoNewPrivs /proc/self/status; cut -d" " -f2,4 /proc/self/mounts`,
    )
    assert.doesNotMatch(out, /SEEN/)
    assert.match(out, /NoNewPrivs:\t1/)
    for (const mount of out.split('\n').filter(line => line.startsWith('/'))) assert.match(mount, /nosuid/)
  })

  test('no core is dumped, whose place the settings of the machine choose', async () => {
    assert.equal((await shell('ulimit -c')).out.trim(), '0')
  })

  test('its view says that it is in a cage, and what it is held to', async () => {
    const [{ id }] = (await ask(server, `/v2/serverless/${endpoint}/workers`)).json.workers
    const { json } = await ask(server, `/v2/serverless/${endpoint}/workers/${id}`)
    assert.equal(json.isolation, 'cage')
    assert.equal(json.limits.includes('processes'), limits.processes !== null)
    assert.ok(json.limits.includes('disk'))
    assert.ok(json.limits.includes('network'))
  })

  test('nothing of it held the server', () => server.assertNeverHeld())
})
