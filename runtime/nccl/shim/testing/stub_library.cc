// A libnccl.so.2 that says which of its functions are called. As the real one, it has each twice, a weak one
// and one whose name begins with p, and calls some of its own by the weak names.
#include <cstddef>
#include <cstdio>

namespace {

int Say(const char* name) {
  printf("%s\n", name);
  fflush(stdout);
  return 0;
}

}  // namespace

#define STUB(name, parameters)                              \
  int pnccl##name parameters { return Say("pnccl" #name); } \
  [[gnu::weak, gnu::alias("pnccl" #name)]] int nccl##name parameters;

extern "C" {

STUB(AllReduce, (const void*, void*, size_t, int, int, void*, void*))
STUB(Broadcast, (const void*, void*, size_t, int, int, void*, void*))
STUB(Reduce, (const void*, void*, size_t, int, int, int, void*, void*))
STUB(AllGather, (const void*, void*, size_t, int, void*, void*))
STUB(ReduceScatter, (const void*, void*, size_t, int, int, void*, void*))
STUB(GroupStart, ())
STUB(GroupEnd, ())
STUB(CommCount, (void*, int*))
STUB(CommUserRank, (void*, int*))
STUB(CommCuDevice, (void*, int*))
STUB(CommGetAsyncError, (void*, int*))
STUB(CommDestroy, (void*))
STUB(CommAbort, (void*))
STUB(CommFinalize, (void*))
STUB(CommRegister, (void*, void*, size_t, void**))
STUB(CommDeregister, (void*, void*))
STUB(CommWindowDeregister, (void*, void*))
STUB(MemAlloc, (void**, size_t))
STUB(MemFree, (void*))
STUB(GetUniqueId, (void*))
STUB(DevCommDestroy, (void*, void*))

int pncclGetVersion(int* version) {
  *version = 22809;
  return Say("pncclGetVersion");
}
[[gnu::weak, gnu::alias("pncclGetVersion")]] int ncclGetVersion(int* version);

const char* pncclGetErrorString(int) { return "the stub's text"; }
[[gnu::weak, gnu::alias("pncclGetErrorString")]] const char* ncclGetErrorString(int result);

int pncclBcast(void* buffer, size_t count, int type, int root, void* comm, void* stream) {
  Say("pncclBcast");
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
[[gnu::weak, gnu::alias("pncclBcast")]] int ncclBcast(void*, size_t, int, int, void*, void*);

// Calls the functions that NCCL itself calls by names that a preloaded library may define, too.
int pncclCommInitAll(void*, int, const int*) {
  int version = 0, error = 0;
  void* memory = nullptr;
  Say("pncclCommInitAll");
  ncclGroupStart();
  ncclGroupEnd();
  ncclBroadcast(nullptr, nullptr, 0, 0, 0, nullptr, nullptr);
  ncclCommRegister(nullptr, nullptr, 0, nullptr);
  ncclCommDeregister(nullptr, nullptr);
  ncclCommWindowDeregister(nullptr, nullptr);
  ncclCommGetAsyncError(nullptr, &error);
  ncclMemAlloc(&memory, 8);
  ncclMemFree(memory);
  ncclGetUniqueId(nullptr);
  ncclGetVersion(&version);
  ncclDevCommDestroy(nullptr, nullptr);
  return ncclGetErrorString(0) == nullptr ? 1 : 0;
}
[[gnu::weak, gnu::alias("pncclCommInitAll")]] int ncclCommInitAll(void*, int, const int*);

}  // extern "C"
