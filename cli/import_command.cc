// import: a plan of another tool, proved, described, timed on a machine, and kept as a plan file.
#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "interchange/common/foreign.h"
#include "ir/known_machines.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "pipeline/import.h"
#include "pipeline/predict.h"

namespace xccl {
namespace {

struct Flags {
  std::string file;
  TopologyFlags machine;
  std::string collective;
  std::optional<int32_t> root;
  std::string sizes;
  PlanFlags plan;  // --machine and --model alone
  std::string output;
};

StatusOr<ImportOptions> ImportOptionsOf(const Flags& flags) {
  ImportOptions options;
  if (!flags.collective.empty()) {
    XCCL_ASSIGN_OR_RETURN(options.collective,
                          FlagValue("--collective", ParseCollectiveKind(flags.collective)));
  }
  if (flags.root) options.root = Rank(*flags.root);
  return options;
}

// Times of the imported plan at the sizes of --sizes: of its program on the machine where its model is known.
StatusOr<std::vector<PlanTime>> Times(const Plan& plan, const Flags& flags, const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                        ParseSizesFlag(flags.sizes, {plan.made_by.size_bytes}));
  for (const int64_t size : sizes) XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, plan.collective));
  const MachineModel* const machine = options.machine ? &*options.machine : nullptr;
  return Predict(plan, sizes, options.request.model, LevelOf(plan, machine), machine);
}

Row ImportRow(const ImportedPlan& imported, const ProgramStats& stats, const Flags& flags) {
  const auto& [from, plan, own_warnings] = imported;
  const Program& program = plan.program->program;
  std::vector<std::string> warnings = plan.topology.spec().warnings;
  warnings.insert(warnings.end(), own_warnings.begin(), own_warnings.end());
  const auto& root = plan.collective.spec().root;
  const Cell none;
  return {{"format", from.format},
          {"name", from.name},
          {"collective", plan.collective.name()},
          {"root", root ? Cell(int64_t{root->value}) : none},
          {"ranks", int64_t{plan.collective.num_members()}},
          {"chunks_per_rank",
           plan.collective.HasEvenParts() ? Cell(int64_t{plan.collective.ChunksOf(PartId(0))}) : none},
          {"protocol", std::string(ToString(program.protocol))},
          {"in_place", program.in_place},
          {"min_bytes", from.min_bytes},
          {"max_bytes", from.max_bytes > 0 ? Cell(from.max_bytes) : none},
          {"threadblocks", int64_t{stats.threadblocks}},
          {"channels", int64_t{stats.channels}},
          {"instructions", stats.instructions},
          {"steps", int64_t{plan.schedule.num_steps()}},
          {"transfers", plan.schedule.size()},
          {"bitwise_same", plan.bitwise_same ? Cell(*plan.bitwise_same) : none},
          {"topology", plan.topology.name()},
          {"warnings", warnings},
          {"file", flags.output.empty() ? Cell() : Cell(flags.output)}};
}

std::string ImportText(const ImportedPlan& imported, const ProgramStats& stats, const Flags& flags) {
  const auto& [from, plan, warnings] = imported;
  const Program& program = plan.program->program;
  std::string text = fmt::format("{}: ok: {}{}, {} of {}, proved\n", flags.file, from.format,
                                 from.name.empty() ? "" : fmt::format(" '{}'", from.name),
                                 plan.collective.name(), Counted(plan.collective.num_members(), "rank"));
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  line("program", fmt::format("{}, {} and {} a rank at most, {}, {}", ToString(program.protocol),
                              Counted(stats.threadblocks, "threadblock"), Counted(stats.channels, "channel"),
                              Counted(stats.instructions, "instruction"),
                              program.in_place ? "in place and out of place" : "out of place alone"));
  if (const auto& root = plan.collective.spec().root) line("root", fmt::format("rank {}", root->value));
  line("sizes", SizeRangeText(from.min_bytes, from.max_bytes));
  line("schedule", fmt::format("{}, {}, {}", Counted(plan.schedule.num_steps(), "step"),
                               Counted(plan.schedule.size(), "transfer"),
                               plan.collective.HasEvenParts()
                                   ? Counted(plan.collective.ChunksOf(PartId(0)), "chunk") + " a part"
                                   : Counted(plan.collective.num_chunks(), "chunk")));
  if (plan.collective.Reduces() && plan.bitwise_same)
    line("bits", *plan.bitwise_same ? "the same on every rank" : "may differ between ranks");
  if (!flags.output.empty()) line("file", fmt::format("{}, for {}", flags.output, plan.topology.name()));
  return text;
}

// --collective is for files that do not say it, and --root for collectives that have one.
Status CheckAsked(const Flags& flags, const ImportOptions& options, const Collective& collective) {
  if (options.collective && collective.kind() != *options.collective)
    return InvalidInput(fmt::format("{}: {}; expected {}, as --collective says", flags.file,
                                    collective.name(), ToString(*options.collective)));
  if (flags.root && !collective.spec().root)
    return UsageError(fmt::format("--root: {} has none; expected no --root", collective.name()));
  return OkStatus();
}

Status ImportFile(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const ImportOptions options, ImportOptionsOf(flags));
  XCCL_ASSIGN_OR_RETURN(PlanOptions timing, PlanOptionsOf(flags.plan, session));
  if (flags.machine.topology.empty() && !(flags.sizes.empty() && flags.plan.machine.empty()))
    return UsageError("--sizes, --machine: times need a machine; hint: --on=TOPOLOGY");
  if (!flags.output.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(flags.output));
  std::optional<Topology> machine;
  if (!flags.machine.topology.empty()) {
    XCCL_ASSIGN_OR_RETURN(machine, ReadTopology(flags.machine, session.json));
    timing = OnMachineOf(*machine, timing);
  }
  std::vector<PlanTime> times;
  XCCL_ASSIGN_OR_RETURN(const ImportedPlan imported,
                        WithProgress("importing " + flags.file, [&](Progress&) -> StatusOr<ImportedPlan> {
                          XCCL_ASSIGN_OR_RETURN(ImportedPlan made,
                                                ImportPlan(flags.file, options, machine, timing));
                          if (machine) {
                            XCCL_ASSIGN_OR_RETURN(times, Times(made.plan, flags, timing));
                          }
                          return made;
                        }));
  const Plan& plan = imported.plan;
  XCCL_RETURN_IF_ERROR(CheckAsked(flags, options, plan.collective));
  session.is_writing = true;
  if (!flags.output.empty()) XCCL_RETURN_IF_ERROR(WritePlan(plan, flags.output));
  const ProgramStats stats =
      Stats(plan.program->program, CollectiveSizes(plan.program->collective, plan.made_by.size_bytes));
  const Compared on{plan.collective.name(), plan.topology.name(), std::string(ToString(timing.request.model)),
                    timing.machine ? timing.machine->source : ""};
  if (session.json) return Print(ToJson(ImportRow(imported, stats, flags), "times", ToRows(times, on)));
  SayWarnings(imported.warnings);
  std::string text = ImportText(imported, stats, flags);
  if (machine)
    text += fmt::format(
        "{} simulated on {}\n{}\n{}", on.machine.empty() ? "schedule" : "program", plan.topology.name(),
        WhatTimesAreOf(on.machine, flags.plan.machine.empty() ? WhyNoModel(plan.topology.gpu_arch()) : ""),
        TimesText(times));
  return Print(text);
}

}  // namespace

void AddImportCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "import",
                 "Prove a plan of another tool, time it, and write it as a plan file", ImportFile);
  command
      .AddOption("FILE", flags.file,
                 "MSCCL XML, from msccl-tools, SCCL, TACCL, RCCL or emit; ForestColl's trees; TACOS' lists")
      .Required();
  command.AddOption("--collective,-c", flags.collective,
                    "what the file is for, where it says custom (default: what it does)");
  command
      .AddOption("--root", flags.root,
                 "root of broadcast, reduce, gather and scatter (default: the only rank that reads input or "
                 "writes output, else rank 0)")
      .Between(0, 1 << 20);
  command.AddOption("-o,--output", flags.output,
                    "write it to this plan file, for --on or else for a full mesh of its ranks");
  command.AddFlag("--json", session.json, "print the result as JSON");
  command.Heading("Times");
  AddTopologyFlags(command, flags.machine, false, "--on");
  command.AddOption("--sizes", flags.sizes, "1KiB,1MiB or 1KiB:1GiB:x4 (default: 64MiB, or the file's)");
  command.AddOption("--model", flags.plan.model, "time model: pipelined or blocking").ShowDefault();
  AddMachineFlag(command, flags.plan, "run the program on this machine");
  command.Footer(
      "Examples:\n"
      "  xccl-synth import allreduce.xml --on dgx-a100 --sizes 1KiB:64MiB:x4\n"
      "  xccl-synth import allreduce.xml -o allreduce.plan.json");
}

}  // namespace xccl
