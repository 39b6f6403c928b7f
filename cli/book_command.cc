// book: the plans that pay off beside NCCL on a machine, and a table for its tuner.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/size_range.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/show.h"
#include "pipeline/job_calls.h"
#include "pipeline/nccl/book.h"
#include "pipeline/nccl/book_of_log.h"
#include "pipeline/nccl/steer.h"
#include "pipeline/plan_result.h"
#include "pipeline/tune.h"
#include "runtime/nccl/tuner/table.h"
#include "runtime/plan_book.h"

namespace xccl {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

struct Flags {
  TopologyFlags topology;
  std::string collectives = "allreduce,allgather,reduce_scatter,broadcast,reduce";
  std::string roots;
  std::string sizes = "1KiB:1GiB:x4";
  std::string least_gain = "1.1";
  std::string from;  // files of nccl-tests, commas between
  std::vector<std::string> logs;
  bool without_nccl = false;
  PlanFlags plan;
  std::string output;
};

std::string NameOf(const nccl::Estimate& timed) {
  return fmt::format("{} {}", nccl_tuner::ToString(timed.algorithm), nccl_tuner::ToString(timed.protocol));
}

Status Show(const nccl::Book& book, const MachineModel& machine, const Flags& flags, const Session& session) {
  if (session.json) {
    std::vector<Row> rows;
    for (const auto& [ours, nccl, kept] : book.rows) {
      Cell root, file;
      if (ours.root) root = int64_t{ours.root->value};
      if (kept) file = ours.file;
      rows.push_back({{"collective", ours.collective},
                      {"root", root},
                      {"size_bytes", ours.size_bytes},
                      {"engine", ours.engine},
                      {"predicted_us", ours.predicted_us},
                      {"ctas", int64_t{ours.threadblocks}},
                      {"nccl_algorithm", std::string(nccl_tuner::ToString(nccl.algorithm))},
                      {"nccl_protocol", std::string(nccl_tuner::ToString(nccl.protocol))},
                      {"nccl_channels", int64_t{nccl.channels}},
                      {"nccl_us", nccl.us},
                      {"gain", nccl.us / ours.predicted_us},
                      {"kept", kept},
                      {"file", file}});
    }
    return Print(ToJson(rows));
  }
  std::vector<std::vector<std::string>> table = {
      {"collective", "size", "engine", "predicted us", "NCCL", "NCCL us", "gain", "plan"}};
  for (const auto& [ours, nccl, kept] : book.rows)
    table.push_back(
        {ours.root ? fmt::format("{} root {}", ours.collective, ours.root->value) : ours.collective,
         SizeText(ours.size_bytes), ours.engine, fmt::format("{:.1f}", ours.predicted_us), NameOf(nccl),
         fmt::format("{:.1f}", nccl.us), fmt::format("{:.2f}", nccl.us / ours.predicted_us),
         kept ? ours.file : "NCCL's own"});
  return Print(
      fmt::format("machine: {}; NCCL by its own model (2.30)\n{}"
                  "book: {} of {}, {} for NCCL's tuner\n",
                  machine.source, TableText(table), flags.output, Counted(std::ssize(book.plans), "plan"),
                  Counted(std::ssize(book.steering), "row")));
}

StatusOr<double> LeastGain(const std::string& text) {
  XCCL_ASSIGN_OR_RETURN(const int64_t gain, FlagValue("--least-gain", ParseBillionths(text)));
  if (gain < kBillion) return UsageError("--least-gain: '" + text + "'; expected 1 or more");
  return static_cast<double>(gain) / static_cast<double>(kBillion);
}

std::string SizesText(const nccl::LogRow& row) {
  return row.min_bytes == row.max_bytes ? SizeText(row.min_bytes)
                                        : SizeRangeText(row.min_bytes, row.max_bytes);
}

Status Show(const nccl::LogBook& book, const std::optional<MachineModel>& machine, const Flags& flags,
            const Session& session) {
  if (session.json) {
    std::vector<Row> rows;
    for (const nccl::LogRow& row : book.rows) {
      Cell root, file, measured, algorithm, protocol, nccl_us;
      if (row.root) root = int64_t{row.root->value};
      if (row.kept) file = row.ours.file;
      if (row.measured_us) measured = *row.measured_us;
      if (row.nccl) {
        algorithm = std::string(nccl_tuner::ToString(row.nccl->algorithm));
        protocol = std::string(nccl_tuner::ToString(row.nccl->protocol));
        nccl_us = row.nccl->us;
      }
      rows.push_back({{"collective", std::string(ToString(row.collective))},
                      {"ranks", int64_t{row.ranks}},
                      {"root", root},
                      {"min_bytes", row.min_bytes},
                      {"max_bytes", row.max_bytes},
                      {"calls", row.calls},
                      {"share", row.share},
                      {"measured_us", measured},
                      {"size_bytes", row.ours.size_bytes},
                      {"engine", row.ours.engine},
                      {"predicted_us", row.ours.predicted_us},
                      {"nccl_algorithm", algorithm},
                      {"nccl_protocol", protocol},
                      {"nccl_us", nccl_us},
                      {"kept", row.kept},
                      {"file", file}});
    }
    return Print(ToJson(rows));
  }
  std::vector<std::vector<std::string>> table = {{"collective", "ranks", "size", "calls", "time %",
                                                  "measured us", "engine", "predicted us", "NCCL", "NCCL us",
                                                  "plan"}};
  const auto us = [](std::optional<double> time) {
    return time ? fmt::format("{:.1f}", *time) : std::string("-");
  };
  for (const nccl::LogRow& row : book.rows) {
    std::string name(ToString(row.collective));
    if (row.root) name += fmt::format(" root {}", row.root->value);
    table.push_back({std::move(name), fmt::format("{}", row.ranks), SizesText(row),
                     fmt::format("{}", row.calls), fmt::format("{:.1f}", 100 * row.share),
                     us(row.measured_us), row.ours.engine, us(row.ours.predicted_us),
                     row.nccl ? NameOf(*row.nccl) : "-", row.nccl ? us(row.nccl->us) : "-",
                     row.kept ? row.ours.file : "NCCL's own"});
  }
  const std::string on = machine ? fmt::format("machine: {}; NCCL by its own model (2.30)", machine->source)
                                 : fmt::format("times on {}", OnIdealLinks());
  return Print(fmt::format("{}\n{}book: {} of {}, {} for NCCL's tuner\n", on, TableText(table), flags.output,
                           Counted(std::ssize(book.plans), "plan"),
                           Counted(std::ssize(book.steering), "row")));
}

// A book for what a job called.
Status MakeOfLogs(const Flags& flags, double least_gain, TuneRequest request, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const JobCalls job, ReadJobCalls(flags.logs));
  XCCL_RETURN_IF_ERROR(MakePlanBookDirectory(flags.output));
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology(flags.topology, false));
  request.pipeline = OnMachineOf(topology, request.pipeline);
  XCCL_ASSIGN_OR_RETURN(const nccl::LogBook book,
                        WithProgress("planning a job's calls on " + topology.name(), [&](Progress& progress) {
                          request.on_collective = [&](size_t done, size_t all) { progress.Done(done, all); };
                          return nccl::MakeBookOfLog(topology, job, request, least_gain);
                        }));
  session.is_writing = true;
  SayWarnings(book.warnings);
  if (!book.steering.empty())
    XCCL_RETURN_IF_ERROR(
        WriteFileAtomically(flags.output + "/nccl-tuner.table", nccl_tuner::WriteTable(book.steering)));
  XCCL_RETURN_IF_ERROR(WriteBook(book.entries, book.plans, request.pipeline.machine, flags.output));
  return Show(book, request.pipeline.machine, flags, session);
}

Status MakeBesideNccl(const Topology& topology, TuneRequest& request, double least_gain, const Flags& flags,
                      const Session& session) {
  XCCL_ASSIGN_OR_RETURN(nccl::Book book,
                        WithProgress("planning a book for " + topology.name(), [&](Progress& progress) {
                          request.on_collective = [&](size_t done, size_t all) { progress.Done(done, all); };
                          return nccl::MakeBook(topology, request, least_gain);
                        }));
  if (!flags.from.empty()) {  // measured rows take the place of simulated ones
    XCCL_ASSIGN_OR_RETURN(book.steering, nccl::SteerByFiles(Split(flags.from, ','), least_gain));
  }
  session.is_writing = true;
  XCCL_RETURN_IF_ERROR(nccl::WriteBookAndTable(book, *request.pipeline.machine, flags.output));
  return Show(book, *request.pipeline.machine, flags, session);
}

Status ShowPlans(const Tuned& tuned, const Flags& flags, const Session& session) {
  std::vector<Row> rows;
  std::vector<std::vector<std::string>> table = {{"collective", "size", "engine", "predicted us", "plan"}};
  for (const TunedRow& row : tuned.rows) {
    Cell root;
    if (row.root) root = int64_t{row.root->value};
    rows.push_back({{"collective", row.collective},
                    {"root", root},
                    {"size_bytes", row.size_bytes},
                    {"engine", row.engine},
                    {"predicted_us", row.predicted_us},
                    {"ctas", int64_t{row.threadblocks}},
                    {"file", row.file}});
    table.push_back({row.root ? fmt::format("{} root {}", row.collective, row.root->value) : row.collective,
                     SizeText(row.size_bytes), row.engine, fmt::format("{:.1f}", row.predicted_us),
                     row.file});
  }
  if (session.json) return Print(ToJson(rows));
  return Print(fmt::format("{}book: {} of {}\n", TableText(table), flags.output,
                           Counted(std::ssize(tuned.plans), "plan")));
}

// Plans for every size, whatever NCCL would take: for programs that call xccl.h.
Status MakeWithoutNccl(const Topology& topology, TuneRequest& request, const Flags& flags,
                       const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const Tuned tuned,
                        WithProgress("planning a book for " + topology.name(), [&](Progress& progress) {
                          request.on_collective = [&](size_t done, size_t all) { progress.Done(done, all); };
                          return Tune(std::span(&topology, 1), request, {});
                        }));
  session.is_writing = true;
  XCCL_RETURN_IF_ERROR(WriteBook(tuned.entries, tuned.plans, request.pipeline.machine, flags.output));
  return ShowPlans(tuned, flags, session);
}

Status MakeAndWrite(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const double least_gain, LeastGain(flags.least_gain));
  TuneRequest request;
  XCCL_ASSIGN_OR_RETURN(request.pipeline, PlanOptionsOf(flags.plan, session));
  SetMemoryHint(kChunksHint);
  if (!flags.logs.empty()) return MakeOfLogs(flags, least_gain, std::move(request), session);
  XCCL_ASSIGN_OR_RETURN(request.sizes_bytes, ParseSizesFlag(flags.sizes));
  std::ranges::sort(request.sizes_bytes);
  XCCL_RETURN_IF_ERROR(MakePlanBookDirectory(flags.output));
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology(flags.topology, false));
  if (flags.without_nccl) {
    request.pipeline = OnMachineOf(topology, request.pipeline);
  } else {
    XCCL_ASSIGN_OR_RETURN(request.pipeline, nccl::OptionsOfBook(topology, request.pipeline));
  }
  XCCL_ASSIGN_OR_RETURN(request.collectives, CollectivesOf(flags.collectives, flags.roots, topology));
  for (const Collective& collective : request.collectives)
    for (const int64_t size : request.sizes_bytes)
      XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, collective));
  return flags.without_nccl ? MakeWithoutNccl(topology, request, flags, session)
                            : MakeBesideNccl(topology, request, least_gain, flags, session);
}

Status MakeBook(const Flags& flags, const Session& session) {
  const bool is_new = !PathExists(flags.output);
  Status status = MakeAndWrite(flags, session);
  std::error_code ignored;
  if (!status.ok() && is_new) std::filesystem::remove(flags.output, ignored);  // where it is empty
  return status;
}

}  // namespace

void AddBookCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "book", "Make a book of the plans that are faster than NCCL", MakeBook);
  AddTopologyFlags(command, flags.topology);
  const Option collectives =
      command.AddOption("--collectives", flags.collectives, "what to plan, with commas between")
          .ShowDefault();
  const Option roots =
      command.AddOption("--root", flags.roots, "roots of broadcast and reduce: 0,2,4-7 or all (default: 0)");
  const Option sizes =
      command.AddOption("--sizes", flags.sizes, "sizes to compare: 1KiB,1MiB or 1KiB:1GiB:x4").ShowDefault();
  command
      .AddOption("--least-gain", flags.least_gain,
                 "keep a plan where NCCL's time, by its own model, is so many times the plan's")
      .ShowDefault();
  const Option from = command.AddOption(
      "--from", flags.from,
      "what nccl-tests wrote with -J, for NCCL's tuner: runs with NCCL_ALGO and NCCL_PROTO and one\n"
      "without; files with commas between (default: NCCL's algorithms are simulated)");
  const Option from_log =
      command
          .AddOption(
              "--from-log", flags.logs,
              "plan what a job called, by its ranks' files: of XCCL_LOG_CALLS=calls.json, or its log with\n"
              "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL, or files of NCCL's profiler")
          .Excludes(collectives)
          .Excludes(roots)
          .Excludes(sizes)
          .Excludes(from);
  command
      .AddFlag("--without-nccl", flags.without_nccl,
               "a plan for every size, whatever NCCL would take: for programs that call xccl.h, and for\n"
               "machines that NCCL has no model of")
      .Excludes(from)
      .Excludes(from_log);
  command.AddOption("--engine,-e", flags.plan.options.engine, "who makes the plans").ShowDefault();
  AddSearchFlags(command, flags.plan);
  AddExecutionFlags(command, flags.plan);
  command.AddOption("-o,--output", flags.output, "the plan book: a directory, made where there is none")
      .Required();
  command.AddFlag("--json", session.json, "print the rows as JSON");
  command.Footer(
      "Examples:\n"
      "  xccl-synth book dgx-h100 -o book\n"
      "  xccl-synth book nccl-dump.xml --hosts 4 --sizes 1KiB:64MiB:x4 -o book\n"
      "  xccl-synth book nccl-dump.xml --hosts 4 --from-log calls.json.* -o book\n"
      "  xccl-synth book torus:4x4 --without-nccl --collectives allreduce,alltoall -o book");
}

}  // namespace xccl
