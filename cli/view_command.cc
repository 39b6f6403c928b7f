// view: writes one page that shows a plan, or the plans of a book, and opens in any browser without a
// network.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/experts.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/pages.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "pipeline/view/view.h"
#include "runtime/plan_book.h"

namespace xccl {
namespace {

// Entries of one list on the page: of a single plan, and of all plans of a book together.
constexpr int64_t kMostEntries = 60'000, kMostEntriesOfBook = 200'000;
constexpr int64_t kLeastEntries = 4'000;

struct Flags {
  std::string input, output, size;
  PlanFlags plan;  // --machine alone
};

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

StatusOr<PlanView> ViewFile(const std::string& path, int64_t most_entries, const Flags& flags,
                            const Session& session) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(path));
  if (!flags.size.empty()) {
    XCCL_ASSIGN_OR_RETURN(plan.made_by.size_bytes, ParseSizeFlag("--size", flags.size));
    XCCL_RETURN_IF_ERROR(CheckNotEmpty("--size", plan.made_by.size_bytes, plan.collective));
  }
  const std::string& name = flags.plan.machine.empty() ? plan.made_by.machine : flags.plan.machine;
  std::optional<MachineModel> machine;
  if (!name.empty()) {
    XCCL_ASSIGN_OR_RETURN(machine, MachineOf(name));
  }
  ViewOptions options;
  options.machine = machine ? &*machine : nullptr;
  options.links_alone = flags.plan.machine == "none";
  options.most_entries = most_entries;
  options.deadline = session.deadline;
  StatusOr<PlanView> view = ViewPlan(plan, FileName(path), options);
  if (!view.ok()) return Annotate(view.status(), path);
  return view;
}

// "allreduce of 1KiB to 64MiB, in place only".
std::string Serves(const PlanBookEntry& entry) {
  const bool all = entry.min_bytes == 0 && !entry.max_bytes;
  std::string text = all ? "all sizes" : SizeRangeText(entry.min_bytes, entry.max_bytes.value_or(0));
  if (entry.types == TypeClass::kFloating) text += ", floating types";
  if (entry.types == TypeClass::kInteger) text += ", integers";
  if (entry.in_place == InPlaceMode::kOnly) text += ", in place";
  if (entry.in_place == InPlaceMode::kNever) text += ", out of place";
  return text;
}

// A plan that serves several ranges is there once.
StatusOr<std::vector<PlanView>> ViewBook(const PlanBook& book, const Flags& flags, const Session& session,
                                         Progress& progress) {
  std::vector<std::pair<std::string, std::string>> files;  // file, and the calls that it serves
  for (const PlanBookEntry& entry : book.entries) {
    auto known =
        std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.first == entry.file; });
    if (known == files.end())
      files.emplace_back(entry.file, Serves(entry));
    else
      known->second += "; " + Serves(entry);
  }
  const int64_t most = std::clamp<int64_t>(kMostEntriesOfBook / std::max<int64_t>(1, std::ssize(files)),
                                           kLeastEntries, kMostEntries);
  std::vector<PlanView> views;
  for (const auto& [file, serves] : files) {
    progress.Say(fmt::format("{} of {}: {}", views.size() + 1, files.size(), file));
    XCCL_ASSIGN_OR_RETURN(PlanView view, ViewFile(book.directory + "/" + file, most, flags, session));
    view.serves = serves;
    views.push_back(std::move(view));
  }
  return views;
}

StatusOr<std::vector<PlanView>> ViewInput(const Flags& flags, const Session& session, Progress& progress) {
  if (IsPlanBook(flags.input)) {
    XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(flags.input));
    if (book.entries.empty())
      return InvalidInput(flags.input + ": no plans in the book; expected at least one");
    return ViewBook(book, flags, session, progress);
  }
  XCCL_ASSIGN_OR_RETURN(PlanView view, ViewFile(flags.input, kMostEntries, flags, session));
  return std::vector<PlanView>{std::move(view)};
}

Status View(const Flags& flags, const Session& session) {
  XCCL_RETURN_IF_ERROR(CheckWritable(flags.output));
  if (IsExpertPlanFile(flags.input)) {
    for (const auto& [flag, value] :
         {std::pair("--size", flags.size), std::pair("--machine", flags.plan.machine)})
      if (!value.empty())
        return UsageError(
            fmt::format("{}: {} is a plan of expert dispatch; expected no {}", flag, flags.input, flag));
    session.is_writing = true;
    XCCL_RETURN_IF_ERROR(ViewExperts(flags.input, flags.output));
    return Print(FileLine({flags.output}));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<PlanView> views,
                        WithProgress("simulating " + flags.input, [&](Progress& progress) {
                          return ViewInput(flags, session, progress);
                        }));
  std::string command = "xccl-synth view " + flags.input;
  if (!flags.size.empty()) command += " --size " + flags.size;
  if (!flags.plan.machine.empty()) command += " --machine " + flags.plan.machine;
  session.is_writing = true;
  XCCL_RETURN_IF_ERROR(WriteFileAtomically(
      flags.output, ViewPage(kViewPage, views, FileName(flags.input), command + " -o " + flags.output)));
  return Print(FileLine({flags.output}));
}

}  // namespace

void AddViewCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(
      line, session, "view", "Show a plan or a book in a page: machine, schedule, bound and why", View);
  command.AddOption("PLAN", flags.input, "a plan file or a plan book").Required();
  command
      .AddOption("-o,--output", flags.output,
                 "the page: one HTML file that needs no network; of a plan of\nexpert dispatch also "
                 "FILE.svg, a picture of its routes")
      .Required();
  command.AddOption("-s,--size", flags.size, "show this size (default: the one that the plan is made for)");
  AddMachineFlag(command, flags.plan, "run the program on this machine");
  command.Footer("Example:\n  xccl-synth view allreduce.plan.json -o allreduce.html");
}

}  // namespace xccl
