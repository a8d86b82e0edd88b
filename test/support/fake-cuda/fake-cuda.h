/*
 * What the processes of a fake machine with NVIDIA cards share: a folder with one small file for each of them.
 * Own code, made as an example for tests. Nothing here talks to a real driver.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAX_CARDS 8
#define MAGIC 0x46435544u
/* What a context costs on a card, in bytes. */
#define CONTEXT_BYTES (512ull << 20)

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };
enum { OP_NONE, OP_STATE, OP_LOCK, OP_CHECKPOINT, OP_RESTORE, OP_UNLOCK };
/* Kinds of memory that cannot be checkpointed or restored. */
enum { HAS_MANAGED = 1, HAS_IMPORTED = 2 };

typedef struct { uint8_t bytes[16]; } Uuid;
typedef struct { Uuid from, to; } Pair;

/* One process that has a context. The process itself writes all but the request. */
typedef struct {
  uint32_t magic;
  int32_t pid;
  uint32_t uid;
  int32_t tid;
  /* The pid namespace in which both ids are. */
  uint64_t space;
  volatile uint32_t state;
  volatile uint32_t kinds;
  volatile uint32_t working;
  volatile uint32_t broken;
  /* Bytes on each card, and what of it nvidia-smi still shows after it was given back, until when (ms). */
  volatile uint64_t bytes[MAX_CARDS];
  volatile uint64_t lingers[MAX_CARDS];
  volatile uint64_t lingers_until;
  volatile uint64_t saved[MAX_CARDS];
  /* The request of a caller, and its answer. */
  volatile uint32_t asked;
  volatile uint32_t answered;
  volatile int32_t op;
  volatile int32_t caller;
  volatile uint32_t timeout_ms;
  volatile uint32_t pairs;
  Pair pair[MAX_CARDS];
  volatile int32_t result;
  volatile int32_t value;
} Process;

typedef struct {
  char uuid_text[64];
  Uuid uuid;
  char name[64];
  uint64_t bytes;
  uint64_t foreign;
} Card;

typedef struct {
  int cards;
  Card card[MAX_CARDS];
  char driver[32];
  int cuda;
  int persistence;
  int mig;
  double gbps;
  double cuinit_ms;
  char quirks[256];
} Machine;

static inline const char *fake_dir(void) {
  const char *dir = getenv("FAKE_CUDA_DIR");
  return dir != NULL && *dir != '\0' ? dir : "/tmp/fake-cuda";
}

static inline uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void pause_ms(double ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)((ms - 1000 * (double)(time_t)(ms / 1000)) * 1e6)};
  while (nanosleep(&t, &t) == -1 && errno == EINTR) {}
}

/* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
static inline int parse_uuid(const char *text, Uuid *uuid) {
  int count = 0;
  if (strncmp(text, "GPU-", 4) == 0) text += 4;
  while (*text != '\0' && count < 16) {
    unsigned value;
    if (*text == '-') { text++; continue; }
    if (sscanf(text, "%2x", &value) != 1) return 0;
    uuid->bytes[count++] = (uint8_t)value;
    text += 2;
  }
  return count == 16;
}

/* machine.conf: `key=value` lines, and `card=<uuid>,<name>,<MiB>`; `foreign=<card>,<MiB>` is memory of programs that are nobody's. */
static inline Machine read_machine(void) {
  Machine m;
  char path[512], line[512];
  memset(&m, 0, sizeof m);
  strcpy(m.driver, "580.159.04");
  m.cuda = 13000;
  m.persistence = 1;
  m.gbps = 0;
  snprintf(path, sizeof path, "%s/machine.conf", fake_dir());
  FILE *file = fopen(path, "r");
  if (file == NULL) return m;
  while (fgets(line, sizeof line, file) != NULL) {
    char *value = strchr(line, '=');
    line[strcspn(line, "\r\n")] = '\0';
    if (value == NULL || line[0] == '#') continue;
    *value++ = '\0';
    if (strcmp(line, "card") == 0 && m.cards < MAX_CARDS) {
      Card *card = &m.card[m.cards];
      unsigned long long mib = 0;
      if (sscanf(value, "%63[^,],%63[^,],%llu", card->uuid_text, card->name, &mib) == 3 && parse_uuid(card->uuid_text, &card->uuid)) {
        card->bytes = mib << 20;
        m.cards++;
      }
    } else if (strcmp(line, "foreign") == 0) {
      int at; unsigned long long mib;
      if (sscanf(value, "%d,%llu", &at, &mib) == 2 && at >= 0 && at < MAX_CARDS) m.card[at].foreign += mib << 20;
    } else if (strcmp(line, "driver") == 0) snprintf(m.driver, sizeof m.driver, "%s", value);
    else if (strcmp(line, "cuda") == 0) m.cuda = atoi(value);
    else if (strcmp(line, "persistence") == 0) m.persistence = atoi(value);
    else if (strcmp(line, "mig") == 0) m.mig = atoi(value);
    else if (strcmp(line, "gbps") == 0) m.gbps = atof(value);
    else if (strcmp(line, "cuinit_ms") == 0) m.cuinit_ms = atof(value);
    else if (strcmp(line, "quirks") == 0) snprintf(m.quirks, sizeof m.quirks, ",%s,", value);
  }
  fclose(file);
  return m;
}

static inline int has_quirk(const Machine *m, const char *name) {
  char word[64];
  snprintf(word, sizeof word, ",%s,", name);
  return strstr(m->quirks, word) != NULL;
}

/* The pid namespace of a process; 0 where that cannot be seen. `pid` is "self" or a number. */
static inline uint64_t namespace_of(const char *pid) {
  char path[64];
  struct stat info;
  snprintf(path, sizeof path, "/proc/%.20s/ns/pid", pid);
  return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* The id of a process or thread in its own namespace; 0 where that cannot be seen. */
static inline int inner_id(const char *folder) {
  char path[128], line[512];
  int id = 0;
  snprintf(path, sizeof path, "%s/status", folder);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "NSpid:", 6) != 0) continue;
    char *last = strrchr(line, '\t');
    id = last == NULL ? 0 : atoi(last + 1);
  }
  fclose(file);
  return id;
}

/* The entry of a folder of /proc whose inner id is this one, in a namespace unless that is 0; 0 for none. */
static inline int outer_id(const char *folder, int inner, uint64_t space) {
  char path[96];
  int found = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) return 0;
  struct dirent *entry;
  while (found == 0 && (entry = readdir(dir)) != NULL) {
    if (atoi(entry->d_name) <= 0) continue;
    if (space != 0 && namespace_of(entry->d_name) != space) continue;
    snprintf(path, sizeof path, "%s/%.20s", folder, entry->d_name);
    if (inner_id(path) == inner) found = atoi(entry->d_name);
  }
  closedir(dir);
  return found;
}

/* The file of a process, by its namespace and its id there, so that processes of containers are told apart. */
static inline void process_path(char *path, size_t size, uint64_t space, int inner) {
  snprintf(path, size, "%s/procs/%llu-%d", fake_dir(), (unsigned long long)space, inner);
}

/* A process holds a lock of its file as long as it lives, which all namespaces see. */
static inline int hold_life(int fd) {
  struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  return fcntl(fd, F_OFD_SETLK, &life) == 0;
}

static inline int has_life(int fd) {
  struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  return fcntl(fd, F_OFD_GETLK, &life) == 0 && life.l_type != F_UNLCK;
}

/* The file of a living process, mapped; NULL when there is none. The caller unmaps it, and closes the file. */
static inline Process *map_file(const char *path, int *fd_out) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  Process *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) { close(fd); return NULL; }
  if (p->magic != MAGIC || !has_life(fd)) {
    int isOld = p->magic == MAGIC;
    munmap(p, sizeof *p);
    close(fd);
    if (isOld) unlink(path);
    return NULL;
  }
  if (fd_out != NULL) *fd_out = fd; else close(fd);
  return p;
}

/* The same, by a pid of this namespace. */
static inline Process *map_process(int pid, int *fd_out) {
  char path[512], name[16], folder[32];
  snprintf(name, sizeof name, "%d", pid);
  snprintf(folder, sizeof folder, "/proc/%d", pid);
  uint64_t space = namespace_of(name);
  int inner = inner_id(folder);
  if (space == 0 || inner == 0) return NULL;
  process_path(path, sizeof path, space, inner);
  return map_file(path, fd_out);
}

/* The pid of a process in this namespace; 0 where it cannot be seen. */
static inline int pid_here(const Process *p) {
  return p->space == namespace_of("self") ? p->pid : outer_id("/proc", p->pid, p->space);
}

/* Calls for each living process that has a context. */
static inline void each_process(void (*visit)(Process *, void *), void *with) {
  char path[512];
  snprintf(path, sizeof path, "%s/procs", fake_dir());
  DIR *dir = opendir(path);
  if (dir == NULL) return;
  struct dirent *entry;
  while ((entry = readdir(dir)) != NULL) {
    if (entry->d_name[0] == '.') continue;
    char file[1024];
    snprintf(file, sizeof file, "%s/%.200s", path, entry->d_name);
    Process *p = map_file(file, NULL);
    if (p == NULL) continue;
    visit(p, with);
    munmap(p, sizeof *p);
  }
  closedir(dir);
}

/* One lock for what is counted over all processes. */
static inline int lock_machine(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/machine.lock", fake_dir());
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) flock(fd, LOCK_EX);
  return fd;
}

#endif
