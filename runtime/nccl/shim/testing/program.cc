// A program that uses NCCL without GPUs: says what NCCL answers. With an argument it opens that library by
// dlopen, as programs in Python do, else it is linked to it.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {
int ncclGetVersion(int* version);
int ncclGetUniqueId(void* id);
const char* ncclGetErrorString(int result);
int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*);
int ncclBcast(void*, size_t, int, int, void*, void*);
int ncclGroupStart();
int ncclGroupEnd();
int ncclCommDestroy(void*);
int ncclCommInitAll(void*, int, const int*);
}

namespace {

template <typename Function>
Function* Find(void* library, const char* name, Function* linked) {
  if (library == nullptr) return linked;
  void* const found = dlsym(library, name);
  if (found != nullptr) return reinterpret_cast<Function*>(found);
  printf("%s: not found\n", name);
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  void* library = nullptr;
  if (argc > 1 && (library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == nullptr) {
    printf("%s\n", dlerror());
    return 1;
  }
  int version = 0;
  char id[128] = {}, buffer[8] = {};
  const int got = Find(library, "ncclGetVersion", &ncclGetVersion)(&version);
  printf("version %d: %d\n", version, got);
  printf("id: %d\n", Find(library, "ncclGetUniqueId", &ncclGetUniqueId)(id));
  printf("text: %s\n", Find(library, "ncclGetErrorString", &ncclGetErrorString)(4));
  const int reduced =
      Find(library, "ncclAllReduce", &ncclAllReduce)(buffer, buffer, 8, 0, 0, nullptr, nullptr);
  printf("allreduce: %d\n", reduced);
  printf("bcast: %d\n", Find(library, "ncclBcast", &ncclBcast)(buffer, 8, 0, 0, nullptr, nullptr));
  const int started = Find(library, "ncclGroupStart", &ncclGroupStart)();
  printf("group: %d %d\n", started, Find(library, "ncclGroupEnd", &ncclGroupEnd)());
  printf("destroy: %d\n", Find(library, "ncclCommDestroy", &ncclCommDestroy)(nullptr));
  int device = 0;
  void* comm = nullptr;
  const int made = Find(library, "ncclCommInitAll", &ncclCommInitAll)(&comm, 1, &device);
  printf("init: %s\n", made == 0 ? "0" : "failed");
  return 0;
}
