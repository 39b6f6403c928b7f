// The bars of exact and near-linear synthesis, all in one table: what was asked, what came out, PASS or MISS.
//   bars [--group LETTERS] [--match TEXT] [--engine NAME] [--chunks N] [--misses] [--list] [--graphs FOLDER]
//        [--limit CPU_SECONDS] [--memory MIB]
#include "bench/bars.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/status.h"
#include "base/units.h"

namespace xccl {
namespace {

struct Flags {
  std::string groups;  // empty: all
  std::string match;   // part of the machine's name; empty: all
  std::string engine;  // empty: the bar's own
  bool misses = false, list = false;
  std::optional<int32_t> chunks;
  BarLimits limits;
};

constexpr const char* kUsage =
    "usage: bars [--group LETTERS] [--match TEXT] [--engine NAME] [--chunks N] [--misses] [--list]\n"
    "            [--graphs FOLDER] [--limit CPU_SECONDS] [--memory MIB]\n"
    "groups: a allgather and reduce_scatter of 1 GiB   b TACOS' rows, blocking   c ForestColl's optima\n"
    "        d allreduce optima   e TE-CCL's rows   f 40,000 ranks   g small messages, blocking\n"
    "        h clusters of 2-128 hosts   i program beside schedule   j auto beside every engine   k "
    "alltoall\n";

StatusOr<Flags> ReadFlags(const std::vector<std::string>& words) {
  Flags flags;
  const char* const here = std::getenv("BUILD_WORKING_DIRECTORY");  // bazel run
  flags.limits.graphs_folder =
      fmt::format("{}../shared/data/graphs", here != nullptr ? here + std::string("/") : "");
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--misses") {
      flags.misses = true;
      continue;
    }
    if (word == "--list") {
      flags.list = true;
      continue;
    }
    if (i + 1 == words.size())
      return UsageError(fmt::format("'{}': no such flag, or its value is missing", word));
    const std::string& value = words[++i];
    if (word == "--group") {
      flags.groups = value;
    } else if (word == "--match") {
      flags.match = value;
    } else if (word == "--engine") {
      flags.engine = value;
    } else if (word == "--graphs") {
      flags.limits.graphs_folder = value;
    } else {
      XCCL_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(value, 1, 1'000'000));
      if (word == "--chunks") {
        flags.chunks = static_cast<int32_t>(number);
      } else if (word == "--limit") {
        flags.limits.cpu_seconds = static_cast<double>(number);
      } else if (word == "--memory") {
        flags.limits.memory_mib = number;
      } else {
        return UsageError(fmt::format("'{}': no such flag", word));
      }
    }
  }
  return flags;
}

std::string Short(const Bar& bar) {
  std::string name = bar.machine.substr(0, bar.machine.find('@'));
  return bar.chunks > 0 ? fmt::format("{} c{}", name, bar.chunks) : name;
}

void PrintRow(const Bar& bar, const BarResult& result, const std::string& misses) {
  fmt::print("{} {:<26} {:>5} {:<14} {:>7} {:<9} {:<18} ", bar.group, Short(bar), result.ranks,
             ToString(bar.collective), FormatSize(bar.size_bytes), ToString(bar.model),
             result.winner.empty() || result.winner == bar.engine
                 ? bar.engine
                 : fmt::format("{}>{}", bar.engine, result.winner));
  if (result.made)
    fmt::print("{:>11.2f} {:>11.2f} {:>7.4f} {:>9.2f} {:>5} {:>7.3f} ", result.time_us, result.bound_us,
               result.bound_us > 0 ? result.time_us / result.bound_us : 1, result.gb_per_s, result.depth,
               result.seconds);
  else
    fmt::print("{:>11} {:>11} {:>7} {:>9} {:>5} {:>7} ", "-", "-", "-", "-", "-", "-");
  fmt::print("{:<34} {:<20} {}\n", Describe(bar), bar.peer, misses.empty() ? "PASS" : "MISS " + misses);
  std::fflush(stdout);
}

void PrintHead() {
  fmt::print(
      "{} {:<26} {:>5} {:<14} {:>7} {:<9} {:<18} {:>11} {:>11} {:>7} {:>9} {:>5} {:>7} {:<34} {:<20} {}\n",
      "g", "machine", "ranks", "collective", "size", "model", "engine", "time us", "bound us", "ratio",
      "GB/s", "depth", "CPU s", "bar", "peer", "result");
}

int Main(const std::vector<std::string>& words) {
  const StatusOr<Flags> flags = ReadFlags(words);
  if (!flags.ok()) {
    fmt::print(stderr, "bars: {}\n{}", flags.status().message(), kUsage);
    return 2;
  }
  struct Count {
    int passed = 0, missed = 0;
  };
  std::map<std::string_view, Count> counts;
  PrintHead();
  for (Bar bar : AllBars()) {
    if (!flags->groups.empty() && flags->groups.find(bar.group) == std::string::npos) continue;
    if (bar.machine.find(flags->match) == std::string::npos) continue;
    if (!flags->engine.empty()) bar.engine = flags->engine;
    if (flags->chunks) bar.chunks = *flags->chunks;
    if (flags->list) {
      fmt::print("{} {} {} {} {} {}\n", bar.group, bar.machine, ToString(bar.collective),
                 FormatSize(bar.size_bytes), bar.engine, Describe(bar));
      continue;
    }
    BarLimits limits = flags->limits;
    if (bar.total_seconds) limits.memory_mib = std::max<int64_t>(limits.memory_mib, 8192);
    const BarResult result = RunBar(bar, limits);
    const std::string misses = WhatMisses(bar, result);
    ++(misses.empty() ? counts[bar.group].passed : counts[bar.group].missed);
    if (!flags->misses || !misses.empty()) PrintRow(bar, result, misses);
  }
  for (const auto& [group, count] : counts)
    fmt::print("{}: {} of {} bars met\n", group, count.passed, count.passed + count.missed);
  return 0;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(std::vector<std::string>(argv + 1, argv + argc)); }
