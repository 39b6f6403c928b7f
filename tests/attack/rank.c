/* One rank of a group that a launcher's variables describe; it does the steps of its arguments, in their
 * order:
 *
 *   rank BOOKS SECONDS STEP...     BOOKS: a folder of books; SECONDS: the time limit, 0 for none
 *
 *   init          a communicator from the launcher's variables
 *   book=NAME     loads BOOKS/NAME
 *   connect       connections for messages between all pairs
 *   allreduce=N   a sum of N numbers of each rank
 *   ring=N        N numbers to the next rank and from the one before, as a group
 *   sync          waits for all calls since the last sync and compares every number
 *   split         all ranks make a communicator in reverse order; it is the one that the next steps use
 *   shrink=R      likewise by all but rank R, which does no step until its next destroy
 *   swap          the two youngest communicators change places
 *   destroy       the youngest communicator
 *   abort         likewise, by force
 *   exit          ends the process with what it has
 *   fork=S        a child that lives S seconds and does nothing
 *   wait=MS, late=R,MS     all ranks sleep; rank R alone does
 *   pause         waits for a byte on standard input
 *   loop=N        allreduce and ring, of random sizes up to N, checked, for ever
 *
 * Each step is a line "at STEP SECONDS" before it is done (SECONDS of CLOCK_MONOTONIC), and the last line is
 * "end SECONDS". Exit status: 0; 99 where a number is wrong ("wrong ..."); 10 + the result of a call that
 * failed ("failed STEP: TEXT"), after which all communicators are destroyed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xccl.h>

enum { kMostComms = 8, kMostCalls = 64, kWrong = 99, kFailed = 10, kCycle = 1009 };

struct Call {
  xcclComm_t comm;
  float* numbers;
  size_t count;
  int rank, size; /* of the communicator */
  int from;       /* whose numbers are expected; -1: the sum of all ranks' */
};

static xcclComm_t comms[kMostComms];
static int depth, out; /* communicators; whether this rank is out of the youngest, which then is none */
static struct Call calls[kMostCalls];
static int called;
static double limit_s;
static const char* books;
static unsigned chance = 1;

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void Say(const char* what, const char* text) {
  printf("%s %s %.6f\n", what, text, Now());
  fflush(stdout);
}

static xcclComm_t Youngest(void) { return depth > 0 ? comms[depth - 1] : NULL; }

static void Fail(const char* step, xcclResult_t result, const char* text) {
  printf("failed %s: %s: %s\n", step, xcclGetErrorString(result), text);
  fflush(stdout);
  while (depth > 0) {
    Say("at", "destroy");
    if (comms[--depth] != NULL) xcclCommDestroy(comms[depth]);
  }
  Say("end", "");
  exit(kFailed + (int)result);
}

static void Must(const char* step, xcclResult_t result) {
  if (result != xcclSuccess) Fail(step, result, xcclGetLastError(Youngest()));
}

static float Number(int rank, size_t at) { return (float)((at * 7 + (size_t)rank * 13) % kCycle); }

static struct Call* Begin(size_t count) {
  struct Call* call = &calls[called];
  if (called == kMostCalls) exit(2);
  ++called;
  *call = (struct Call){
      .comm = Youngest(), .numbers = malloc((count + 1) * sizeof(float)), .count = count, .from = -1};
  xcclCommUserRank(Youngest(), &call->rank);
  xcclCommCount(Youngest(), &call->size);
  return call;
}

static void AllReduce(const char* step, size_t count) {
  struct Call* call = Begin(count);
  for (size_t i = 0; i < count; ++i) call->numbers[i] = Number(call->rank, i);
  Must(step, xcclAllReduce(call->numbers, call->numbers, count, xcclFloat, xcclSum, Youngest(), NULL));
}

/* What is sent stands behind what is received, so that one buffer serves both. */
static void Ring(const char* step, size_t count) {
  struct Call* call = Begin(2 * count);
  call->count = count;
  call->from = (call->rank + call->size - 1) % call->size;
  for (size_t i = 0; i < count; ++i) call->numbers[i] = -1, call->numbers[count + i] = Number(call->rank, i);
  Must(step, xcclGroupStart());
  Must(step,
       xcclSend(call->numbers + count, count, xcclFloat, (call->rank + 1) % call->size, Youngest(), NULL));
  Must(step, xcclRecv(call->numbers, count, xcclFloat, call->from, Youngest(), NULL));
  Must(step, xcclGroupEnd());
}

static float Expected(const struct Call* call, size_t at) {
  float sum = 0;
  if (call->from >= 0) return Number(call->from, at);
  for (int r = 0; r < call->size; ++r) sum += Number(r, at);
  return sum;
}

static void Compare(const struct Call* call) {
  for (size_t i = 0; i < call->count; ++i) {
    if (call->numbers[i] == Expected(call, i)) continue;
    printf("wrong rank %d, number %zu of %zu: %g; expected %g\n", call->rank, i, call->count,
           (double)call->numbers[i], (double)Expected(call, i));
    fflush(stdout);
    _exit(kWrong);
  }
  free(call->numbers);
}

/* The calls of a communicator, which all have ended. */
static void CompareAll(xcclComm_t comm) {
  int left = 0;
  for (int c = 0; c < called; ++c) {
    if (calls[c].comm == comm)
      Compare(&calls[c]);
    else
      calls[left++] = calls[c];
  }
  called = left;
}

static void Sync(const char* step) {
  Must(step, xcclCommSynchronize(Youngest()));
  CompareAll(Youngest());
}

static void Loop(size_t most) {
  while (1) {
    AllReduce("loop", 1 + (size_t)rand_r(&chance) % most);
    Ring("loop", 1 + (size_t)rand_r(&chance) % most);
    Sync("loop");
  }
}

static void Sleep(int ms) { usleep((unsigned)ms * 1000); }

/* Its output must not keep that of the rank open. */
static void Fork(int seconds) {
  if (fork() != 0) return;
  for (int file = 0; file < 3; ++file) close(file);
  sleep((unsigned)seconds);
  _exit(0);
}

static int IsRank(int rank) {
  const char* own = getenv("XCCL_RANK");
  return own != NULL && atoi(own) == rank;
}

static void Init(const char* step) {
  Must(step, xcclCommInitFromLauncher(&comms[depth]));
  ++depth;
  if (limit_s > 0) Must(step, xcclCommSetTimeLimit(Youngest(), limit_s));
}

static void Shrink(const char* step, int without) {
  int rank = 0;
  xcclCommUserRank(Youngest(), &rank);
  out = rank == without;
  if (!out) Must(step, xcclCommShrink(Youngest(), &without, 1, &comms[depth], NULL, XCCL_SHRINK_DEFAULT));
  ++depth;
}

static void Split(const char* step) {
  int rank = 0;
  xcclCommUserRank(Youngest(), &rank);
  Must(step, xcclCommSplit(Youngest(), 0, -rank, &comms[depth], NULL));
  ++depth;
}

static void Destroy(const char* step) {
  const xcclComm_t comm = comms[--depth];
  comms[depth] = NULL;
  if (!out) {
    const xcclResult_t result = xcclCommDestroy(comm);
    if (result != xcclSuccess) Fail(step, result, xcclGetLastError(NULL));
  }
  CompareAll(comm); /* it has waited for them */
  out = 0;
}

static void Abort(const char* step) {
  const xcclComm_t comm = comms[--depth];
  comms[depth] = NULL;
  Must(step, xcclCommAbort(comm));
}

static void LoadBook(const char* step, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", books, name);
  Must(step, xcclCommLoadPlanBook(Youngest(), path));
}

static void Do(const char* step, const char* name, const char* value) {
  const int number = atoi(value);
  if (out && strcmp(name, "destroy") != 0) return;
  if (strcmp(name, "init") == 0) return Init(step);
  if (strcmp(name, "book") == 0) return LoadBook(step, value);
  if (strcmp(name, "connect") == 0) return Must(step, xcclCommConnect(Youngest()));
  if (strcmp(name, "allreduce") == 0) return AllReduce(step, (size_t)number);
  if (strcmp(name, "ring") == 0) return Ring(step, (size_t)number);
  if (strcmp(name, "sync") == 0) return Sync(step);
  if (strcmp(name, "split") == 0) return Split(step);
  if (strcmp(name, "shrink") == 0) return Shrink(step, number);
  if (strcmp(name, "destroy") == 0) return Destroy(step);
  if (strcmp(name, "abort") == 0) return Abort(step);
  if (strcmp(name, "exit") == 0) _exit(0);
  if (strcmp(name, "fork") == 0) return Fork(number);
  if (strcmp(name, "wait") == 0) return Sleep(number);
  if (strcmp(name, "late") == 0) {
    if (IsRank(number)) Sleep(atoi(strchr(value, ',') + 1));
    return;
  }
  if (strcmp(name, "swap") == 0) {
    const xcclComm_t youngest = comms[depth - 1];
    comms[depth - 1] = comms[depth - 2];
    comms[depth - 2] = youngest;
    return;
  }
  if (strcmp(name, "pause") == 0) {
    (void)getchar();
    return;
  }
  if (strcmp(name, "loop") == 0) return Loop((size_t)number);
  fprintf(stderr, "rank: %s: unknown step\n", step);
  exit(2);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: rank BOOKS SECONDS STEP...\n");
    return 2;
  }
  books = argv[1];
  limit_s = atof(argv[2]);
  for (int i = 3; i < argc; ++i) {
    char name[64];
    snprintf(name, sizeof name, "%s", argv[i]);
    char* value = strchr(name, '=');
    if (value != NULL) *value++ = '\0';
    Say("at", argv[i]);
    Do(argv[i], name, value != NULL ? value : "");
  }
  Say("end", "");
  return 0;
}
