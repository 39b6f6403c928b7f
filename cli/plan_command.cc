// plan: one collective on one topology, proved and timed, optionally lowered and kept.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/experts.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "pipeline/explain.h"
#include "pipeline/groups_together.h"
#include "pipeline/message_costs.h"
#include "pipeline/pipeline.h"
#include "pipeline/plan_front.h"
#include "pipeline/repair.h"
#include "pipeline/training.h"
#include "synth/engines.h"
#include "synth/groups/groups.h"
#include "synth/groups/training.h"
#include "topologies/fabric/host_list.h"
#include "topologies/fabric/job.h"
#include "topologies/load/load.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

struct Flags {
  TopologyFlags topology;
  CollectiveFlags collective;
  ExpertFlags experts;
  PlanFlags plan;
  std::string from;
  std::string groups;
  TrainingFlags training;
  std::string output;
  bool lower = false;
  bool pareto = false;
  bool explain = false;
  bool place = false;
  std::optional<Command> command = {};
};

// The most ranks of a plan that is lowered unasked, if the machine's model is known.
constexpr int32_t kMostLowered = 64;

// All engines' names, broken into lines that fit beside the flag.
std::string EngineHelp() {
  constexpr size_t kWidth = 88;
  std::string help = "who makes the schedule:";
  size_t line = help.size();
  for (const Engine& engine : AllEngines()) {
    const bool fits = line + 1 + engine.name.size() <= kWidth;
    help += (fits ? " " : "\n") + std::string(engine.name);
    line = (fits ? line + 1 : 0) + engine.name.size();
  }
  return help;
}

// Does the engine of this name have the property, or does an engine that it may ask?
bool Can(const std::string& name, bool Engine::*what) {
  const StatusOr<const Engine*> engine = FindEngine(name);
  return engine.ok() && ((*engine)->asks_others || (*engine)->*what);
}

Status CheckFrom(const PlanOptions& options) {
  if (!Can(options.engine, &Engine::starts_from_plan))
    return UsageError(fmt::format("--from: {} does not start from a plan; expected {} or {}", options.engine,
                                  kDefaultEngine, ImprovingEngine().name));
  if (options.request.limits.chunks)
    return UsageError("--chunks: the plan's own chunks are kept with --from; expected one of the two");
  return OkStatus();
}

// A flag that gives the collective for all excludes the flags that describe a single one.
Status CheckNoCollective(const Flags& flags, const std::string& beside) {
  for (const char* flag : {"--collective", "--collective-file", "--ranks", "--root", "--counts", "--pairs",
                           "--size", "--from", "--pareto", "--explain", "--chunks", "--steps", "--rounds"})
    if (flags.command->IsGiven(flag))
      return UsageError(fmt::format("{}: not together with {}", flag, beside));
  return OkStatus();
}

Status PlanGroupsOfFile(const Flags& flags, const PlanOptions& options, const Session& session) {
  XCCL_RETURN_IF_ERROR(CheckNoCollective(flags, "--groups"));
  XCCL_ASSIGN_OR_RETURN(Topology topology, ReadTopology(flags.topology, session.json));
  XCCL_ASSIGN_OR_RETURN(GroupRequest request, ReadGroups(flags.groups, topology.num_ranks()));
  if (flags.collective.no_relays) {
    std::set<Rank> members;
    for (const ProcessGroup& group : request.groups)
      members.insert(group.collective.ranks().begin(), group.collective.ranks().end());
    topology = WithoutRelays(topology, std::vector(members.begin(), members.end()));
  }
  XCCL_ASSIGN_OR_RETURN(const GroupsResult result,
                        WithProgress("planning " + request.name + " on " + topology.name(), [&](Progress&) {
                          return PlanGroupsTogether(topology, std::move(request), options,
                                                    options.lower || !flags.output.empty());
                        }));
  session.is_writing = true;
  if (!flags.output.empty()) XCCL_RETURN_IF_ERROR(WritePlan(result.result.plan, flags.output));
  return Print((session.json ? GroupsJson : GroupsText)(result, {flags.output, session.TotalSeconds()}));
}

Status PlanTrainingStep(const Flags& flags, const PlanOptions& options, const Session& session) {
  XCCL_RETURN_IF_ERROR(CheckNoCollective(flags, "--for"));
  for (const char* flag : {"--groups", "--lower"})
    if (flags.command->IsGiven(flag)) return UsageError(fmt::format("{}: not together with --for", flag));
  XCCL_ASSIGN_OR_RETURN(const TrainingJob job, MakeTrainingJob(flags.training));
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology(flags.topology, false));
  XCCL_ASSIGN_OR_RETURN(const TrainingPlan plan,
                        WithProgress("planning a training step on " + topology.name(), [&](Progress&) {
                          return PlanTraining(topology, job, options, flags.output);
                        }));
  return Print(session.json ? TrainingJson(plan, session.TotalSeconds())
                            : TrainingText(plan, {flags.output, session.TotalSeconds()}));
}

// Returns options whose search reports its progress on the given line. The line must outlive the options.
PlanOptions ShownOn(Progress& progress, PlanOptions options) {
  options.request.progress = [&](const std::string& what) { progress.Say(what); };
  return options;
}

// plan --pareto: every point between fewest steps and fewest rounds a chunk.
Status PrintFront(const Topology& topology, const Collective& collective, const PlanOptions& options,
                  const Session& session) {
  XCCL_ASSIGN_OR_RETURN(
      const smt::Front front,
      WithProgress("front of " + collective.name() + " on " + topology.name(), [&](Progress& progress) {
        return PlanFront(topology, collective, ShownOn(progress, options));
      }));
  return Print(session.json ? ToJson(FrontRows(front)) : FrontText(front));
}

Status CheckPareto(const Flags& flags) {
  const PlanOptions& options = flags.plan.options;
  if (!Can(options.engine, &Engine::proves_fronts))
    return UsageError(fmt::format("--pareto: {} proves no front; expected {}", options.engine,
                                  std::ranges::find_if(AllEngines(), &Engine::proves_fronts)->name));
  if (!flags.from.empty()) return UsageError("--pareto: starts from no plan; expected no --from");
  if (!flags.output.empty())
    return UsageError(
        "--pareto: writes no plan; expected no --output, or --chunks, --steps and --rounds of a point");
  if (flags.command->IsGiven("--lower")) return UsageError("--pareto: makes no program; expected no --lower");
  if (options.request.limits.rounds) return UsageError("--pareto: finds the rounds; expected no --rounds");
  return OkStatus();
}

// The line that says what a plan for ideal links would cost on a GPU. Empty with --machine none, which asks
// for links alone.
std::string ShortMessagesText(const Flags& flags, const PlanResult& result) {
  const std::string cost = flags.plan.machine == "none" ? "" : CostOfShortMessages(result);
  return cost.empty() ? "" : fmt::format("  {:<10} {}\n", "messages", cost);
}

// The plan's time: that of its program, where the machine's model is known.
int64_t TimeOf(const PlanResult& result) {
  const bool on_machine = result.program_time_ps && !result.machine.empty();
  return on_machine ? *result.program_time_ps : result.simulation.time_ps;
}

// plan --place: what the same plan takes on as many hosts under fewer leaves.
StatusOr<std::string> PlaceText(const Flags& flags, const PlanOptions& options, const Topology& topology,
                                const PlanResult& result) {
  LoadOptions load = flags.topology.load;
  const std::string job = *std::exchange(load.job, std::nullopt);
  XCCL_ASSIGN_OR_RETURN(const Topology whole, LoadTopology(flags.topology.topology, load));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> names, CloserHosts(whole, job));
  const std::string hosts = CompressHostList(names);
  XCCL_ASSIGN_OR_RETURN(const Topology closer, TakeJob(whole, hosts));
  const std::string here = Counted(NumLeaves(topology), "leaf switch");
  if (NumLeaves(closer) >= NumLeaves(topology))
    return fmt::format("the job's hosts are under {}; no others are under fewer", here);
  XCCL_ASSIGN_OR_RETURN(const Collective collective, MakeCollective(flags.collective, closer));
  XCCL_ASSIGN_OR_RETURN(const PlanResult other,
                        WithProgress("planning for closer hosts", [&](Progress& progress) {
                          return MakePlan(closer, collective, ShownOn(progress, options));
                        }));
  const std::string where = fmt::format("{} under {} in place of {}", hosts, NumLeaves(closer), here);
  const std::string times = fmt::format("{} in place of {}", FormatDurationShort(TimeOf(other)),
                                        FormatDurationShort(TimeOf(result)));
  if (TimeOf(other) >= TimeOf(result)) return fmt::format("{} would gain nothing: {}", where, times);
  return fmt::format("{}: {}; hint: --job='{}'", where, times, hosts);
}

Status PlanCollective(const Flags& flags, const Session& session) {
  XCCL_RETURN_IF_ERROR(CheckFlagsOfExperts(*flags.command, flags.collective.collective));
  if (IsExpertCall(flags.collective.collective)) {
    ExpertFlags experts = flags.experts;
    experts.experts = NumberOf(flags.training, "--experts");
    experts.top_k = NumberOf(flags.training, "--top-k");
    return PlanExperts(flags.topology, flags.collective.collective, experts, flags.plan.options.request.seed,
                       flags.output, session);
  }
  XCCL_ASSIGN_OR_RETURN(PlanOptions options, PlanOptionsOf(flags.plan, session));
  SetMemoryHint(kChunksHint);
  options.deadline = CatchInterrupt(options.deadline);
  if (flags.pareto) XCCL_RETURN_IF_ERROR(CheckPareto(flags));
  if (!flags.training.of_interest.empty()) return PlanTrainingStep(flags, options, session);
  if (const std::string flag = FlagWithoutJob(flags.training); !flag.empty())
    return UsageError(flag + ": only together with --for" +
                      (flag == "--experts" || flag == "--top-k" ? " or --collective dispatch" : ""));
  if (flags.place &&
      (!flags.topology.load.job || !flags.from.empty() || !flags.groups.empty() || flags.pareto))
    return UsageError(
        "--place: looks for other hosts of a job; expected --job, and no --from, --groups or --pareto");
  if (!flags.output.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(flags.output));  // before a long search
  const bool says_lower = flags.command->IsGiven("--lower");
  options.lower = says_lower ? flags.lower : !flags.output.empty();
  if (!flags.groups.empty()) return PlanGroupsOfFile(flags, options, session);
  XCCL_ASSIGN_OR_RETURN(const Problem problem,
                        ReadProblem(flags.topology, flags.collective, session.json && !flags.pareto));
  const Topology& topology = problem.topology;
  const Collective& collective = problem.collective;
  XCCL_RETURN_IF_ERROR(CheckNotEmpty("--size", options.request.size_bytes, collective));
  // Where the machine's model is known, the plan's time is that of its program.
  options.lower |= !says_lower && collective.num_members() <= kMostLowered &&
                   OnMachineOf(topology, options).machine.has_value();
  if (flags.pareto && flags.explain) return UsageError("--explain: explains one plan; expected no --pareto");
  if (flags.pareto) return PrintFront(topology, collective, options, session);
  std::optional<Plan> from;
  if (!flags.from.empty()) {
    XCCL_RETURN_IF_ERROR(CheckFrom(options));
    XCCL_ASSIGN_OR_RETURN(from, ReadPlan(flags.from));
  }
  XCCL_ASSIGN_OR_RETURN(
      const PlanResult result,
      WithProgress("planning " + collective.name() + " on " + topology.name(), [&](Progress& progress) {
        const PlanOptions shown = ShownOn(progress, options);
        return from ? RepairPlan(*from, flags.from, topology, collective, shown)
                    : MakePlan(topology, collective, shown);
      }));
  session.is_writing = true;
  if (!flags.output.empty()) XCCL_RETURN_IF_ERROR(WritePlan(result.plan, flags.output));
  const auto why = [&] {
    const Explanation explanation = WithProgress("explaining the plan", [&](Progress& progress) {
      return Explain(result, collective, ShownOn(progress, options));
    });
    return LinesOf(explanation, result);
  };
  Ended ended{.file = flags.output, .total_s = session.TotalSeconds()};
  if (from) ended.warnings = WarningsOfRepair(*from, flags.from, result);
  for (const std::string& fault : result.faults)
    ended.warnings.push_back(fault +
                             "; it was passed over; hint: this is a bug of xccl-synth, please report it");
  if (session.json) {
    Row row = PlanRow(result, ended);
    if (flags.explain) row.emplace_back("why", ExplanationTexts(why()));
    if (flags.place) {
      XCCL_ASSIGN_OR_RETURN(const std::string place, PlaceText(flags, options, topology, result));
      row.emplace_back("place", place);
    }
    return Print(ToJson(row));
  }
  SayWarnings(ended.warnings);
  XCCL_RETURN_IF_ERROR(Print(PlanText(result, options.engine, ended) + ShortMessagesText(flags, result)));
  if (flags.place) {
    XCCL_ASSIGN_OR_RETURN(const std::string place, PlaceText(flags, options, topology, result));
    XCCL_RETURN_IF_ERROR(Print(fmt::format("  {:<10} {}\n", "place", place)));
  }
  if (!flags.explain) return OkStatus();
  // The plan is there: from here on the time limit can only cut off its explanation.
  session.has_rows = true;
  session.is_writing = false;
  const std::vector<NamedLine> lines = why();
  session.is_writing = true;
  return Print(ExplanationText(lines));
}

}  // namespace

void AddPlanCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "plan", "Plan a collective: search, prove, predict, and keep it in a file",
                 PlanCollective);
  flags.command = command;
  command.Heading("Topology");
  AddTopologyFlags(command, flags.topology);
  command.Heading("Collective");
  AddCollectiveFlags(command, flags.collective);
  command.AddOption("--groups", flags.groups,
                    "plan the collectives of several groups of ranks at once: a JSON file that lists them");
  command.Heading("Experts");
  AddExpertFlags(command, flags.experts);
  command.Heading("Search");
  command.AddOption("--engine,-e", flags.plan.options.engine, EngineHelp()).ShowDefault();
  command.AddOption("--size,-s", flags.plan.size, "size that the plan is made for: 1KiB, 256MiB")
      .ShowDefault();
  AddSearchFlags(command, flags.plan);
  command.AddOption(
      "--from", flags.from,
      "a plan file to start from. If it is for this machine, greedy keeps its chunks and makes it no\n"
      "slower. If it is for the machine as it was, it is repaired, faster than a new plan is made. A\n"
      "warning says where a new plan may be better");
  command.AddFlag("--pareto", flags.pareto,
                  "smt: every point between fewest steps and fewest rounds a chunk, each with a proof that\n"
                  "nothing better takes so few steps; --chunks and --steps are then the most that are tried");
  command.AddFlag(
      "--place", flags.place,
      "with --job: plan also for as many hosts under fewer leaf switches, and say what they gain");
  command.Heading("Machine");
  AddExecutionFlags(command, flags.plan);
  command.Heading("Training");
  AddTrainingFlags(command, flags.training);
  command.Heading("Output");
  command.AddOption("-o,--output", flags.output,
                    "write the plan to this file, with its program; with --for a plan book, a directory");
  command.AddFlag(
      "--lower", flags.lower,
      "lower the schedule to a program, prove it and show its time: on with --output, and for up\n"
      "to 64 ranks of a machine whose model is known, unless it is --lower=false. Of several\n"
      "schedules the one with the fastest program is then kept");
  command.AddFlag("--explain", flags.explain,
                  "say in five lines why this plan: what bounds it, its critical path, the next engine's\n"
                  "plan, and which changes would make it faster, each simulated");
  command.AddFlag("--json", session.json, "print the result as JSON");
  command.Footer(
      "Examples:\n"
      "  xccl-synth plan dgx-a100 -c allreduce -s 64MiB -o allreduce.plan.json\n"
      "  xccl-synth plan torus:8x8@bandwidth=50GB/s -c allgather -e greedy\n"
      "  xccl-synth plan dgx1 -c allgather -e smt --chunks 1 --steps 2 --rounds 2\n"
      "  xccl-synth plan rail-8 --for sp,zero1 --llm llama-3-70b --tp 8 -o book\n"
      "  xccl-synth plan dgx1 -c allgather --engine smt --pareto\n"
      "  xccl-synth plan rail-8 -c dispatch --experts 256 --top-k 8 --tokens 4096 --row 7392B");
}

}  // namespace xccl
