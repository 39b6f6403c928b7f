// 1. Read the runs of nccl-tests, and find the algorithm and protocol that each run forces.
// 2. Group the runs by collective, hosts and ranks.
// 3. For each size of a group, find the fastest forced run and the fastest run of NCCL's own choice.
// 4. If the forced run gains enough, its algorithm and protocol become the choice of this size.
// 5. Join neighbouring sizes with the same choice to one row of the table.
#include "pipeline/nccl/steer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "interchange/traces/nccl_tests.h"

namespace xccl::nccl {
namespace {

using Kind = nccl_tuner::Collective;

constexpr std::pair<CollectiveKind, Kind> kKinds[] = {{CollectiveKind::kAllreduce, Kind::kAllreduce},
                                                      {CollectiveKind::kAllgather, Kind::kAllgather},
                                                      {CollectiveKind::kReduceScatter, Kind::kReduceScatter},
                                                      {CollectiveKind::kBroadcast, Kind::kBroadcast},
                                                      {CollectiveKind::kReduce, Kind::kReduce}};

// Returns the name in lower case and without underscores: NCCL's CollNetDirect is the table's collnet_direct.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

template <typename Enum>
std::optional<Enum> Named(std::string_view name, int count) {
  for (int i = 0; i < count; ++i)
    if (Plain(name) == Plain(ToString(static_cast<Enum>(i)))) return static_cast<Enum>(i);
  return std::nullopt;
}

std::string Quoted(const std::string& text) { return fmt::format("'{}'", Shortened(text)); }

// Returns the algorithm and protocol that a run's variables force, if any. Error messages begin with `place`.
StatusOr<std::optional<Choosing>> ForcedBy(const std::map<std::string, std::string>& variables,
                                           const std::string& place) {
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  const std::string algorithm = value("NCCL_ALGO"), protocol = value("NCCL_PROTO");
  const std::string least = value("NCCL_MIN_NCHANNELS"), most = value("NCCL_MAX_NCHANNELS");
  if (algorithm.empty() && protocol.empty() && least.empty() && most.empty())
    return std::optional<Choosing>();
  Choosing forced;
  const auto a = Named<nccl_tuner::Algorithm>(algorithm, nccl_tuner::kNumAlgorithms);
  if (!a)
    return InvalidInput(fmt::format("{}: NCCL_ALGO {}; expected one algorithm", place, Quoted(algorithm)));
  const auto p = Named<nccl_tuner::Protocol>(protocol, nccl_tuner::kNumProtocols);
  if (!p)
    return InvalidInput(fmt::format("{}: NCCL_PROTO {}; expected one protocol", place, Quoted(protocol)));
  forced.algorithm = *a;
  forced.protocol = *p;
  if (least.empty() && most.empty()) return std::optional(forced);
  const StatusOr<int64_t> channels = ParseInteger(least, 1, nccl_tuner::kMaxChannels);
  if (!channels.ok() || least != most)
    return InvalidInput(
        fmt::format("{}: NCCL_MIN_NCHANNELS {} and NCCL_MAX_NCHANNELS {}; expected both, equal, of 1..{}",
                    place, Quoted(least), Quoted(most), nccl_tuner::kMaxChannels));
  forced.channels = static_cast<int>(*channels);
  return std::optional(forced);
}

StatusOr<Kind> KindOf(const NcclTestsRun& run, const std::string& file) {
  const auto found = std::ranges::find(kKinds, run.collective, [](const auto& row) { return row.first; });
  if (found != std::end(kKinds)) return found->second;
  return InvalidInput(
      fmt::format("{}: args: program '{}'; expected all_reduce_perf, all_gather_perf, "
                  "reduce_scatter_perf, broadcast_perf or reduce_perf",
                  file, Shortened(run.program)));
}

}  // namespace

void AddRows(Kind collective, int64_t nodes, int64_t ranks, std::span<const Better> sizes,
             std::vector<nccl_tuner::Row>& rows) {
  for (size_t s = 0; s < sizes.size(); ++s) {
    const auto& [bytes, choice] = sizes[s];
    if (!choice) continue;
    if (s == 0 || sizes[s - 1].choice != choice) {
      nccl_tuner::Row& row = rows.emplace_back();
      row.collective = collective;
      row.min_bytes = s == 0 ? 0 : bytes;
      row.nodes = nodes;
      row.ranks = ranks;
      row.algorithm = choice->algorithm;
      row.protocol = choice->protocol;
      row.channels = choice->channels;
    }
    rows.back().max_bytes = bytes;
  }
}

StatusOr<TestRun> ReadTestRun(std::string_view text, const std::string& file) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<NcclTestsRun> runs, ReadNcclTests(text, file));
  const NcclTestsRun& measured = runs.front();
  if (!measured.lists_variables)
    return InvalidInput(file +
                        ": a table, which does not say NCCL_ALGO; expected what nccl-tests writes with -J");
  TestRun run;
  XCCL_ASSIGN_OR_RETURN(run.collective, KindOf(measured, file));
  XCCL_ASSIGN_OR_RETURN(run.forced, ForcedBy(measured.variables, file + ": env"));
  run.ranks = measured.ranks;
  run.nodes = measured.hosts;
  for (const NcclTestsTime& time : measured.times) run.times.push_back({time.bytes, time.us});
  return run;
}

StatusOr<std::vector<nccl_tuner::Row>> Steer(std::span<const TestRun> runs, double least_gain) {
  using Group = std::tuple<Kind, int64_t, int64_t>;  // collective, nodes, ranks
  struct Measured {
    double own_us = 0;  // 0: not measured
    double best_us = 0;
    Choosing best;
  };
  std::map<Group, std::map<int64_t, Measured>> groups;
  for (const bool forced : {false, true})
    for (const TestRun& run : runs) {
      if (run.forced.has_value() != forced) continue;
      for (const auto& [bytes, us] : run.times) {
        Measured& measured = groups[{run.collective, run.nodes, run.ranks}][bytes];
        if (!forced && (measured.own_us == 0 || us < measured.own_us)) measured.own_us = us;
        if (!forced || (measured.best_us > 0 && us >= measured.best_us)) continue;
        measured.best_us = us;
        measured.best = *run.forced;
      }
    }
  std::vector<nccl_tuner::Row> rows;
  for (const auto& [group, sizes] : groups) {
    const auto& [kind, nodes, ranks] = group;
    std::vector<Better> better;
    bool compared = false;
    for (const auto& [bytes, measured] : sizes) {
      compared |= measured.own_us > 0;
      const bool gains = measured.best_us > 0 && measured.best_us * least_gain <= measured.own_us;
      better.push_back({bytes, gains ? std::optional(measured.best) : std::nullopt});
    }
    if (!compared)
      return InvalidInput(
          fmt::format("--from: {} ranks on {} hosts ran with NCCL_ALGO alone; expected a run of "
                      "NCCL's own choice beside it",
                      ranks, nodes));
    AddRows(kind, nodes, ranks, better, rows);
  }
  return rows;
}

StatusOr<std::vector<nccl_tuner::Row>> SteerByFiles(std::span<const std::string> files, double least_gain) {
  std::vector<TestRun> runs;
  for (const std::string& file : files) {
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    XCCL_ASSIGN_OR_RETURN(TestRun run, ReadTestRun(text, file));
    runs.push_back(std::move(run));
  }
  return Steer(runs, least_gain);
}

}  // namespace xccl::nccl
