/**
 * The filter of system calls of workers in cages, as a program for the kernel (seccomp, classic BPF). It refuses what
 * reaches parts of the kernel that are not kept apart by namespaces: keyrings, virtual sockets, tracing, loading of
 * code, mounts. Everything else is permitted.
 */

/** The architectures that the filter exists for, by the name that Node gives them. */
export type FilteredArchitecture = 'x64' | 'arm64'

/** Numbers of system calls: x64, arm64; null where an architecture does not have it. */
type Numbers = readonly [x64: number | null, arm64: number | null]

/** Refused with EPERM, as without the right. */
const REFUSED: Readonly<Record<string, Numbers>> = {
  // Keyrings have no namespace: keys of the server's user would be those of the worker.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Programs, traces and faults of the kernel.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  lookup_dcookie: [212, 18],
  fanotify_init: [300, 262],
  syslog: [103, 116],
  // Its own way to most other calls, past this filter.
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  // Code of the kernel, and another kernel.
  create_module: [174, null],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  get_kernel_syms: [177, null],
  query_module: [178, null],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  // Mounts, and files by a number instead of a path.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  open_by_handle_at: [304, 265],
  setns: [308, 268],
  // The machine itself.
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  swapon: [167, 224],
  swapoff: [168, 225],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  iopl: [172, null],
  ioperm: [173, null],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
  nfsservctl: [180, 42],
  vhangup: [153, 58],
}

const CLONE: Numbers = [56, 220]
const CLONE3: Numbers = [435, 435]
const UNSHARE: Numbers = [272, 97]
const SOCKET: Numbers = [41, 198]
const SOCKETPAIR: Numbers = [53, 199]

/** Flags that make namespaces: mount, control group, host name, IPC, user, process, network. */
const NEW_NAMESPACES = 0x7e02_0000
/** That of time, which is a part of the signal in the flags of `clone`. */
const NEW_TIME = 0x80
/**
 * AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Others, such as AF_VSOCK, have no namespace or a large part of the kernel
 * behind them.
 */
const FAMILIES = [1, 2, 10, 16]

const ARCHITECTURES: Readonly<Record<FilteredArchitecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 }
/** Numbers from here on are those of x32, a second set of the same calls. */
const X32 = 0x4000_0000

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

/** One instruction: code, jumps if true and if false, constant. */
type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number]
const INSTRUCTION_BYTES = 8
const MAX_JUMP = 255

/** Places in the data of a call. The words of arguments are in the order of bytes of both architectures. */
const AT = { number: 0, architecture: 4, firstArgument: 16 } as const

const load = (at: number): Instruction => [0x20, 0, 0, at]
const jumpIfEqual = (value: number, whenTrue: number, whenFalse: number): Instruction => [
  0x15,
  whenTrue,
  whenFalse,
  value,
]
const jumpIfAtLeast = (value: number, whenTrue: number, whenFalse: number): Instruction => [
  0x35,
  whenTrue,
  whenFalse,
  value,
]
const jumpIfAnyBit = (value: number, whenTrue: number, whenFalse: number): Instruction => [
  0x45,
  whenTrue,
  whenFalse,
  value,
]
const PERMIT: Instruction = [0x06, 0, 0, 0x7fff_0000]
const refuse = (errno: number): Instruction => [0x06, 0, 0, 0x0005_0000 | errno]

/** Instructions for one call. The last of them must return. */
function forCall(number: number | null, ...instructions: readonly Instruction[]): Instruction[] {
  if (number === null) return []
  if (instructions.length > MAX_JUMP) throw new Error('a jump in a filter is too long')
  return [jumpIfEqual(number, 0, instructions.length), ...instructions]
}

/** Refuses a call whose first argument has one of some bits. The kernel reads its low word alone. */
function withoutBits(number: number | null, bits: number): Instruction[] {
  return forCall(number, load(AT.firstArgument), jumpIfAnyBit(bits, 0, 1), refuse(EPERM), PERMIT)
}

function withFamilies(number: number | null): Instruction[] {
  const permitted = FAMILIES.map((family, index) => jumpIfEqual(family, FAMILIES.length - index, 0))
  return forCall(number, load(AT.firstArgument), ...permitted, refuse(EAFNOSUPPORT), PERMIT)
}

/**
 * The program, in the form that bubblewrap reads (`--seccomp`). Calls of another architecture do not exist.
 * @param architecture that of the machine, as Node names it
 * @returns null where there is no filter for it
 */
export function systemCallFilter(architecture: string = process.arch): Buffer | null {
  if (architecture !== 'x64' && architecture !== 'arm64') return null
  const column = architecture === 'x64' ? 0 : 1
  return encoded([
    load(AT.architecture),
    jumpIfEqual(ARCHITECTURES[architecture], 1, 0),
    refuse(ENOSYS),
    load(AT.number),
    ...(architecture === 'x64' ? [jumpIfAtLeast(X32, 0, 1), refuse(ENOSYS)] : []),
    ...Object.values(REFUSED).flatMap(numbers => forCall(numbers[column], refuse(EPERM))),
    // Its flags are in memory, where a filter cannot read them; programs fall back to the older call.
    ...forCall(CLONE3[column], refuse(ENOSYS)),
    ...withoutBits(CLONE[column], NEW_NAMESPACES),
    ...withoutBits(UNSHARE[column], NEW_NAMESPACES | NEW_TIME),
    ...withFamilies(SOCKET[column]),
    ...withFamilies(SOCKETPAIR[column]),
    PERMIT,
  ])
}

function encoded(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES)
  for (const [index, [code, whenTrue, whenFalse, value]] of program.entries()) {
    const at = index * INSTRUCTION_BYTES
    bytes.writeUInt16LE(code, at)
    bytes.writeUInt8(whenTrue, at + 2)
    bytes.writeUInt8(whenFalse, at + 3)
    bytes.writeUInt32LE(value >>> 0, at + 4)
  }
  return bytes
}
