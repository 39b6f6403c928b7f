// The time that the shim adds to a call that NCCL runs: the host's time alone, before an NCCL that does
// nothing. The least possible is a call through a pointer. Run it with a book that has no plan for allreduces
// of 4 bytes: bench:nccl_shim BOOK.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "runtime/c_api/handles.h"
#include "runtime/nccl/shim/calls.h"
#include "runtime/nccl/shim/member.h"
#include "runtime/nccl/shim/shim.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace {

using xccl::nccl_shim::Nccl;
using xccl::nccl_shim::NcclComm;

// Handles that nobody looks into.
char handles[2];
NcclComm CommOf(size_t ranks) { return reinterpret_cast<NcclComm>(&handles[ranks - 1]); }

Nccl Nothing() {
  Nccl nccl;
  nccl.AllReduce = [](const void*, void*, size_t, int, int, NcclComm, void*) { return 0; };
  nccl.GroupStart = [] { return 0; };
  nccl.GroupEnd = [] { return 0; };
  nccl.CommCount = [](NcclComm comm, int* count) {
    *count = comm == CommOf(1) ? 1 : 2;
    return 0;
  };
  nccl.CommUserRank = [](NcclComm, int* rank) { return *rank = 0; };
  nccl.CommCuDevice = [](NcclComm, int* device) { return *device = 0; };
  return nccl;
}

xccl::nccl_shim::NcclCall Call() {
  static char buffer[8];
  return {xccl::CollectiveKind::kAllreduce, buffer, buffer, 1, 7, 0, 0, nullptr};
}

void Direct(benchmark::State& state) {
  const Nccl nccl = Nothing();
  for (auto _ : state) benchmark::DoNotOptimize(CallNccl(nccl, Call(), CommOf(2)));
}
BENCHMARK(Direct);

void Shim(benchmark::State& state) {
  const NcclComm comm = CommOf(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(xccl::nccl_shim::RunCollective(Call(), comm));
}
// A communicator of one rank, and one whose ranks have a book without a plan for the call.
BENCHMARK(Shim)->ArgName("ranks")->Arg(1)->Arg(2);

void Group(benchmark::State& state) {
  for (auto _ : state) {
    xccl::nccl_shim::StartGroup();
    xccl::nccl_shim::RunCollective(Call(), CommOf(2));
    benchmark::DoNotOptimize(xccl::nccl_shim::EndGroup());
  }
}
BENCHMARK(Group);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    fputs("usage: nccl_shim BOOK\n", stderr);
    return 2;
  }
  setenv("XCCL_BOOK", argv[1], 1);
  const xccl::cuda::FakeDriver driver;
  xccl::c_api::TheGpus().driver = [&]() -> xccl::StatusOr<const xccl::cuda::Driver*> {
    return &driver.table();
  };
  SetNccl(Nothing());
  std::shared_ptr<xccl::nccl_shim::Member> member;
  FindMember(Nothing(), driver.table(), CommOf(2), member);
  member->state = xccl::nccl_shim::Member::State::kOurs;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
