// One line: mean time in microseconds of an allreduce of float sums by the CPU runtime, every element
// checked.
//   cpu_allreduce RANKS BYTES ITERATIONS IN_PLACE(0|1) PROCESSES(0|1)
#include <cstdio>
#include <string>

#include "base/units.h"
#include "runtime/cpu/run_program.h"
#include "runtime/testing/ring_programs.h"

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: cpu_allreduce RANKS BYTES ITERATIONS IN_PLACE PROCESSES\n");
    return 2;
  }
  const auto number = [&](int i, int64_t high) { return xccl::ParseInteger(argv[i], 0, high).value(); };
  const int32_t ranks = static_cast<int32_t>(number(1, 64));
  xccl::RunOptions options;
  options.sizes_bytes = {number(2, int64_t{1} << 40)};
  options.iterations = static_cast<int32_t>(number(3, 1 << 20));
  options.warmup = 3;
  const bool in_place = number(4, 1) != 0;
  options.processes = number(5, 1) != 0;
  const auto rows = xccl::RunProgram(
      xccl::RingAllreduce(ranks), xccl::AllMembers(xccl::CollectiveKind::kAllreduce, ranks, ranks), options);
  if (!rows.ok() || !xccl::AllRight(*rows)) {
    std::fprintf(stderr, "cpu_allreduce: %s\n",
                 rows.ok() ? "wrong elements" : rows.status().message().c_str());
    return 1;
  }
  for (const xccl::RunRow& row : *rows)
    if (row.in_place == in_place) std::printf("%.1f\n", row.time_us);
  return 0;
}
