// How long processes of one host take to meet, and how many files they keep open.
//   rendezvous [RANKS]...      makes RANKS processes (8, 100 and 1,000) that meet on the loopback, three
//   times mpirun rendezvous -        is one rank of a launcher's job
// The times are those of all together: from the first start to the last rank that has met, then of a barrier
// and of an all-gather of 64 bytes, the best of five.
#include <dirent.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "bench/markdown_table.h"
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

// The largest value that any rank measured.
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

// The figures that rank 0 has at the end; times in seconds.
struct Figures {
  double met = 1e9, barrier = 1e9, gather = 1e9;
  int hosts = 0, files = 0, files_of_rank_0 = 0;
};

// Measures once; a figure that is less than the one in `figures` takes its place.
Status Measure(const xccl::Placement& placement, double start, Figures& figures) {
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
    figures = {std::min(figures.met, *met),
               std::min(figures.barrier, *barrier),
               std::min(figures.gather, *gather),
               static_cast<int>(group.host_names().size()),
               in_all,
               files};
  return group.Barrier(kLimit);
}

int Report(const Status& status) {
  if (!status.ok()) xccl::PrintError(fmt::format("rendezvous: {}\n", status.message()));
  return xccl::ExitCode(status.code());
}

xccl::MarkdownTable Table() {
  return xccl::MarkdownTable({"ranks:", "hosts:", "met, s:", "barrier, ms:", "all-gather of 64 B, ms:",
                              "open files in all:", "of rank 0:"});
}

void AddRow(int ranks, const Figures& figures, xccl::MarkdownTable& table) {
  table.Row(ranks, figures.hosts, fmt::format("{:.3f}", figures.met),
            fmt::format("{:.2f}", figures.barrier * 1e3), fmt::format("{:.2f}", figures.gather * 1e3),
            figures.files, figures.files_of_rank_0);
}

int Launched() {
  const double start = Now();
  const StatusOr<xccl::Placement> placement = xccl::FindPlacement(xccl::ProcessEnvironment);
  if (!placement.ok()) return Report(placement.status());
  Figures figures;
  const Status status = Measure(*placement, start, figures);
  if (status.ok() && placement->rank.value == 0) {
    xccl::MarkdownTable table = Table();
    AddRow(placement->ranks, figures, table);
    table.Print();
  }
  return Report(status);
}

// Runs the ranks as processes. `figures` lies in memory that they share.
int Made(int ranks, Figures& figures) {
  xccl::Placement placement;
  placement.launcher = "forked";
  placement.ranks = ranks;
  placement.job = "bench";
  static int runs = 0;
  placement.rendezvous = fmt::format("127.0.0.1:{}", 20000 + (getpid() + ++runs) % 10000);
  placement.token_seed = "bench";
  const double start = Now();
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child < 0) {
      xccl::PrintError(fmt::format("rendezvous: {} processes: {}\n", r, std::strerror(errno)));
      for (const pid_t other : children) kill(other, SIGKILL);
      return 5;
    }
    if (child == 0) {
      placement.rank = xccl::Rank(r);
      _exit(Report(Measure(placement, start, figures)));
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
  std::vector<std::string> asked(words + 1, words + count);
  if (asked.empty()) asked = {"8", "100", "1000"};
  if (asked[0] == "-") return Launched();
  void* const shared =
      mmap(nullptr, sizeof(Figures), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 5;
  xccl::MarkdownTable table = Table();
  for (const std::string& word : asked) {
    const int ranks = std::atoi(word.c_str());
    if (ranks <= 0) {
      xccl::PrintError(
          fmt::format("rendezvous: '{}': expected a number of ranks, or - under a launcher\n", word));
      return 2;
    }
    Figures& figures = *new (shared) Figures;
    for (int run = 0; run < 3; ++run)
      if (const int result = Made(ranks, figures); result != 0) return result;
    AddRow(ranks, figures, table);
  }
  table.Print();
  return 0;
}
