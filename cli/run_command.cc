// run: executes a plan and checks every element.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/experts.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/say.h"
#include "pipeline/run.h"
#include "runtime/plan_book.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"

namespace xccl {
namespace {

struct Flags {
  std::string file, collective, backend = "cpu", sizes, type = "float", op = "sum", timeout = "30s";
  RunOptions options = {.warmup = {}};
  CudaFlags cuda;
  LaunchFlags launch;
  ExpertRunFlags experts;
  std::optional<Command> command = {};
};

Row ToRow(const RunRow& row, const RunTableOptions& table, const std::optional<cuda::DeviceUsage>& usage) {
  Row cells = {{"size_bytes", row.size_bytes},
               {"in_place", row.in_place},
               {"time_us", row.time_us},
               {"slowest_us", row.slowest_us},
               {"time_spread", OrNull(SpreadOf(row))},
               {"algbw_gb_per_s", row.algbw_gb_per_s},
               {"busbw_gb_per_s", row.busbw_gb_per_s},
               {"predicted_us", OrNull(row.predicted_us)},
               {"wrong", row.wrong},
               {"collective", table.title},
               {"dtype", std::string(ToString(table.type))},
               {"redop", table.op ? Cell(std::string(ToString(*table.op))) : Cell()},
               {"version", kVersion}};
  if (usage) {
    cells.emplace_back("ctas", int64_t{usage->ctas});
    cells.emplace_back("threads", int64_t{usage->threads});
  }
  return cells;
}

StatusOr<RunSettings> SettingsOf(const Flags& flags) {
  RunSettings settings{.options = flags.options, .gpus = {}};
  RunOptions& options = settings.options;
  XCCL_ASSIGN_OR_RETURN(options.type, FlagValue("--dtype", ParseDataType(flags.type)));
  XCCL_ASSIGN_OR_RETURN(options.op, FlagValue("--redop", ParseReduceOp(flags.op)));
  XCCL_ASSIGN_OR_RETURN(const int64_t timeout, FlagValue("--timeout", ParseDuration(flags.timeout)));
  if (timeout == 0) return UsageError("--timeout: 0s; expected more than 0");
  options.time_limit = std::chrono::nanoseconds(std::max<int64_t>(1, timeout / kPsPerNs));
  XCCL_ASSIGN_OR_RETURN(GpuRun gpus, GpuRunOf(flags.cuda));
  if (flags.backend == "cuda") settings.gpus = std::move(gpus);
  return settings;
}

// Shows the rows of each size as they come; as JSON all of them are shown at the end.
class Shown {
 public:
  Shown(const Session& session, bool shows) : session_(session), shows_(shows) {}

  RunShow Show() {
    return {.begin = [this](const RunResult& of_table) { return Begin(of_table); },
            .size = [this](const RunResult& size) { return Size(size); },
            .end = [this](const std::string& note) { return End(note); }};
  }
  // From here on SIGINT tells how many rows are done.
  void TellInterrupt() { SetTextOfInterrupt(); }
  bool right() const { return right_; }
  bool shows() const { return shows_; }
  const std::vector<Row>& cells() const { return cells_; }

 private:
  void SetTextOfInterrupt() {
    texts_.push_back(fmt::format("xccl-synth: interrupted; {} done{}\n",
                                 done_ == 1 ? "1 row is" : fmt::format("{} rows are", done_),
                                 session_.json && done_ > 0 ? ", which --json prints only at the end" : ""));
    EndOnInterrupt(texts_.back().c_str());
  }

  Status Say(const std::string& text) const { return session_.json || !shows_ ? OkStatus() : Print(text); }

  Status Begin(const RunResult& of_table) {
    table_ = of_table.ran;
    if (of_table.usage) table_.details = DescribeUsage(*of_table.usage);
    rows_.clear();
    return Say(RunTableHead(table_));
  }

  Status Size(const RunResult& size) {
    for (const std::string& notice : size.notices)
      if (shows_ && said_.insert(notice).second) SayNote(notice);
    right_ &= AllRight(size.rows);
    for (const RunRow& row : size.rows) cells_.push_back(ToRow(row, table_, size.usage));
    rows_.insert(rows_.end(), size.rows.begin(), size.rows.end());
    XCCL_RETURN_IF_ERROR(Say(RunTableRows(size.rows, table_)));
    session_.has_rows = !session_.json;
    ++done_;
    SetTextOfInterrupt();
    return OkStatus();
  }

  Status End(const std::string& note) const {
    if (shows_ && !note.empty()) SayNote(note);
    return Say(RunTableEnd(rows_, table_));
  }

  const Session& session_;
  const bool shows_;
  RunTableOptions table_;
  std::vector<RunRow> rows_;  // rows of the table that is being printed
  std::vector<Row> cells_;    // rows of all tables
  std::set<std::string> said_;
  int64_t done_ = 0;              // sizes, which are the rows of the text
  std::list<std::string> texts_;  // all texts for an interrupt so far: the handler may be reading any
  bool right_ = true;
};

// The group that a launcher started; null: none did.
StatusOr<std::unique_ptr<LaunchedGroup>> JoinLaunched(const Flags& flags, std::chrono::nanoseconds limit) {
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<LaunchedGroup> group, JoinGroup(flags.launch, limit));
  if (group != nullptr && flags.options.processes)
    return InvalidInput(
        fmt::format("--processes: {} processes were started, one for each rank; expected one, which "
                    "starts the others",
                    group->bootstrap().ranks()));
  return group;
}

// Runs a plan of experts on the GPUs of this host.
Status RunExpertPlanOnGpus(const Flags& flags, const std::string& type, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const RunSettings settings, SettingsOf(flags));
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<LaunchedGroup> group,
                        JoinGroup(flags.launch, settings.options.time_limit));
  if (group != nullptr)
    return InvalidInput(fmt::format(
        "--backend: {} processes were started; expected one, whose GPUs are the ranks: rows between hosts "
        "need "
        "a proxy that sends messages of dispatch, and collectives alone have one; hint: --backend cpu",
        group->bootstrap().ranks()));
  XCCL_ASSIGN_OR_RETURN(const DataType of_rows, FlagValue("--dtype", ParseDataType(type)));
  return RunExpertsOnGpus(flags.file, flags.experts, settings, of_rows, session);
}

// Runs a plan of experts.
Status RunExpertPlan(const Flags& flags, const Session& session) {
  for (const char* flag : {"--collective", "--sizes", "--redop", "--warmup"})
    if (flags.command->IsGiven(flag))
      return UsageError(
          fmt::format("{}: {} is a plan of expert dispatch; expected no {}", flag, flags.file, flag));
  if (flags.backend == "cuda")
    return RunExpertPlanOnGpus(flags, flags.command->IsGiven("--dtype") ? flags.type : "bfloat16", session);
  XCCL_ASSIGN_OR_RETURN(const RunSettings settings, SettingsOf(flags));
  dispatch::MeasureOptions options{.routing = {},
                                   .calls = flags.options.iterations,
                                   .patience = settings.options.time_limit,
                                   .processes = flags.options.processes};
  if (flags.command->IsGiven("--dtype")) options.type = settings.options.type;
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<LaunchedGroup> group, JoinLaunched(flags, options.patience));
  options.group = group.get();
  return RunExperts(flags.file, flags.experts, options, session);
}

Status RunFile(const Flags& flags, const Session& session) {
  if (IsExpertPlanFile(flags.file)) return RunExpertPlan(flags, session);
  for (const char* flag : {"--routing", "--tokens"})
    if (flags.command->IsGiven(flag))
      return UsageError(fmt::format("{}: only for plans of expert dispatch", flag));
  XCCL_ASSIGN_OR_RETURN(RunSettings settings, SettingsOf(flags));
  settings.deadline = session.deadline;
  XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ParseSizesFlag(flags.sizes));
  const bool is_book = IsPlanBook(flags.file);
  if (!flags.collective.empty()) {
    if (!is_book) return UsageError("--collective: chooses among the plans of a book; expected a plan book");
    XCCL_ASSIGN_OR_RETURN(settings.only, FlagValue("--collective", ParseCollectiveKind(flags.collective)));
  }
  if (!is_book && IsDirectory(flags.file))
    return InvalidInput(flags.file +
                        ": a directory without index.json; expected a plan file or a plan book; hint: "
                        "xccl-synth tune TOPOLOGY -o BOOK makes one");
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<LaunchedGroup> group,
                        JoinLaunched(flags, settings.options.time_limit));
  settings.group = group.get();
  // One rank shows what all have measured.
  Shown shown(session, group == nullptr || group->bootstrap().rank() == Rank(0));
  if (shown.shows()) shown.TellInterrupt();
  XCCL_RETURN_IF_ERROR((is_book ? RunBook : RunSizes)(flags.file, sizes, settings, shown.Show()));
  if (session.json && shown.shows()) XCCL_RETURN_IF_ERROR(Print(ToJson(shown.cells())));
  return shown.right() ? OkStatus() : BugError(flags.file + ": elements are wrong; the table says how many");
}

}  // namespace

void AddRunCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(line, session, "run",
                                     "Run a plan and check every element; prints nccl-tests' table", RunFile);
  flags.command = command;
  command
      .AddOption("PLAN", flags.file,
                 "a plan file with a program or a compressed schedule, or a plan book (a directory with an "
                 "index.json)")
      .Required();
  command.AddOption("--collective,-c", flags.collective,
                    "of a plan book run this collective alone (default: all, each with its roots)");
  command.AddOption("--backend", flags.backend, "where it runs: cpu, cuda")
      .OneOf({"cpu", "cuda"})
      .ShowDefault();
  command.AddFlag("--processes", flags.options.processes, "a process for every rank instead of a thread");
  command.AddOption("--sizes", flags.sizes,
                    "1KiB,1MiB or 1KiB:1GiB:x4 (default: the sizes that the plans were made\n"
                    "for)");
  command
      .AddOption("--dtype", flags.type,
                 "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2")
      .ShowDefault();
  command.AddOption("--redop", flags.op, "sum prod min max avg").ShowDefault();
  command.AddOption("--iters", flags.options.iterations, "timed iterations")
      .Between(1, 1 << 20)
      .ShowDefault();
  command
      .AddOption("--warmup", flags.options.warmup,
                 "iterations before those (default: until their times settle)")
      .Between(0, 1 << 20);
  command.AddOption("--timeout", flags.timeout, "give up when no rank makes progress for this long")
      .ShowDefault();
  AddExpertRunFlags(command, flags.experts);
  AddLaunchFlags(command, flags.launch);
  AddCudaFlags(command, flags.cuda);
  command.AddFlag("--json", session.json, "print the rows as JSON");
  command.Footer(
      "Examples:\n"
      "  xccl-synth run allreduce.plan.json --sizes 1KiB:64MiB:x4\n"
      "  xccl-synth run book -c allreduce\n"
      "  xccl-synth run dispatch.plan.json --routing zipf:1.0\n"
      "  xccl-synth run allreduce.plan.json --processes --dtype bfloat16 --redop max\n"
      "  mpirun -n 16 xccl-synth run allreduce.plan.json   (or srun, torchrun)\n"
      "  xccl-synth run allreduce.plan.json --backend cuda --ranks-per-gpu 8");
}

}  // namespace xccl
