// tuner_driver LIBRARY [CALLS]: loads a tuner plugin and asks it as every release of NCCL from 2.19 to 2.30
// does, at random, as two ranks of a communicator. Ends with 1 where the ranks differ, where a call fails, or
// where something comes to be offered that was not. The table is the one that XCCL_TUNER_TABLE names.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/random.h"
#include "runtime/nccl/tuner/caller.h"

namespace xccl::nccl_tuner {
namespace {

constexpr int kNodes = 2, kRanks = 16;

void Log(int, unsigned long, const char*, int, const char*, ...) {}

bool IsRight(const Asked& asked, const Answer& rank0, const Answer& rank1) {
  if (rank0.result != kSuccess || !(rank0 == rank1)) return false;
  for (size_t i = 0; i < rank0.costs.size(); ++i)
    if ((rank0.costs[i] < 0) != static_cast<bool>(asked.ignored[i])) return false;
  return true;
}

bool Drive(void* library, int version, int64_t calls) {
  const Caller nccl(library, version);
  void *rank0 = nullptr, *rank1 = nullptr;
  int64_t wrong = nccl.Init(kNodes, kRanks, Log, rank0) != kSuccess;
  wrong += nccl.Init(kNodes, kRanks, Log, rank1) != kSuccess;
  Random random(static_cast<uint64_t>(version));
  std::vector<int64_t> ns;
  int64_t steered = 0;
  for (int64_t call = 0; call < calls; ++call) {
    const Asked asked = RandomCall(random);
    const auto began = std::chrono::steady_clock::now();
    const Answer answer = nccl.Ask(rank0, asked);
    ns.push_back((std::chrono::steady_clock::now() - began).count());
    wrong += !IsRight(asked, answer, nccl.Ask(rank1, asked));
    steered += answer.algorithm != kUndefined;
  }
  wrong += nccl.End(rank0) != kSuccess;
  wrong += nccl.End(rank1) != kSuccess;
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double share) {
    return ns[static_cast<size_t>(share * static_cast<double>(ns.size() - 1))];
  };
  std::printf("v%d: %lld calls, %lld steered, %lld wrong, p50 %lld ns, p99 %lld ns\n", version,
              static_cast<long long>(calls), static_cast<long long>(steered), static_cast<long long>(wrong),
              static_cast<long long>(at(0.5)), static_cast<long long>(at(0.99)));
  return wrong == 0;
}

int Run(int argc, char** argv) {
  const int64_t calls = argc > 2 ? std::atoll(argv[2]) : 170'000;  // a million over all versions
  if (argc < 2 || calls < 1) {
    std::fprintf(stderr, "usage: tuner_driver LIBRARY [CALLS]\n");
    return 2;
  }
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "tuner_driver: %s\n", dlerror());
    return 1;
  }
  bool right = true;
  for (int version = 1; version <= 6; ++version) right = Drive(library, version, calls) && right;
  dlclose(library);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace xccl::nccl_tuner

int main(int argc, char** argv) { return xccl::nccl_tuner::Run(argc, argv); }
