/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int open, timed_out, watched, seconds;
  pthread_t watcher;
} the_gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, 0, 0, 0, 0};

static void open_gate(int timed_out) {
  pthread_mutex_lock(&the_gate.mutex);
  if (!the_gate.open) the_gate.timed_out = timed_out;
  the_gate.open = 1;
  pthread_cond_broadcast(&the_gate.changed);
  pthread_mutex_unlock(&the_gate.mutex);
}

static void wait_at_gate(void* unused) {
  (void)unused;
  pthread_mutex_lock(&the_gate.mutex);
  while (!the_gate.open) pthread_cond_wait(&the_gate.changed, &the_gate.mutex);
  pthread_mutex_unlock(&the_gate.mutex);
}

static void* watch(void* unused) {
  (void)unused;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += the_gate.seconds;
  pthread_mutex_lock(&the_gate.mutex);
  while (!the_gate.open && pthread_cond_timedwait(&the_gate.changed, &the_gate.mutex, &end) == 0) continue;
  pthread_mutex_unlock(&the_gate.mutex);
  open_gate(1);
  return NULL;
}

int gate_close(int seconds) {
  the_gate.open = the_gate.timed_out = 0;
  the_gate.seconds = seconds;
  const int failed = pthread_create(&the_gate.watcher, NULL, watch, NULL);
  the_gate.watched = !failed;
  return failed;
}

int gate_hold(const driver* cuda, void* stream) { return cuda->launch_host(stream, wait_at_gate, NULL); }

int gate_timed_out(void) { return the_gate.timed_out; }

int gate_open(void) {
  open_gate(0);
  if (!the_gate.watched) return 0;
  the_gate.watched = 0;
  return pthread_join(the_gate.watcher, NULL);
}
