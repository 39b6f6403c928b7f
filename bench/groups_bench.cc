// Process groups that work at the same time: ranks, kinds of groups, CPU seconds and memory of planning all
// of them, and the time of all ÷ their bound. Each row runs in a process of its own. The machines of PCCL's
// published cases (arXiv 2606.07019: groups on 2D meshes and switches, an alltoall of 512) come after
// clusters.
//   bazel run --config=release //bench:groups [-- MACHINE HOSTS COLLECTIVE SIZE RANKSxSTRIDE[+RANKSxSTRIDE]
//   ...]
// HOSTS is how many hosts of MACHINE a fabric joins, or - for MACHINE itself. RANKSxSTRIDE says that all
// ranks are in groups of RANKS members, STRIDE apart; a + lays two such divisions over each other.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "base/strings.h"
#include "base/units.h"
#include "pipeline/groups_together.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

// One row: five words of the command line.
struct Case {
  std::string machine, hosts, collective, size, layout;
};

const Case kCases[] = {
    {"dgx-h100", "128", "allreduce", "256MiB", "8x1"},  {"dgx-h100", "128", "allreduce", "1GiB", "128x8"},
    {"dgx-h100", "128", "alltoall", "256MiB", "8x8"},   {"dgx-h100", "128", "sendrecv", "256MiB", "2x512"},
    {"dgx-h100", "1024", "allreduce", "256MiB", "8x1"}, {"dgx-h100", "1024", "allreduce", "1GiB", "1024x8"},
    {"dgx-h100", "1024", "alltoall", "256MiB", "8x8"},  {"dgx-h100", "1024", "sendrecv", "256MiB", "2x4096"},
    {"dgx-h100", "2048", "allreduce", "256MiB", "8x1"}, {"dgx-h100", "2048", "allreduce", "1GiB", "2048x8"},
    {"dgx-h100", "2048", "alltoall", "256MiB", "8x8"},  {"dgx-h100", "2048", "sendrecv", "256MiB", "2x8192"},
    {"mesh:8x8", "-", "allreduce", "64MiB", "8x1"},     {"mesh:8x8", "-", "allreduce", "64MiB", "8x1+8x8"},
    {"mesh:16x16", "-", "allreduce", "64MiB", "16x1"},  {"mesh:16x16", "-", "alltoall", "64MiB", "16x16"},
    {"nvswitch:64", "-", "allreduce", "64MiB", "8x1"},  {"nvswitch:64", "-", "alltoall", "64MiB", "8x1+8x8"},
    {"mesh:16x32", "-", "alltoall", "64MiB", "512x1"},
};

StatusOr<int32_t> Number(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1)
    return UsageError(fmt::format("'{}': expected a number of at least 1", text));
  return number;
}

// Adds groups of all ranks, with members `stride` apart.
Status AddDivision(const std::string& text, CollectiveKind kind, int64_t size_bytes, int32_t all,
                   GroupRequest& request) {
  const std::vector<std::string> words = Split(text, 'x');
  if (words.size() != 2) return UsageError(fmt::format("'{}': expected RANKSxSTRIDE", text));
  XCCL_ASSIGN_OR_RETURN(const int32_t ranks, Number(words[0]));
  XCCL_ASSIGN_OR_RETURN(const int32_t stride, Number(words[1]));
  if (int64_t{ranks} * stride > all || all % (ranks * stride) != 0)
    return UsageError(fmt::format("'{}'; expected a divisor of {} ranks", text, all));
  for (int32_t begin = 0; begin < all; begin += ranks * stride)
    for (int32_t first = begin; first < begin + stride; ++first) {
      CollectiveSpec spec;
      spec.kind = kind;
      for (int32_t i = 0; i < ranks; ++i) spec.ranks.emplace_back(first + i * stride);
      if (kind == CollectiveKind::kSendrecv) spec.pairs = {{spec.ranks.front(), spec.ranks.back()}};
      if (IsRooted(kind)) spec.root = spec.ranks.front();
      XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
      request.groups.push_back({fmt::format("{}-{}", text, first), std::move(collective), size_bytes, 1});
    }
  return OkStatus();
}

StatusOr<std::string> RowOf(const Case& asked) {
  LoadOptions load;
  if (asked.hosts != "-") {
    XCCL_ASSIGN_OR_RETURN(load.hosts, Number(asked.hosts));
  }
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(asked.machine, load));
  XCCL_ASSIGN_OR_RETURN(const CollectiveKind kind, ParseCollectiveKind(asked.collective));
  XCCL_ASSIGN_OR_RETURN(const int64_t size_bytes, ParseSize(asked.size));
  GroupRequest request{"groups", {}};
  for (const std::string& division : Split(asked.layout, '+'))
    XCCL_RETURN_IF_ERROR(AddDivision(division, kind, size_bytes, topology.num_ranks(), request));
  const std::clock_t began = std::clock();
  XCCL_ASSIGN_OR_RETURN(const GroupsResult all, PlanGroupsTogether(topology, std::move(request), {}));
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.2f} | {} | {:.1f} | {:.3f} |", topology.name(),
                     topology.num_ranks(), asked.collective, asked.size, asked.layout, all.groups.size(),
                     all.kinds_apart > 0 ? "apart" : "together", seconds, usage.ru_maxrss >> 10,
                     PsToUs(all.result.simulation.time_ps), all.result.ratio);
}

// Prints the row. A child process prints it, so that its memory counts from nothing.
int RunCase(const Case& asked) {
  const pid_t child = fork();
  if (child == 0) {
    const StatusOr<std::string> row = RowOf(asked);
    fmt::print("{}\n", row.ok() ? *row : fmt::format("| {} | {} |", asked.machine, row.status().message()));
    std::fflush(stdout);
    _exit(row.ok() ? 0 : ExitCode(row.status().code()));
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int Main(const std::vector<std::string>& words) {
  if (words.size() % 5 != 0) {
    PrintError("groups: expected MACHINE HOSTS COLLECTIVE SIZE RANKSxSTRIDE ...\n");
    return ExitCode(StatusCode::kUsage);
  }
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  if (!words.empty()) cases.clear();
  for (size_t i = 0; i < words.size(); i += 5)
    cases.push_back({words[i], words[i + 1], words[i + 2], words[i + 3], words[i + 4]});
  fmt::print(
      "| machine | ranks | collective | size | ranks x stride | groups | planned | CPU s | MiB | time us | "
      "ratio |\n"
      "|---|---:|---|---:|---|---:|---|---:|---:|---:|---:|\n");
  std::fflush(stdout);
  int worst = 0;
  for (const Case& asked : cases) worst = std::max(worst, RunCase(asked));
  return worst;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(std::vector<std::string>(argv + 1, argv + argc)); }
