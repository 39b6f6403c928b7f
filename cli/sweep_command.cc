// sweep: many plans, as jobs of a work list, into one table.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "runtime/bootstrap/placement.h"
#include "sweep/job.h"
#include "sweep/sweep.h"
#include "sweep/work_list.h"

namespace xccl {
namespace {

struct Flags {
  std::string list;
  std::string table;
  std::string part;
  int32_t jobs = 1;
  bool retry = false;
  bool only_list = false;
  std::vector<std::string> merged;
};

// The word as a shell reads it back.
std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

Status PrintJobs(const std::vector<SweepJob>& jobs, const SweepPart& part) {
  std::string text;
  int64_t number = part.part;
  for (const SweepJob& job : jobs) {
    text += fmt::format("{}  xccl-synth", number);
    for (const std::string& word : PlanArguments(job)) text += " " + ShellWord(word);
    text += "\n";
    number += part.parts;
  }
  return Print(text);
}

Status Merge(const Flags& flags, const std::vector<SweepJob>& jobs) {
  XCCL_ASSIGN_OR_RETURN(const size_t missing, MergeTables(jobs, flags.merged, flags.table));
  if (missing > 0)
    SayNote(fmt::format("{} of {} jobs have no row; hint: xccl-synth sweep {} -o {}", missing, jobs.size(),
                        flags.list, flags.table));
  return Print(fmt::format("{}: {} of {} jobs\n", flags.table, jobs.size() - missing, jobs.size()));
}

Status RunSweepCommand(const Flags& flags, const Session& session) {
  SweepPart part;
  if (!flags.part.empty()) {
    XCCL_ASSIGN_OR_RETURN(part, FlagValue("--part", ParseSweepPart(flags.part)));
  }
  XCCL_ASSIGN_OR_RETURN(std::vector<SweepJob> jobs, ReadWorkList(flags.list));
  jobs = JobsOfPart(std::move(jobs), part);
  if (flags.only_list) return PrintJobs(jobs, part);
  if (flags.table.empty()) return UsageError("sweep: no table; hint: --output=table.csv, or --list");
  session.is_writing = true;  // the deadline is kept here
  if (!flags.merged.empty()) return Merge(flags, jobs);
  if (const auto place = FindPlacement(ProcessEnvironment);
      flags.part.empty() && place.ok() && place->ranks > 1)
    return InvalidInput(
        fmt::format("sweep: {} processes were started; expected one; hint: xccl-sweep-mpi shares the "
                    "list out, and so does --part",
                    place->ranks));
  XCCL_ASSIGN_OR_RETURN(const std::string program, FindSynth());
  XCCL_ASSIGN_OR_RETURN(Sweep sweep,
                        Sweep::Open({.jobs = std::move(jobs), .table = flags.table, .retry = flags.retry}));
  XCCL_RETURN_IF_ERROR(WithProgress("sweep of " + flags.list, [&](Progress& progress) {
    return RunSweep(sweep, program, flags.jobs, session.deadline, [&](size_t rows) {
      progress.Say(fmt::format("{} of {}", rows, sweep.num_jobs()));
      progress.Done(rows, sweep.num_jobs());
    });
  }));
  return Print(sweep.Summary());
}

}  // namespace

void AddSweepCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(
      line, session, "sweep", "Plan many: all combinations of a work list, into one table", RunSweepCommand);
  command
      .AddOption(
          "LIST", flags.list,
          "a file of lines like 'dgx-a100 ring:8 -c allreduce -s 1KiB 64MiB -e auto ring --seed 1 2':\n"
          "options of plan, each with several values")
      .Required();
  const Option output = command.AddOption("-o,--output", flags.table,
                                          "the table, CSV. A job that has a row in it is not done again");
  const Option jobs =
      command.AddOption("--jobs,-j", flags.jobs, "plans made at a time, each in a process of its own")
          .Between(1, 4096)
          .ShowDefault();
  command.AddOption("--part", flags.part, "I/N: only the jobs of part I of N, counted from 0");
  const Option retry = command.AddFlag("--retry", flags.retry, "do jobs again whose row is an error");
  const Option merge = command.AddOption("--merge", flags.merged, "do nothing but gather these tables' rows")
                           .TypeName("TABLE...")
                           .Excludes(jobs)
                           .Excludes(retry);
  command.AddFlag("--list", flags.only_list, "print the jobs, numbered, and end")
      .Excludes(output)
      .Excludes(merge);
  command.Footer(
      "Examples:\n"
      "  xccl-synth sweep work.txt --list\n"
      "  xccl-synth sweep work.txt -o table.csv --jobs 8\n"
      "  xccl-synth sweep work.txt --part $SLURM_ARRAY_TASK_ID/64 -o table.csv.$SLURM_ARRAY_TASK_ID\n"
      "  xccl-synth sweep work.txt --merge table.csv.* -o table.csv");
}

}  // namespace xccl
