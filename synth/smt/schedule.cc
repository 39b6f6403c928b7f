#include "synth/smt/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/analysis/bitwise_same.h"
#include "ir/translated.h"
#include "synth/common/bit_table.h"

namespace xccl::smt {
namespace {

constexpr int64_t kWitnessWork = 200'000;  // limit of each other engine in moves: a fraction of a second

}  // namespace

Schedule CopiesOf(const Topology& topology, const Machine& machine, const CopyProblem& problem,
                  const std::vector<Send>& sends) {
  BitTable needed(machine.ranks, problem.chunks);
  for (int32_t c = 0; c < problem.chunks; ++c)
    for (int32_t r : problem.needers[c]) needed.Set(r, c);
  std::vector<Send> kept;
  for (size_t i = sends.size(); i-- > 0;) {
    const Edge& edge = machine.edges[sends[i].edge];
    if (!needed.Get(edge.to, sends[i].chunk)) continue;
    kept.push_back(sends[i]);
    needed.Set(edge.from, sends[i].chunk);
  }
  std::reverse(kept.begin(), kept.end());
  return ScheduleOf(topology, machine, problem.chunks, kept);
}

Schedule ScheduleOf(const Topology& topology, const Machine& machine, int32_t chunks,
                    const std::vector<Send>& sends) {
  Schedule schedule;
  schedule.num_chunks = chunks;
  std::map<std::pair<int32_t, LinkId>, int64_t> load;
  std::vector<LinkId> path;
  for (const Send& send : sends) {
    const Edge& edge = machine.edges[send.edge];
    const auto busy_with = [&](LinkId l) {
      return static_cast<double>(1 + load[{send.step, l}]) /
             static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
    };
    path.clear();
    for (int32_t c : edge.over) {
      path.push_back(*std::ranges::min_element(machine.capacities[c].links, {}, busy_with));
      ++load[{send.step, path.back()}];
    }
    schedule.Add(ChunkId(send.chunk), 1, Rank(edge.from), Rank(edge.to), path,
                 send.adds ? TransferOp::kReduce : TransferOp::kCopy, send.step);
  }
  return schedule;
}

StepsAndRounds Take(const Schedule& schedule, const Topology& topology, const Machine& machine) {
  StepsAndRounds took{.steps = schedule.num_steps(), .rounds = 0};
  std::map<std::pair<int32_t, LinkId>, int64_t> load;
  for (int64_t t = 0; t < schedule.size(); ++t)
    for (LinkId l : schedule.paths[schedule.path[t]]) load[{schedule.step[t], l}] += schedule.count[t];
  std::vector<int64_t> of_step(static_cast<size_t>(took.steps), 1);
  for (const auto& [where, chunks] : load) {
    const int64_t per_round =
        std::max<int64_t>(1, topology.link(where.second).bandwidth_bytes_per_s / machine.bytes_per_s_of_one);
    of_step[where.first] = std::max(of_step[where.first], (chunks + per_round - 1) / per_round);
  }
  for (int64_t rounds : of_step) took.rounds += rounds;
  return took;
}

std::vector<Witness> FindWitnesses(const SynthesisRequest& request, const Machine& machine, int32_t chunks,
                                   std::span<const Engine> engines) {
  SynthesisRequest asked = request;
  asked.limits = {.deadline = request.limits.deadline};
  asked.limits.chunks = chunks;
  asked.limits.steps = request.limits.steps;
  asked.limits.work_units = kWitnessWork;
  const Collective cut = request.collective->WithChunks(chunks);
  std::vector<Witness> witnesses;
  for (const Engine& engine : engines) {
    if (!engine.is_witness) continue;
    StatusOr<Synthesis> made = engine.Plan(asked);
    if (!made.ok() || !(made->collective == cut)) continue;
    if (!made->schedule.symmetry.empty()) {
      StatusOr<Schedule> plain = Expand(made->schedule, made->collective, *request.topology);
      if (!plain.ok()) continue;
      made->schedule = *std::move(plain);
    }
    if (!request.allow_divergent && cut.Reduces() &&
        !IsBitwiseSame(made->schedule, made->collective, *request.topology))
      continue;
    const StepsAndRounds took = Take(made->schedule, *request.topology, machine);
    witnesses.push_back({*std::move(made), took});
  }
  return witnesses;
}

}  // namespace xccl::smt
