// How long processes of one host take to meet, and how many files they keep open.
//   rendezvous_bench [RANKS]     makes RANKS processes (1,000) that meet on the loopback
//   mpirun rendezvous_bench -    is one rank of a launcher's job
// Rank 0 prints the times of all together: from the first start to the last rank that has met, then of a
// barrier and of an all-gather of 64 bytes, the best of five.
#include <dirent.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"

namespace {

using xccl::Bootstrap;
using xccl::Status;
using xccl::StatusOr;
constexpr auto kLimit = std::chrono::minutes(3);

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int OpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  int files = -3;  // ".", ".." and the folder itself
  while (folder != nullptr && readdir(folder) != nullptr) ++files;
  if (folder != nullptr) closedir(folder);
  return files;
}

// The largest of what all ranks measured.
StatusOr<double> Most(Bootstrap& group, double mine) {
  const std::string text(reinterpret_cast<const char*>(&mine), sizeof mine);
  StatusOr<std::vector<std::string>> all = group.AllGather(text, kLimit);
  if (!all.ok()) return all.status();
  for (const std::string& other : *all) {
    double value = 0;
    std::memcpy(&value, other.data(), sizeof value);
    mine = std::max(mine, value);
  }
  return mine;
}

template <typename Work>
StatusOr<double> Best(Bootstrap& group, const Work& work) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    if (Status status = group.Barrier(kLimit); !status.ok()) return status;
    const double start = Now();
    if (Status status = work(); !status.ok()) return status;
    StatusOr<double> most = Most(group, Now() - start);
    if (!most.ok()) return most;
    best = std::min(best, *most);
  }
  return best;
}

Status Measure(const xccl::Placement& placement, double start) {
  xccl::BootstrapOptions options;
  options.time_limit = kLimit;
  options.silence_limit = std::chrono::seconds(60);
  const int before = OpenFiles();
  StatusOr<std::unique_ptr<Bootstrap>> joined = Bootstrap::Join(placement, options);
  if (!joined.ok()) return joined.status();
  Bootstrap& group = **joined;
  const StatusOr<double> met = Most(group, Now() - start);
  if (!met.ok()) return met.status();
  const StatusOr<double> barrier = Best(group, [&] { return group.Barrier(kLimit); });
  if (!barrier.ok()) return barrier.status();
  const StatusOr<double> gather =
      Best(group, [&] { return group.AllGather(std::string(64, 'x'), kLimit).status(); });
  if (!gather.ok()) return gather.status();
  const int files = OpenFiles() - before;
  StatusOr<std::vector<std::string>> all = group.AllGather(std::to_string(files), kLimit);
  if (!all.ok()) return all.status();
  int in_all = 0;
  for (const std::string& text : *all) in_all += std::atoi(text.c_str());
  if (group.rank().value == 0)
    fmt::print(
        "{} ranks on {} hosts ({}): met in {:.3f} s, barrier {:.3f} ms, all-gather of 64 B {:.3f} ms, {} "
        "open "
        "files in all, {} of rank 0\n",
        group.ranks(), group.host_names().size(), placement.launcher, *met, *barrier * 1e3, *gather * 1e3,
        in_all, files);
  return group.Barrier(kLimit);
}

int Report(const Status& status) {
  if (!status.ok()) fmt::print(stderr, "rendezvous_bench: {}\n", status.message());
  return xccl::ExitCode(status.code());
}

int Launched() {
  const double start = Now();
  const StatusOr<xccl::Placement> placement = xccl::FindPlacement(xccl::ProcessEnvironment);
  return Report(placement.ok() ? Measure(*placement, start) : placement.status());
}

int Made(int ranks) {
  xccl::Placement placement;
  placement.launcher = "forked";
  placement.ranks = ranks;
  placement.job = "bench";
  placement.rendezvous = fmt::format("127.0.0.1:{}", 20000 + getpid() % 10000);
  placement.token_seed = "bench";
  const double start = Now();
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child < 0) {
      fmt::print(stderr, "rendezvous_bench: {} processes: {}\n", r, std::strerror(errno));
      for (const pid_t other : children) kill(other, SIGKILL);
      return 5;
    }
    if (child == 0) {
      placement.rank = xccl::Rank(r);
      const int result = Report(Measure(placement, start));
      fflush(stdout);
      _exit(result);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string word = count > 1 ? words[1] : "1000";
  if (word == "-") return Launched();
  const int ranks = std::atoi(word.c_str());
  if (ranks > 0) return Made(ranks);
  fmt::print(stderr, "rendezvous_bench: '{}': expected a number of ranks, or - under a launcher\n", word);
  return 2;
}
