// Schedule and program are compared by what their messages carry, as one hash a chunk. Where two hashes
// differ, both are played once more to find the first difference.
#include "ir/verify/verify_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/analysis/bitwise_same.h"
#include "ir/translated.h"
#include "ir/verify/traffic.h"
#include "ir/verify/verify_path.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {
namespace {

// Rule P10. Requires: schedule and program verify; the schedule is plain.
class Belonging {
 public:
  Belonging(const LoweredProgram& lowered, const Schedule& schedule, const Collective& collective,
            const Topology& topology, std::vector<Violation>& violations)
      : lowered_(lowered),
        schedule_(schedule),
        collective_(collective),
        topology_(topology),
        violations_(violations) {}

  void Check(const Traffic& of_schedule, const Traffic& of_program) {
    CheckChunks();
    if (violations_.empty()) CheckPaths();
    if (violations_.empty()) CheckMessages(of_schedule, of_program);
  }

 private:
  void Report(std::string where, std::string text) {
    if (static_cast<int32_t>(violations_.size()) < kMaxViolations)
      violations_.push_back({"P10", std::move(where), std::move(text)});
  }

  void CheckChunks() {
    if (!(lowered_.collective.spec() == collective_.spec()))
      return Report("program", fmt::format("is for another {} than the schedule", collective_.name()));
    merged_into_.assign(static_cast<size_t>(collective_.num_chunks()), ChunkId(0));
    for (int32_t p = 0; p < collective_.num_parts(); ++p) CheckPart(PartId(p));
  }

  // Finds for each chunk of the part that has a weight the program's chunk in which it lies.
  void CheckPart(PartId part) {
    const Collective& own = lowered_.collective;
    // Where a chunk ends, in units that fit both cuts.
    const auto end = [&](const Collective& cut, ChunkId c, const Collective& other) {
      return static_cast<__int128>(cut.WeightBefore(c) + cut.Weight(c)) * other.PartWeight(part);
    };
    ChunkId into = own.FirstChunk(part);
    __int128 begin = 0;
    for (int32_t i = 0; i < collective_.ChunksOf(part); ++i) {
      const ChunkId c(collective_.FirstChunk(part).value + i);
      if (collective_.Weight(c) == 0) continue;
      while (end(own, into, collective_) <= begin) ++into.value;
      begin = end(collective_, c, own);
      if (begin > end(own, into, collective_))
        return Report(
            fmt::format("program chunk {}", into.value),
            fmt::format("ends inside chunk {} of the schedule; expected one or several of its chunks",
                        c.value));
      merged_into_[c.index()] = into;
    }
  }

  void CheckPaths() {
    std::unordered_set<uint64_t> trees;
    PathChecker checker(topology_);
    for (int32_t p = 0; p < schedule_.paths.size(); ++p) {
      const std::span<const LinkId> path = schedule_.paths[PathId(p)];
      std::vector<std::vector<LinkId>> chains = checker.Branches(path, checker.Check(path));
      if (chains.size() > 1) trees.insert(HashOfTree(path));
      for (std::vector<LinkId>& chain : chains) chains_.emplace(Traffic::HashOf(chain), std::move(chain));
    }
    for (const Connection& c : lowered_.program.connections)
      if (!chains_.contains(Traffic::HashOf(c.path)))
        Report(ToString(c), fmt::format("its path, links {}, is none of the schedule's", LinksText(c.path)));
    for (const Group& g : lowered_.program.groups)
      if (HasSwitch(g) && !trees.contains(HashOfTree(g.path)))
        Report(fmt::format("{} group of rank {} on channel {}", ToString(g.kind), g.root.value, g.channel),
               fmt::format("its path, links {}, is none of the schedule's", LinksText(g.path)));
  }

  void CheckMessages(const Traffic& of_schedule, const Traffic& of_program) {
    std::vector<ChunkId> differ;
    for (int32_t c = 0; c < collective_.num_chunks(); ++c)
      if (!collective_.AlwaysEmpty(ChunkId(c)) &&
          of_schedule.SumOf(ChunkId(c)) != of_program.SumOf(merged_into_[static_cast<size_t>(c)]))
        differ.emplace_back(c);
    if (differ.empty()) return;
    std::string text = FirstDifference(differ.front());
    if (differ.size() > 1) text += fmt::format(" (and so for {} more chunks)", differ.size() - 1);
    Report(fmt::format("chunk {}", differ.front().value), std::move(text));
  }

  std::string FirstDifference(ChunkId c) const {
    Traffic of_schedule(collective_.num_chunks(), c);
    VerifySchedule(schedule_, collective_, topology_, &of_schedule);
    ProgramRecord record{Traffic(lowered_.collective.num_chunks(), merged_into_[c.index()])};
    VerifyProgram(lowered_.program, lowered_.collective, topology_, &record);
    const auto by_chain = [](std::vector<Traffic::Entry> entries) {
      std::unordered_map<uint64_t, std::vector<uint64_t>> lists;
      std::ranges::sort(entries);
      for (const auto& [chain, contributions] : entries) lists[chain].push_back(contributions);
      return lists;
    };
    auto scheduled = by_chain(of_schedule.entries()), programmed = by_chain(record.traffic.entries());
    std::vector<uint64_t> chains;
    for (const auto& lists : {scheduled, programmed})
      for (const auto& [chain, contributions] : lists) chains.push_back(chain);
    std::ranges::sort(chains, {}, [&](uint64_t chain) { return chains_.at(chain); });
    for (uint64_t chain : chains)
      if (scheduled[chain].size() != programmed[chain].size())
        return fmt::format("is carried {} {} by the program and {} by the schedule", ChainText(chain),
                           TimesText(programmed[chain].size()), TimesText(scheduled[chain].size()));
    for (uint64_t chain : chains)
      if (scheduled[chain] != programmed[chain])
        return fmt::format("is carried {} with other contributions by the program than by the schedule",
                           ChainText(chain));
    return "differs in a way that hashes do not show";
  }

  // The order of the links of a tree is free within the rules.
  static uint64_t HashOfTree(std::span<const LinkId> links) {
    std::vector<LinkId> sorted(links.begin(), links.end());
    std::ranges::sort(sorted);
    return Traffic::HashOf(sorted);
  }
  static std::string LinksText(std::span<const LinkId> links) {
    std::string text;
    for (LinkId l : links) text += fmt::format("{}{}", text.empty() ? "" : ",", l.value);
    return text;
  }
  static std::string TimesText(size_t times) {
    return times == 0 ? "never" : times == 1 ? "once" : fmt::format("{} times", times);
  }
  std::string ChainText(uint64_t chain) const {
    const std::vector<LinkId>& links = chains_.at(chain);
    return fmt::format("from rank {} to rank {} over links {}",
                       topology_.RankOf(topology_.link(links.front()).from)->value,
                       topology_.RankOf(topology_.link(links.back()).to)->value, LinksText(links));
  }

  const LoweredProgram& lowered_;
  const Schedule& schedule_;
  const Collective& collective_;
  const Topology& topology_;
  std::vector<Violation>& violations_;
  std::vector<ChunkId> merged_into_;                          // by chunk of the schedule that has a weight
  std::unordered_map<uint64_t, std::vector<LinkId>> chains_;  // chains of the schedule's links, by hash
};

std::vector<Violation> CheckClaim(bool claimed, bool schedule_does, bool program_does) {
  const auto text = [](bool same) {
    return same ? "gives all ranks the same bits" : "may give ranks different bits";
  };
  if (claimed != schedule_does)
    return {{"C1", "bitwise_same", fmt::format("{}; the schedule {}", claimed, text(schedule_does))}};
  if (claimed && !program_does)
    return {{"C1", "bitwise_same", fmt::format("{}; the program {}", claimed, text(program_does))}};
  return {};
}

}  // namespace

std::vector<Violation> VerifyPlan(const Plan& plan) {
  const auto& [topology, collective, schedule, program, made_by, bitwise_same, sizes] = plan;
  if (program && collective.num_chunks() > std::numeric_limits<int32_t>::max())
    return {{"P10", "program",
             fmt::format("is for {} chunks; at most 2^31-1 are supported", collective.num_chunks())}};
  // Only a program is compared with what the schedule moves.
  Traffic traffic(program ? static_cast<int32_t>(collective.num_chunks()) : 0);
  std::vector<Violation> violations =
      VerifySchedule(schedule, collective, topology, program ? &traffic : nullptr);
  ProgramRecord record{Traffic(0)};
  if (program) {
    record.traffic = Traffic(program->collective.num_chunks());
    std::ranges::move(VerifyProgram(program->program, program->collective, topology, &record),
                      std::back_inserter(violations));
  }
  if (!violations.empty()) return violations;
  if (program && schedule.symmetry.empty()) {
    Belonging(*program, schedule, collective, topology, violations).Check(traffic, record.traffic);
  } else if (program) {
    const StatusOr<Schedule> plain = Expand(schedule, collective, topology);
    if (!plain.ok()) return {{"P10", "schedule", plain.status().message()}};
    Traffic of_plain(collective.num_chunks());
    VerifySchedule(*plain, collective, topology, &of_plain);
    Belonging(*program, *plain, collective, topology, violations).Check(of_plain, record.traffic);
  }
  if (violations.empty() && bitwise_same)
    return CheckClaim(*bitwise_same, IsBitwiseSame(schedule, collective, topology), record.bitwise_same);
  return violations;
}

}  // namespace xccl
