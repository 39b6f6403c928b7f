/* Times and checks NCCL's collectives, knowing nccl.h alone: with the preload shim, the plans of a book
 * instead.
 *
 *   cc -O2 examples/nccl_perf.c -o nccl_perf -I/usr/local/cuda/include -lnccl -ldl
 *   ./nccl_perf 8 16777216
 *   LD_PRELOAD=/usr/local/lib/libxccl-nccl.so XCCL_BOOK=book ./nccl_perf 8 16777216
 *
 * Runs 8 ranks, each a process, and sizes up to 16 MiB. Ranks beyond the number of GPUs share them: NCCL is
 * then told that each rank is a host of its own, so that only times of ours mean something. Memory is NCCL's;
 * what NCCL lacks (copies, waiting) comes from the driver, which is opened by name. */
#include <dlfcn.h>
#include <nccl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kRepeats = 20, kMostRanks = 64 };

/* What the processes share. */
struct Shared {
  ncclUniqueId id;
  atomic_int made, wrong;
};

/* Of the driver. */
static int (*Init)(unsigned);
static int (*DeviceGetCount)(int*);
static int (*DevicePrimaryCtxRetain)(void**, int);
static int (*CtxSetCurrent)(void*);
static int (*StreamCreate)(void**, unsigned);
static int (*StreamSynchronize)(void*);
static int (*MemcpyHtoD)(unsigned long long, const void*, size_t);
static int (*MemcpyDtoH)(void*, unsigned long long, size_t);

static int rank, ranks;
static struct Shared* shared;
static ncclComm_t comm;
static cudaStream_t stream;
static int32_t *device_in, *device_out, *host;

static void Fail(const char* what, const char* why) {
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
  exit(1);
}
static void Nccl(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) Fail(what, ncclGetErrorString(result));
}
static void Cuda(int result, const char* what) {
  char text[32];
  snprintf(text, sizeof text, "CUDA error %d", result);
  if (result != 0) Fail(what, text);
}

static void OpenDriver(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) Fail("the driver", dlerror());
  const struct {
    void** function;
    const char* name;
  } functions[] = {{(void**)&Init, "cuInit"},
                   {(void**)&DeviceGetCount, "cuDeviceGetCount"},
                   {(void**)&DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
                   {(void**)&CtxSetCurrent, "cuCtxSetCurrent"},
                   {(void**)&StreamCreate, "cuStreamCreate"},
                   {(void**)&StreamSynchronize, "cuStreamSynchronize"},
                   {(void**)&MemcpyHtoD, "cuMemcpyHtoD_v2"},
                   {(void**)&MemcpyDtoH, "cuMemcpyDtoH_v2"}};
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i)
    if ((*functions[i].function = dlsym(driver, functions[i].name)) == NULL)
      Fail(functions[i].name, "not found");
}

/* What rank r has at element i. */
static int32_t Value(int r, size_t i) { return (int32_t)(i % 1000) + 1000 * r; }
static int32_t Sum(size_t i) {
  int32_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += Value(r, i);
  return sum;
}

/* A collective on `count` elements, which are NCCL's count; what it takes and gives in multiples of that;
 * what element i of the output is; and the factor from algorithm to bus bandwidth. The root is 0. */
struct Collective {
  const char* name;
  ncclResult_t (*run)(size_t count);
  int32_t (*expected)(size_t count, size_t i);
  int inputs_of_all, outputs_of_all, at_root;
  double factor; /* of (ranks - 1) / ranks; 0: 1 */
};

static ncclResult_t AllReduce(size_t n) {
  return ncclAllReduce(device_in, device_out, n, ncclInt32, ncclSum, comm, stream);
}
static ncclResult_t Broadcast(size_t n) {
  return ncclBroadcast(device_in, device_out, n, ncclInt32, 0, comm, stream);
}
static ncclResult_t Reduce(size_t n) {
  return ncclReduce(device_in, device_out, n, ncclInt32, ncclSum, 0, comm, stream);
}
static ncclResult_t AllGather(size_t n) {
  return ncclAllGather(device_in, device_out, n, ncclInt32, comm, stream);
}
static ncclResult_t ReduceScatter(size_t n) {
  return ncclReduceScatter(device_in, device_out, n, ncclInt32, ncclSum, comm, stream);
}
/* Before 2.28 NCCL has no alltoall of its own. */
static ncclResult_t AlltoAll(size_t n) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  return ncclAlltoAll(device_in, device_out, n, ncclInt32, comm, stream);
#else
  ncclResult_t result = ncclGroupStart();
  for (int r = 0; r < ranks && result == ncclSuccess; ++r) {
    result = ncclSend(device_in + n * (size_t)r, n, ncclInt32, r, comm, stream);
    if (result == ncclSuccess) result = ncclRecv(device_out + n * (size_t)r, n, ncclInt32, r, comm, stream);
  }
  return result == ncclSuccess ? ncclGroupEnd() : result;
#endif
}
static ncclResult_t SendRecv(size_t n) {
  ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) result = ncclSend(device_in, n, ncclInt32, (rank + 1) % ranks, comm, stream);
  if (result == ncclSuccess)
    result = ncclRecv(device_out, n, ncclInt32, (rank + ranks - 1) % ranks, comm, stream);
  return result == ncclSuccess ? ncclGroupEnd() : result;
}

static int32_t SumAt(size_t count, size_t i) {
  (void)count;
  return Sum(i);
}
static int32_t OfRoot(size_t count, size_t i) {
  (void)count;
  return Value(0, i);
}
static int32_t OfEach(size_t count, size_t i) { return Value((int)(i / count), i % count); }
static int32_t OwnSum(size_t count, size_t i) { return Sum((size_t)rank * count + i); }
static int32_t Exchanged(size_t count, size_t i) {
  return Value((int)(i / count), (size_t)rank * count + i % count);
}
static int32_t OfPrevious(size_t count, size_t i) {
  (void)count;
  return Value((rank + ranks - 1) % ranks, i);
}

static const struct Collective kCollectives[] = {{"all_reduce", AllReduce, SumAt, 0, 0, 0, 2},
                                                 {"broadcast", Broadcast, OfRoot, 0, 0, 0, 0},
                                                 {"reduce", Reduce, SumAt, 0, 0, 1, 0},
                                                 {"all_gather", AllGather, OfEach, 0, 1, 0, 1},
                                                 {"reduce_scatter", ReduceScatter, OwnSum, 1, 0, 0, 1},
                                                 {"alltoall", AlltoAll, Exchanged, 1, 1, 0, 1},
                                                 {"sendrecv", SendRecv, OfPrevious, 0, 0, 0, 0}};

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* `bytes`: of the larger of input and output, as nccl-tests counts. */
static void Run(const struct Collective* of, size_t bytes) {
  const size_t all = (size_t)ranks;
  const int shares = of->inputs_of_all || of->outputs_of_all;
  const size_t count = bytes / sizeof(int32_t) / (shares ? all : 1);
  const size_t inputs = count * (of->inputs_of_all ? all : 1),
               outputs = count * (of->outputs_of_all ? all : 1);
  for (size_t i = 0; i < inputs; ++i) host[i] = Value(rank, i);
  Cuda(MemcpyHtoD((uintptr_t)device_in, host, inputs * sizeof *host), "cuMemcpyHtoD");
  memset(host, 0xff, outputs * sizeof *host);
  Cuda(MemcpyHtoD((uintptr_t)device_out, host, outputs * sizeof *host), "cuMemcpyHtoD");
  Nccl(of->run(count), of->name);
  Cuda(StreamSynchronize(stream), "cuStreamSynchronize");
  Cuda(MemcpyDtoH(host, (uintptr_t)device_out, outputs * sizeof *host), "cuMemcpyDtoH");
  int wrong = 0;
  for (size_t i = 0; i < outputs && (!of->at_root || rank == 0); ++i)
    wrong += host[i] != of->expected(count, i);
  shared->wrong += wrong;

  const double start = Now();
  for (int repeat = 0; repeat < kRepeats; ++repeat) Nccl(of->run(count), of->name);
  Cuda(StreamSynchronize(stream), "cuStreamSynchronize");
  const double us = (Now() - start) / kRepeats;
  const double bus = (double)bytes / us * 1e-3 * (of->factor == 0 ? 1 : of->factor * (ranks - 1) / ranks);
  if (rank == 0) printf("%-14s %12zu %10.2f %10.2f %8d\n", of->name, bytes, us, bus, wrong);
}

static int RunRank(size_t most_bytes) {
  int devices = 0;
  void *context = NULL, *made = NULL;
  OpenDriver();
  Cuda(Init(0), "cuInit");
  Cuda(DeviceGetCount(&devices), "cuDeviceGetCount");
  if (devices == 0) Fail("GPUs", "there are none");
  Cuda(DevicePrimaryCtxRetain(&context, rank % devices), "cuDevicePrimaryCtxRetain");
  Cuda(CtxSetCurrent(context), "cuCtxSetCurrent");
  Cuda(StreamCreate(&made, 1), "cuStreamCreate");
  stream = (cudaStream_t)made;
  if (ranks > devices) { /* NCCL refuses two ranks of a host on one GPU */
    char name[32];
    snprintf(name, sizeof name, "rank-%d", rank);
    setenv("NCCL_HOSTID", name, 1);
  }
  if (rank == 0) {
    Nccl(ncclGetUniqueId(&shared->id), "ncclGetUniqueId");
    shared->made = 1;
  }
  while (!shared->made) usleep(1000);
  Nccl(ncclCommInitRank(&comm, ranks, shared->id, rank), "ncclCommInitRank");
  Nccl(ncclMemAlloc((void**)&device_in, most_bytes), "ncclMemAlloc");
  Nccl(ncclMemAlloc((void**)&device_out, most_bytes), "ncclMemAlloc");
  host = malloc(most_bytes);
  if (host == NULL) Fail("malloc", "out of memory");
  if (rank == 0) printf("%-14s %12s %10s %10s %8s\n", "# collective", "bytes", "us", "GB/s bus", "wrong");
  for (size_t c = 0; c < sizeof kCollectives / sizeof kCollectives[0]; ++c)
    for (size_t bytes = 1024; bytes <= most_bytes; bytes *= 4) Run(&kCollectives[c], bytes);
  free(host);
  Nccl(ncclMemFree(device_in), "ncclMemFree");
  Nccl(ncclMemFree(device_out), "ncclMemFree");
  Nccl(ncclCommDestroy(comm), "ncclCommDestroy");
  return 0;
}

int main(int argc, char** argv) {
  ranks = argc > 1 ? atoi(argv[1]) : 2;
  const long long most = argc > 2 ? atoll(argv[2]) : 1 << 24;
  if (argc > 3 || ranks < 1 || ranks > kMostRanks || most < 1024) {
    fprintf(stderr, "usage: nccl_perf [RANKS (1 to %d) [MOST_BYTES (1024 or more)]]\n", kMostRanks);
    return 2;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    perror("mmap");
    return 1;
  }
  pid_t children[kMostRanks];
  for (rank = 0; rank < ranks; ++rank)
    if ((children[rank] = fork()) == 0) return RunRank((size_t)most);
  int failed = 0;
  for (int r = 0; r < ranks; ++r) {
    int ending = 0;
    waitpid(children[r], &ending, 0);
    failed |= ending != 0;
    if (failed) /* the others wait for it */
      for (int other = r + 1; other < ranks; ++other) kill(children[other], SIGTERM);
  }
  printf("# wrong: %d\n", shared->wrong);
  return failed || shared->wrong != 0;
}
