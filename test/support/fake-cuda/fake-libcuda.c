/*
 * A libcuda.so.1 for machines without a card. It has what a test of suspended workers needs: cards with memory that is counted over all
 * processes, contexts, allocations whose contents can be compared, work that takes time, and the six calls of the checkpoint API with the
 * layouts of CUDA 13. As with the real one, the work of a checkpoint is done by a thread of the target, so a target that is stopped answers
 * nothing and its caller waits. What goes wrong with real drivers can be asked for in machine.conf (`quirks=`):
 *
 *   sticky-oom     a restore that found too little memory can never be repeated (seen with driver 580)
 *   lingers        nvidia-smi shows the memory for a second after the checkpoint has returned (seen with driver 595)
 *   segv-lock      the lock kills the target (seen with driver 610)
 *   mig            a checkpoint says "out of memory" (cards with MIG)
 *   hang-checkpoint, hang-restore   the call does not return
 *   no-map         a device map is refused, whatever it says (seen with driver 580 on some machines)
 *   own-no-map     a device map is refused for programs that do not see all cards (CUDA_VISIBLE_DEVICES)
 *   busy           all programs have work on the card that does not end
 *   lost-lock      the lock succeeds, and its caller gets no answer
 *   no-kernels     no kernel can be loaded
 */
#define _GNU_SOURCE
#include "fake-cuda.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

typedef int CUresult;
#define API __attribute__((visibility("default")))
enum {
  OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_CONTEXT = 201, NO_COMPILER = 221,
  OPERATING_SYSTEM = 304, ILLEGAL_STATE = 401, NOT_FOUND = 500, NOT_READY = 600, NOT_SUPPORTED = 801
};

typedef struct { unsigned int timeoutMs, reserved0; uint64_t reserved1[7]; } LockArgs;
typedef struct { uint64_t reserved[8]; } CheckpointArgs;
typedef struct { Pair *pairs; unsigned int count; unsigned int padding; uint64_t reserved[6]; } RestoreArgs;
typedef struct { uint64_t reserved[8]; } UnlockArgs;
_Static_assert(sizeof(LockArgs) == 64 && sizeof(CheckpointArgs) == 64 && sizeof(RestoreArgs) == 64 && sizeof(UnlockArgs) == 64, "layout");

/* Contents are kept for the first part of an allocation only, so that a test can ask for 60 GB. */
#define SHADOW_BYTES (64u << 10)
typedef struct Block { struct Block *next; uint64_t at, bytes; int card; uint8_t *shadow, *saved; } Block;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int initialized;
static Process *self;
static Block *blocks;
static uint64_t next_address = 0x7f0000000000ull;
static int visible[MAX_CARDS], visible_count;
static __thread int current = -1;

static void read_visible(const Machine *m) {
  const char *text = getenv("CUDA_VISIBLE_DEVICES");
  visible_count = 0;
  if (text == NULL) {
    for (int i = 0; i < m->cards; i++) visible[visible_count++] = i;
    return;
  }
  char copy[512], *rest = copy, *word;
  snprintf(copy, sizeof copy, "%s", text);
  while ((word = strsep(&rest, ",")) != NULL && visible_count < MAX_CARDS) {
    int found = -1;
    for (int i = 0; i < m->cards; i++) {
      if (strncmp(word, "GPU-", 4) == 0 ? strncmp(m->card[i].uuid_text, word, strlen(word)) == 0 : atoi(word) == i && *word != '\0') found = i;
    }
    if (found < 0) break;
    visible[visible_count++] = found;
  }
}

typedef struct { uint64_t used[MAX_CARDS]; } Use;

static void add_use(Process *p, void *with) {
  for (int i = 0; i < MAX_CARDS; i++) ((Use *)with)->used[i] += p->bytes[i];
}

/* Free bytes of a card; the lock of the machine is held. */
static uint64_t free_of(const Machine *m, int card) {
  Use use;
  memset(&use, 0, sizeof use);
  each_process(add_use, &use);
  uint64_t used = use.used[card] + m->card[card].foreign;
  return used >= m->card[card].bytes ? 0 : m->card[card].bytes - used;
}

/* A call that does something waits while the process is locked. */
static void wait_until_unlocked(void) {
  while (self != NULL && self->state != RUNNING) pause_ms(1);
}

/* As seen on a card: a call that only waits or asks, and begins while its program is suspended, ends the program. */
static void crash_if_suspended(void) {
  if (self != NULL && self->state == CHECKPOINTED) *(volatile int *)8 = 1;
}

/* Counts work that a lock waits for; ended by taking one from `working`. */
static void begin_work(void) {
  for (;;) {
    wait_until_unlocked();
    __sync_fetch_and_add(&self->working, 1);
    if (self->state == RUNNING) return;
    __sync_fetch_and_sub(&self->working, 1);
  }
}

static CUresult do_checkpoint(const Machine *m) {
  uint64_t all = 0;
  if (self->state != LOCKED) return ILLEGAL_STATE;
  if (has_quirk(m, "hang-checkpoint")) for (;;) pause_ms(1000);
  if (has_quirk(m, "mig")) return OUT_OF_MEMORY;
  if (self->kinds & HAS_MANAGED) { self->state = FAILED; return NOT_SUPPORTED; }
  for (int i = 0; i < MAX_CARDS; i++) all += self->bytes[i];
  if (m->gbps > 0) pause_ms((double)all / m->gbps / 1e6);
  for (Block *b = blocks; b != NULL; b = b->next) {
    size_t size = b->bytes < SHADOW_BYTES ? b->bytes : SHADOW_BYTES;
    b->saved = malloc(size);
    memcpy(b->saved, b->shadow, size);
    memset(b->shadow, 0xdd, size);
  }
  int lock = lock_machine();
  for (int i = 0; i < MAX_CARDS; i++) {
    self->saved[i] = self->bytes[i];
    self->lingers[i] = has_quirk(m, "lingers") ? self->bytes[i] : 0;
    self->bytes[i] = 0;
  }
  self->lingers_until = now_ms() + 1000;
  close(lock);
  self->state = CHECKPOINTED;
  return OK;
}

/* Where the memory of each card goes; 0 when the map is refused. Real drivers want every card that they know in it. */
static int read_map(const Machine *m, int to[MAX_CARDS]) {
  int seen[MAX_CARDS] = {0};
  for (int i = 0; i < MAX_CARDS; i++) to[i] = i;
  if (self->pairs == 0) return 1;
  if (has_quirk(m, "no-map") || strtol(m->driver, NULL, 10) < 580 || (int)self->pairs != m->cards) return 0;
  if (has_quirk(m, "own-no-map") && visible_count != m->cards) return 0;
  for (unsigned k = 0; k < self->pairs; k++) {
    int from = -1, goal = -1;
    for (int i = 0; i < m->cards; i++) {
      if (memcmp(&m->card[i].uuid, &self->pair[k].from, 16) == 0) from = i;
      if (memcmp(&m->card[i].uuid, &self->pair[k].to, 16) == 0) goal = i;
    }
    if (from < 0 || goal < 0 || seen[goal]++ > 0) return 0;
    if (strcmp(m->card[from].name, m->card[goal].name) != 0) return 0;
    to[from] = goal;
  }
  return 1;
}

static CUresult do_restore(const Machine *m) {
  int to[MAX_CARDS];
  uint64_t all = 0;
  if (self->state != CHECKPOINTED) return ILLEGAL_STATE;
  if (has_quirk(m, "hang-restore")) for (;;) pause_ms(1000);
  if (self->broken) return OPERATING_SYSTEM;
  if (self->kinds & HAS_IMPORTED) { self->broken = 1; return INVALID_VALUE; }
  if (!read_map(m, to)) return INVALID_VALUE;
  int lock = lock_machine();
  for (int i = 0; i < m->cards; i++) {
    all += self->saved[i];
    if (self->saved[i] > 0 && free_of(m, to[i]) < self->saved[i]) {
      close(lock);
      self->broken = has_quirk(m, "sticky-oom");
      return OUT_OF_MEMORY;
    }
  }
  for (int i = 0; i < MAX_CARDS; i++) { self->lingers[i] = 0; self->bytes[i] = 0; }
  for (int i = 0; i < m->cards; i++) self->bytes[to[i]] += self->saved[i];
  close(lock);
  if (m->gbps > 0) pause_ms((double)all / m->gbps / 1e6);
  for (Block *b = blocks; b != NULL; b = b->next) {
    size_t size = b->bytes < SHADOW_BYTES ? b->bytes : SHADOW_BYTES;
    memcpy(b->shadow, b->saved, size);
    free(b->saved);
    b->saved = NULL;
    b->card = to[b->card];
  }
  for (int i = 0; i < visible_count; i++) visible[i] = to[visible[i]];
  self->state = LOCKED;
  return OK;
}

static int is_busy(void) {
  Machine m = read_machine();
  return has_quirk(&m, "busy");
}

/* True while the caller of a request lives: it has the lock of the file. */
static int has_caller(void) {
  char path[512];
  process_path(path, sizeof path, self->space, self->pid);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  int free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (fd >= 0) close(fd);
  return !free;
}

static CUresult do_lock(const Machine *m) {
  if (self->state != RUNNING) return ILLEGAL_STATE;
  if (has_quirk(m, "segv-lock")) *(volatile int *)8 = 1;
  uint64_t until = now_ms() + self->timeout_ms;
  /* New work waits from now on; what has begun ends first. */
  self->state = LOCKED;
  if (has_quirk(m, "lost-lock")) { while (has_caller()) pause_ms(5); return OK; }
  while (self->working > 0 || is_busy()) {
    if (self->timeout_ms > 0 && now_ms() >= until) { self->state = RUNNING; return NOT_READY; }
    pause_ms(1);
  }
  return OK;
}

/* The thread that does what other processes ask for. */
static void *serve(void *unused) {
  (void)unused;
  char name[16];
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  snprintf(name, sizeof name, "cuda%011llx", (unsigned long long)(uintptr_t)self & 0xfffffffffffull);
  prctl(PR_SET_NAME, name);
  self->tid = (int32_t)syscall(SYS_gettid);
  for (;;) {
    uint32_t asked = self->asked;
    if (asked == self->answered) { pause_ms(1); continue; }
    Machine m = read_machine();
    CUresult result = INVALID_VALUE;
    self->value = (int32_t)self->state;
    /* As seen on a card: what a caller has given up is not carried out later. */
    if (!has_caller()) { self->answered = asked; continue; }
    if (self->op == OP_STATE) result = OK;
    else if (self->op == OP_LOCK) result = do_lock(&m);
    else if (self->op == OP_CHECKPOINT) result = do_checkpoint(&m);
    else if (self->op == OP_RESTORE) result = do_restore(&m);
    else if (self->op == OP_UNLOCK) result = self->state == LOCKED ? (self->state = RUNNING, OK) : ILLEGAL_STATE;
    self->result = result;
    __sync_synchronize();
    self->answered = asked;
  }
  return NULL;
}

/* Gives this process its file and its thread. */
static CUresult enter(void) {
  pthread_t thread;
  char path[512];
  if (self != NULL && self->pid == getpid()) return OK;
  snprintf(path, sizeof path, "%s/procs", fake_dir());
  mkdir(path, 0777);
  uint64_t space = namespace_of("self");
  process_path(path, sizeof path, space, getpid());
  unlink(path);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return OPERATING_SYSTEM;
  fchmod(fd, 0666);
  if (ftruncate(fd, sizeof *self) != 0 || !hold_life(fd)) return OPERATING_SYSTEM;
  /* The file stays open: it has the lock that says that this process lives. */
  self = mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (self == MAP_FAILED) { self = NULL; return OPERATING_SYSTEM; }
  self->pid = getpid();
  self->uid = geteuid();
  self->space = space;
  __sync_synchronize();
  self->magic = MAGIC;
  if (pthread_create(&thread, NULL, serve, NULL) != 0) return OPERATING_SYSTEM;
  pthread_detach(thread);
  while (self->tid == 0) pause_ms(1);
  return OK;
}

/* Takes memory of a card for this process. */
static CUresult take(int card, uint64_t bytes) {
  Machine m = read_machine();
  int lock = lock_machine();
  CUresult result = OUT_OF_MEMORY;
  if (card < m.cards && free_of(&m, card) >= bytes) { self->bytes[card] += bytes; result = OK; }
  close(lock);
  return result;
}

/* ---- the driver API that programs call ---- */

API CUresult cuInit(unsigned int flags) {
  Machine m = read_machine();
  (void)flags;
  if (m.cards == 0) return NO_DEVICE;
  if (!initialized && m.cuinit_ms > 0) pause_ms(m.cuinit_ms);
  read_visible(&m);
  if (visible_count == 0) return NO_DEVICE;
  initialized = 1;
  return OK;
}

API CUresult cuDriverGetVersion(int *version) { *version = read_machine().cuda; return OK; }

API CUresult cuDeviceGetCount(int *count) {
  if (!initialized) return NOT_INITIALIZED;
  *count = visible_count;
  return OK;
}

API CUresult cuDeviceGet(int *device, int ordinal) {
  if (!initialized) return NOT_INITIALIZED;
  if (ordinal < 0 || ordinal >= visible_count) return INVALID_VALUE;
  *device = ordinal;
  return OK;
}

API CUresult cuDeviceGetName(char *name, int length, int device) {
  Machine m = read_machine();
  if (device < 0 || device >= visible_count) return INVALID_VALUE;
  snprintf(name, (size_t)length, "%s", m.card[visible[device]].name);
  return OK;
}

API CUresult cuDeviceGetUuid_v2(Uuid *uuid, int device) {
  Machine m = read_machine();
  if (device < 0 || device >= visible_count) return INVALID_VALUE;
  *uuid = m.card[visible[device]].uuid;
  return OK;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
  Machine m = read_machine();
  if (device < 0 || device >= visible_count) return INVALID_VALUE;
  *bytes = m.card[visible[device]].bytes;
  return OK;
}

API CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
  CUresult result;
  if (!initialized) return NOT_INITIALIZED;
  if (device < 0 || device >= visible_count) return INVALID_VALUE;
  pthread_mutex_lock(&guard);
  result = enter();
  if (result == OK) {
    wait_until_unlocked();
    if (self->bytes[visible[device]] == 0) result = take(visible[device], CONTEXT_BYTES);
  }
  pthread_mutex_unlock(&guard);
  if (result == OK) *context = (void *)(uintptr_t)(device + 1);
  return result;
}

API CUresult cuCtxSetCurrent(void *context) { current = (int)(uintptr_t)context - 1; return OK; }

API CUresult cuCtxSynchronize(void) { crash_if_suspended(); return current < 0 ? INVALID_CONTEXT : OK; }

API CUresult cuStreamSynchronize(void *stream) { (void)stream; crash_if_suspended(); return OK; }

API CUresult cuStreamQuery(void *stream) { (void)stream; crash_if_suspended(); return OK; }

API CUresult cuEventQuery(void *event) { (void)event; crash_if_suspended(); return OK; }

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  if (current < 0) return INVALID_CONTEXT;
  if (self != NULL && self->state == CHECKPOINTED) return OPERATING_SYSTEM;
  wait_until_unlocked();
  Machine m = read_machine();
  int lock = lock_machine();
  *free_bytes = free_of(&m, visible[current]);
  *total = m.card[visible[current]].bytes;
  close(lock);
  return OK;
}

API CUresult cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (current < 0 || self == NULL) return INVALID_CONTEXT;
  if (bytes == 0) return INVALID_VALUE;
  wait_until_unlocked();
  pthread_mutex_lock(&guard);
  int card = visible[current];
  CUresult result = take(card, bytes);
  if (result == OK) {
    Block *b = calloc(1, sizeof *b);
    b->at = next_address;
    b->bytes = bytes;
    b->card = card;
    b->shadow = calloc(1, bytes < SHADOW_BYTES ? bytes : SHADOW_BYTES);
    b->next = blocks;
    blocks = b;
    next_address += (bytes + 0x1fffff) & ~0x1fffffull;
    *address = b->at;
  }
  pthread_mutex_unlock(&guard);
  return result;
}

API CUresult cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned int flags) {
  (void)flags;
  CUresult result = cuMemAlloc_v2(address, bytes);
  if (result == OK) self->kinds |= HAS_MANAGED;
  return result;
}

static Block *block_at(uint64_t address, size_t bytes) {
  for (Block *b = blocks; b != NULL; b = b->next) if (address >= b->at && address + bytes <= b->at + b->bytes) return b;
  return NULL;
}

API CUresult cuMemFree_v2(uint64_t address) {
  wait_until_unlocked();
  pthread_mutex_lock(&guard);
  for (Block **at = &blocks; *at != NULL; at = &(*at)->next) {
    Block *b = *at;
    if (b->at != address) continue;
    *at = b->next;
    int lock = lock_machine();
    self->bytes[b->card] -= b->bytes;
    close(lock);
    free(b->shadow);
    free(b);
    pthread_mutex_unlock(&guard);
    return OK;
  }
  pthread_mutex_unlock(&guard);
  return INVALID_VALUE;
}

static CUresult copy(uint64_t address, void *host, size_t bytes, int to_card) {
  wait_until_unlocked();
  pthread_mutex_lock(&guard);
  Block *b = block_at(address, bytes);
  if (b != NULL) {
    uint64_t offset = address - b->at;
    size_t size = offset >= SHADOW_BYTES ? 0 : bytes < SHADOW_BYTES - offset ? bytes : SHADOW_BYTES - offset;
    if (to_card) memcpy(b->shadow + offset, host, size);
    else { memset(host, 0, bytes); memcpy(host, b->shadow + offset, size); }
  }
  pthread_mutex_unlock(&guard);
  return b == NULL ? INVALID_VALUE : OK;
}

API CUresult cuMemcpyHtoD_v2(uint64_t address, const void *host, size_t bytes) { return copy(address, (void *)host, bytes, 1); }
API CUresult cuMemcpyDtoH_v2(void *host, uint64_t address, size_t bytes) { return copy(address, host, bytes, 0); }

/* Kernels are known by their names, whatever the text of the module says. Those of `runyard doctor --gpu`. */
static const char *kernel_names[] = {"fill", "checksum", "advance"};

API CUresult cuModuleLoadData(void **module, const void *image) {
  Machine m = read_machine();
  if (current < 0) return INVALID_CONTEXT;
  if (has_quirk(&m, "no-kernels") || strstr(image, ".entry") == NULL) return NO_COMPILER;
  *module = (void *)(uintptr_t)1;
  return OK;
}

API CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  for (uintptr_t i = 0; i < 3; i++) if (strcmp(kernel_names[i], name) == 0) { *function = (void *)(i + 1); return OK; }
  return NOT_FOUND;
}

static void run_kernel(uintptr_t kernel, void **args) {
  uint64_t at = *(uint64_t *)args[0];
  Block *b = block_at(at, 4), *out = NULL;
  if (b == NULL) return;
  uint32_t *words = (uint32_t *)(b->shadow + (at - b->at));
  size_t bytes = (b->bytes < SHADOW_BYTES ? b->bytes : SHADOW_BYTES) - (at - b->at);
  uint64_t count = kernel == 3 ? 1 : *(uint64_t *)args[1], sum = 0;
  if (count > bytes / 4) count = bytes / 4;
  if (kernel == 1) for (uint64_t i = 0; i < count; i++) words[i] = (uint32_t)i * 0x9E3779B1u ^ *(uint32_t *)args[2];
  if (kernel == 2 && (out = block_at(*(uint64_t *)args[2], 8)) != NULL) {
    for (uint64_t i = 0; i < count; i++) sum += (uint64_t)words[i] * (2 * i + 1);
    *(uint64_t *)(out->shadow + (*(uint64_t *)args[2] - out->at)) += sum;
  }
  if (kernel == 3) for (uint32_t i = *(uint32_t *)args[1]; i > 0; i--) words[0] = words[0] * 1664525u + 1013904223u;
}

API CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **args, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
  if (current < 0 || self == NULL) return INVALID_CONTEXT;
  begin_work();
  pthread_mutex_lock(&guard);
  run_kernel((uintptr_t)f, args);
  pthread_mutex_unlock(&guard);
  __sync_fetch_and_sub(&self->working, 1);
  return OK;
}

/* Not of CUDA: work of this many milliseconds, which a lock waits for. */
API CUresult fakeWork(unsigned int ms) {
  if (self == NULL) return INVALID_CONTEXT;
  begin_work();
  pause_ms(ms);
  __sync_fetch_and_sub(&self->working, 1);
  return OK;
}

static volatile uint32_t synchronized;

static void *synchronize(void *unused) {
  (void)unused;
  for (;;) {
    cuStreamSynchronize(NULL);
    __sync_fetch_and_add(&synchronized, 1);
    pause_ms(1);
  }
  return NULL;
}

/* Not of CUDA: starts a thread that synchronizes in a loop, as those of servers of models do. */
API CUresult fakeSynchronizing(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, synchronize, NULL) == 0 ? OK : OPERATING_SYSTEM;
}

/* Not of CUDA: turns of these threads. */
API unsigned int fakeTurns(void) { return synchronized; }

/* Not of CUDA: as if this process had imported memory of another one. */
API CUresult fakeImport(void) { if (self == NULL) return INVALID_CONTEXT; self->kinds |= HAS_IMPORTED; return OK; }

/* ---- the checkpoint API ---- */

/* Has the thread of the target do something, and waits for its answer as long as the target lives. */
static CUresult ask(int pid, int op, unsigned timeout_ms, const RestoreArgs *args, int *value) {
  int fd = -1;
  Process *p = map_process(pid, &fd);
  if (p == NULL) return OPERATING_SYSTEM;
  if (geteuid() != 0 && geteuid() != p->uid) { munmap(p, sizeof *p); close(fd); return OPERATING_SYSTEM; }
  CUresult result = OPERATING_SYSTEM;
  flock(fd, LOCK_EX);
  p->op = op;
  p->caller = getpid();
  p->timeout_ms = timeout_ms;
  p->pairs = 0;
  if (args != NULL && args->pairs != NULL && args->count <= MAX_CARDS) {
    memcpy(p->pair, args->pairs, args->count * sizeof(Pair));
    p->pairs = args->count;
  }
  __sync_synchronize();
  uint32_t asked = p->answered + 1;
  p->asked = asked;
  for (int turn = 0;; turn++) {
    if (p->answered == asked) { result = p->result; if (value != NULL) *value = p->value; break; }
    if (turn % 64 == 63 && !has_life(fd)) break;
    pause_ms(0.5);
  }
  munmap(p, sizeof *p);
  close(fd);
  return result;
}

static int is_zero(const void *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) if (((const uint8_t *)bytes)[i] != 0) return 0;
  return 1;
}

API CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid) {
  Process *p = map_process(pid, NULL);
  if (p == NULL || tid == NULL) return p == NULL ? NOT_INITIALIZED : (munmap(p, sizeof *p), INVALID_VALUE);
  char folder[64];
  snprintf(folder, sizeof folder, "/proc/%d/task", pid);
  *tid = p->space == namespace_of("self") ? p->tid : outer_id(folder, p->tid, 0);
  munmap(p, sizeof *p);
  return OK;
}

API CUresult cuCheckpointProcessGetState(int pid, int *state) {
  return state == NULL ? INVALID_VALUE : ask(pid, OP_STATE, 0, NULL, state);
}

API CUresult cuCheckpointProcessLock(int pid, LockArgs *args) {
  if (args != NULL && !is_zero((char *)args + 4, 60)) return INVALID_VALUE;
  return ask(pid, OP_LOCK, args == NULL ? 0 : args->timeoutMs, NULL, NULL);
}

API CUresult cuCheckpointProcessCheckpoint(int pid, CheckpointArgs *args) {
  if (args != NULL && !is_zero(args, 64)) return INVALID_VALUE;
  return ask(pid, OP_CHECKPOINT, 0, NULL, NULL);
}

API CUresult cuCheckpointProcessRestore(int pid, RestoreArgs *args) {
  Machine m = read_machine();
  if (!initialized && !m.persistence) return NOT_INITIALIZED;
  if (args != NULL && !is_zero((char *)args + 12, 52)) return INVALID_VALUE;
  return ask(pid, OP_RESTORE, 0, args, NULL);
}

API CUresult cuCheckpointProcessUnlock(int pid, UnlockArgs *args) {
  if (args != NULL && !is_zero(args, 64)) return INVALID_VALUE;
  return ask(pid, OP_UNLOCK, 0, NULL, NULL);
}

API CUresult cuGetErrorName(CUresult error, const char **text) {
  switch (error) {
    case OK: *text = "CUDA_SUCCESS"; return OK;
    case INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case NOT_INITIALIZED: *text = "CUDA_ERROR_NOT_INITIALIZED"; return OK;
    case NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; return OK;
    case INVALID_CONTEXT: *text = "CUDA_ERROR_INVALID_CONTEXT"; return OK;
    case NO_COMPILER: *text = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"; return OK;
    case NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; return OK;
    case OPERATING_SYSTEM: *text = "CUDA_ERROR_OPERATING_SYSTEM"; return OK;
    case ILLEGAL_STATE: *text = "CUDA_ERROR_ILLEGAL_STATE"; return OK;
    case NOT_READY: *text = "CUDA_ERROR_NOT_READY"; return OK;
    case NOT_SUPPORTED: *text = "CUDA_ERROR_NOT_SUPPORTED"; return OK;
    default: *text = NULL; return INVALID_VALUE;
  }
}

API CUresult cuGetErrorString(CUresult error, const char **text) { return cuGetErrorName(error, text); }
