/*
 * What the processes of a fake machine with NVIDIA cards share: a folder with one small file for each of them.
 * Own code, made as an example for tests. Nothing here talks to a real driver.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

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
  uint64_t started;
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

/* The start of a process in ticks since the boot; 0 when there is none or it is dead. */
static inline uint64_t start_of(int pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  char *at = strrchr(text, ')');
  if (at == NULL || at[2] == 'Z' || at[2] == 'X') return 0;
  at += 2;
  for (int field = 3; field < 22; field++) {
    at = strchr(at, ' ');
    if (at == NULL) return 0;
    at++;
  }
  return strtoull(at, NULL, 10);
}

static inline void process_path(char *path, size_t size, int pid) {
  snprintf(path, size, "%s/procs/%d", fake_dir(), pid);
}

/* The file of a living process, mapped; NULL when there is none. The caller unmaps it. */
static inline Process *map_process(int pid, int *fd_out) {
  char path[512];
  process_path(path, sizeof path, pid);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  Process *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) { close(fd); return NULL; }
  if (p->magic != MAGIC || p->started == 0 || start_of(pid) != p->started) {
    munmap(p, sizeof *p);
    close(fd);
    unlink(path);
    return NULL;
  }
  if (fd_out != NULL) *fd_out = fd; else close(fd);
  return p;
}

/* Calls for each living process that has a context. */
static inline void each_process(void (*visit)(Process *, void *), void *with) {
  char path[512];
  snprintf(path, sizeof path, "%s/procs", fake_dir());
  DIR *dir = opendir(path);
  if (dir == NULL) return;
  struct dirent *entry;
  while ((entry = readdir(dir)) != NULL) {
    int pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    Process *p = map_process(pid, NULL);
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
