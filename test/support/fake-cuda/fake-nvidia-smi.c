/*
 * An nvidia-smi for the machine of fake-libcuda.c. It knows the calls that Runyard makes, and those of the proof:
 *   --query-gpu=<fields> --format=csv,noheader,nounits    --query-compute-apps=<fields> --format=…    -L    -q -x
 */
#include "fake-cuda.h"

static Machine m;
static uint64_t used[MAX_CARDS];
static const char *fields;

static uint64_t shown(const Process *p, int card) {
  return p->bytes[card] + (p->lingers[card] > 0 && now_ms() < p->lingers_until ? p->lingers[card] : 0);
}

static void add(Process *p, void *with) {
  (void)with;
  for (int i = 0; i < MAX_CARDS; i++) used[i] += shown(p, i);
}

static void print_app(Process *p, void *with) {
  (void)with;
  for (int i = 0; i < m.cards; i++) {
    if (shown(p, i) == 0) continue;
    char copy[256], *rest = copy, *word;
    int first = 1;
    snprintf(copy, sizeof copy, "%s", fields);
    while ((word = strsep(&rest, ",")) != NULL) {
      printf("%s", first ? "" : ", ");
      first = 0;
      if (strcmp(word, "pid") == 0) printf("%d", pid_here(p));
      else if (strcmp(word, "gpu_uuid") == 0) printf("%s", m.card[i].uuid_text);
      else if (strcmp(word, "used_memory") == 0 || strcmp(word, "used_gpu_memory") == 0) printf("%llu", (unsigned long long)(shown(p, i) >> 20));
      else printf("[N/A]");
    }
    printf("\n");
  }
}

static void print_card(int i) {
  char copy[256], *rest = copy, *word;
  int first = 1;
  uint64_t use = used[i] + m.card[i].foreign;
  snprintf(copy, sizeof copy, "%s", fields);
  while ((word = strsep(&rest, ",")) != NULL) {
    printf("%s", first ? "" : ", ");
    first = 0;
    if (strcmp(word, "index") == 0) printf("%d", i);
    else if (strcmp(word, "uuid") == 0 || strcmp(word, "gpu_uuid") == 0) printf("%s", m.card[i].uuid_text);
    else if (strcmp(word, "name") == 0) printf("%s", m.card[i].name);
    else if (strcmp(word, "memory.total") == 0) printf("%llu", (unsigned long long)(m.card[i].bytes >> 20));
    else if (strcmp(word, "memory.used") == 0) printf("%llu", (unsigned long long)(use >> 20));
    else if (strcmp(word, "memory.free") == 0) printf("%llu", (unsigned long long)((m.card[i].bytes - use) >> 20));
    else if (strcmp(word, "driver_version") == 0) printf("%s", m.driver);
    else if (strcmp(word, "persistence_mode") == 0) printf("%s", m.persistence ? "Enabled" : "Disabled");
    else if (strcmp(word, "mig.mode.current") == 0) printf(m.mig ? "Enabled" : "Disabled");
    else if (strcmp(word, "utilization.gpu") == 0) printf("0");
    else printf("[N/A]");
  }
  printf("\n");
}

int main(int count, char **words) {
  m = read_machine();
  if (m.cards == 0) { printf("No devices were found\n"); return 6; }
  each_process(add, NULL);
  for (int i = 1; i < count; i++) {
    if (strncmp(words[i], "--query-gpu=", 12) == 0) {
      fields = words[i] + 12;
      for (int card = 0; card < m.cards; card++) print_card(card);
      return 0;
    }
    if (strncmp(words[i], "--query-compute-apps=", 21) == 0) {
      fields = words[i] + 21;
      each_process(print_app, NULL);
      return 0;
    }
    if (strcmp(words[i], "-L") == 0) {
      for (int card = 0; card < m.cards; card++) printf("GPU %d: %s (UUID: %s)\n", card, m.card[card].name, m.card[card].uuid_text);
      return 0;
    }
    if (strcmp(words[i], "-q") == 0) {
      printf("<nvidia_smi_log>\n<driver_version>%s</driver_version>\n<cuda_version>%d.%d</cuda_version>\n", m.driver, m.cuda / 1000, m.cuda % 1000 / 10);
      for (int card = 0; card < m.cards; card++) {
        printf("<gpu id=\"0000000%d:00:00.0\">\n<uuid>%s</uuid>\n<mig_mode><current_mig>Disabled</current_mig></mig_mode>\n</gpu>\n", card, m.card[card].uuid_text);
      }
      printf("</nvidia_smi_log>\n");
      return 0;
    }
  }
  return 2;
}
