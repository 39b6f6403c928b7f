// For each number of ranks:
// 1. Take the ranks of the busiest group and the links between them.
// 2. Split the sizes of each collective into classes, and plan the size of a class that takes the most time.
// 3. Keep a class's plan where it gains, and give neighbouring kept classes the sizes between them.
#include "pipeline/nccl/book_of_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "pipeline/arguments.h"
#include "pipeline/nccl/book.h"
#include "pipeline/pipeline.h"
#include "topologies/submachine.h"

namespace xccl::nccl {
namespace {

bool CanPlan(CollectiveKind kind) {
  return !TraitsOf(kind).counted && kind != CollectiveKind::kSendrecv && kind != CollectiveKind::kBarrier &&
         kind != CollectiveKind::kCustom;
}

// The calls of one collective, number of ranks and root, by size.
struct Use {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root;
  std::vector<JobCall> calls;
};

struct Class {
  std::vector<JobCall> calls;  // by size
  int64_t planned_bytes = 0;
};

// Splits the sizes of a use into classes: from a least size up to twice this size. Returns the classes with
// the sizes to plan. A size is planned as at least 4 bytes or, with a part for each rank, 16 bytes a rank,
// since nccl-tests rounds smaller sizes down to nothing.
std::vector<Class> ClassesOf(const Use& use) {
  const int64_t least =
      TraitsOf(use.collective).parts == KindTraits::Parts::kOne ? 4 : int64_t{16} * use.ranks;
  std::vector<Class> classes;
  for (const JobCall& call : use.calls) {
    const int64_t size = std::max(call.size_bytes, least);
    if (classes.empty() || size > 2 * std::max(classes.back().calls.front().size_bytes, least))
      classes.emplace_back();
    classes.back().calls.push_back(call);
  }
  for (Class& each : classes) {
    // Without times, the bytes of calls decide, since times grow with bytes.
    const bool timed =
        std::ranges::all_of(each.calls, [](const JobCall& call) { return call.us.has_value(); });
    const auto most = std::ranges::max_element(each.calls, {}, [&](const JobCall& call) {
      return static_cast<double>(call.calls) * (timed ? *call.us : static_cast<double>(call.size_bytes));
    });
    each.planned_bytes = std::max(most->size_bytes, least);
  }
  return classes;
}

std::vector<Use> UsesOf(const JobCalls& job, std::vector<std::string>& warnings) {
  std::map<std::tuple<int32_t, CollectiveKind, std::optional<Rank>>, Use> uses;
  std::map<CollectiveKind, int64_t> unplanned;
  int64_t too_large = 0;
  for (const JobCall& call : job.calls) {
    if (call.ranks < 2) continue;  // a rank alone sends nothing
    if (!CanPlan(call.collective)) {
      unplanned[call.collective] += call.calls;
      continue;
    }
    if (!CheckSize(call.size_bytes).ok()) {
      too_large += call.calls;
      continue;
    }
    Use& use = uses[{-call.ranks, call.collective, call.root}];
    use.collective = call.collective;
    use.ranks = call.ranks;
    use.root = call.root;
    use.calls.push_back(call);
  }
  for (const auto& [kind, calls] : unplanned)
    warnings.push_back(fmt::format("{}: {} not planned: a log does not have their pairs and counts",
                                   ToString(kind), Counted(calls, "call")));
  if (too_large > 0)
    warnings.push_back(
        fmt::format("{} of over {} left out", Counted(too_large, "call"), FormatSize(kMaxSizeBytes)));
  std::vector<Use> all;
  for (auto& [key, use] : uses) all.push_back(std::move(use));
  return all;
}

// The part of the machine on which collectives of one number of ranks are planned.
struct Part {
  Topology topology;
  std::optional<Graphs> graphs;  // absent: NCCL has no model of the part
};

std::string RanksText(std::span<const Rank> ranks) {
  std::vector<std::string> texts;
  for (const Rank rank : ranks) texts.push_back(std::to_string(rank.value));
  return SomeOf(texts);
}

StatusOr<Part> PartOf(const Topology& whole, const JobGroups& groups, const PlanOptions& options,
                      std::vector<std::string>& warnings) {
  warnings.insert(warnings.end(), groups.warnings.begin(), groups.warnings.end());
  const std::vector<Rank>& members = groups.members[0];
  const auto machine_of = [&](const std::vector<Rank>& ranks) {
    return std::ssize(ranks) == whole.num_ranks() ? whole : MembersAlone(whole, ranks).topology;
  };
  Part part{machine_of(members), {}};
  const auto links_of = [](const Topology& topology) {
    std::vector<std::pair<int64_t, int64_t>> links;
    for (int32_t l = 0; l < topology.num_links(); ++l)
      links.emplace_back(topology.link(LinkId(l)).bandwidth_bytes_per_s, topology.link(LinkId(l)).latency_ps);
    std::ranges::sort(links);
    return links;
  };
  const auto differs = [&, own = links_of(part.topology)](const std::vector<Rank>& other) {
    return links_of(machine_of(other)) != own;
  };
  constexpr size_t kMostCompared = 64;
  const auto others = std::span(groups.members).subspan(1);
  if (std::ranges::any_of(others.first(std::min(others.size(), kMostCompared)), differs))
    warnings.push_back(fmt::format("{}: {} with other links; the plans are for {}",
                                   Counted(groups.ranks, "rank"),
                                   Counted(std::ssize(groups.members), "group"), RanksText(members)));
  if (!options.machine) return part;
  StatusOr<Graphs> graphs = FindGraphs(part.topology, *options.machine);
  if (graphs.ok())
    part.graphs = *graphs;
  else
    warnings.push_back(
        fmt::format("{}: no times of NCCL's: {}", Counted(groups.ranks, "rank"), graphs.status().message()));
  return part;
}

// Returns the rows of a use, one for each class. `from`: the tuned plans of the classes.
std::vector<LogRow> RowsOf(const Use& use, const std::vector<Class>& classes, const Tuned& from,
                           const std::optional<Graphs>& graphs, double least_gain) {
  std::vector<LogRow> rows;
  for (size_t c = 0; c < classes.size(); ++c) {
    const std::vector<JobCall>& calls = classes[c].calls;
    LogRow row{.collective = use.collective, .ranks = use.ranks, .root = use.root};
    row.min_bytes = calls.front().size_bytes;
    row.max_bytes = calls.back().size_bytes;
    double us = 0, timed = 0;
    for (const JobCall& call : calls) {
      row.calls += call.calls;
      row.nccl_may_serve = row.nccl_may_serve && call.nccl_may_serve;
      if (!call.us) continue;
      timed += static_cast<double>(call.calls);
      us += *call.us * static_cast<double>(call.calls);
    }
    if (timed > 0) row.measured_us = us / timed;
    row.ours = from.rows[c];
    const std::optional<nccl_tuner::Collective> modelled = CollectiveOf(use.collective);
    if (graphs && modelled) row.nccl = Choice(*graphs, *modelled, row.ours.size_bytes);
    row.kept = !row.nccl_may_serve || !row.nccl || row.nccl->us >= least_gain * row.ours.predicted_us;
    const bool nccl_runs = !row.kept || (row.nccl_may_serve && row.nccl);
    row.share = static_cast<double>(row.calls) *
                row.measured_us.value_or(nccl_runs ? row.nccl->us : row.ours.predicted_us);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Adds an entry for each run of kept classes with one plan. A size between two neighbouring classes goes to
// the nearer class if both are kept, or if NCCL may not serve the calls of the kept class; otherwise it goes
// to NCCL. A size below the first class or above the last goes to NCCL if NCCL may serve the calls of that
// class.
void Keep(std::span<const LogRow> rows, const Tuned& tuned, const std::string& prefix, LogBook& book) {
  const auto cut = [&](size_t c) { return LastNearerTo(rows[c].max_bytes, rows[c + 1].min_bytes); };
  for (size_t c = 0; c < rows.size(); ++c) {
    if (!rows[c].kept) continue;
    const bool joined = c > 0 && rows[c - 1].kept, goes_on = c + 1 < rows.size() && rows[c + 1].kept;
    std::optional<int64_t> last;
    if (goes_on)
      last = cut(c);
    else if (rows[c].nccl_may_serve)
      last = rows[c].max_bytes;
    else if (c + 1 < rows.size())
      last = cut(c);
    if (joined && rows[c - 1].ours.file == rows[c].ours.file) {
      book.entries.back().max_bytes = last;
      continue;
    }
    const auto from = std::ranges::find(tuned.entries, rows[c].ours.file, &PlanBookEntry::file);
    PlanBookEntry entry = *from;
    entry.file = prefix + entry.file;
    if (!joined && rows[c].nccl_may_serve)
      entry.min_bytes = rows[c].min_bytes;
    else
      entry.min_bytes = c > 0 ? cut(c - 1) + 1 : 0;
    entry.max_bytes = last;
    if (std::ranges::find(book.entries, entry.file, &PlanBookEntry::file) == book.entries.end())
      book.plans.push_back(tuned.plans[static_cast<size_t>(from - tuned.entries.begin())]);
    book.entries.push_back(std::move(entry));
  }
}

Status PlanUse(const Use& use, const Part& part, const TuneRequest& request, double least_gain,
               const std::string& prefix, LogBook& book) {
  CollectiveSpec spec;
  spec.kind = use.collective;
  spec.ranks = AllRanks(use.ranks);
  spec.root = use.root;
  TuneRequest one = request;
  one.on_collective = {};
  XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
  one.collectives = {collective};
  const std::vector<Class> classes = ClassesOf(use);
  one.sizes_bytes.clear();
  for (const Class& each : classes) one.sizes_bytes.push_back(each.planned_bytes);
  XCCL_ASSIGN_OR_RETURN(const Tuned tuned, Tune(std::span(&part.topology, 1), one, {}));
  std::vector<LogRow> rows = RowsOf(use, classes, tuned, part.graphs, least_gain);
  Keep(rows, tuned, prefix, book);
  const bool nccls = std::ranges::all_of(use.calls, &JobCall::nccl_may_serve);
  const bool first_root = std::ranges::none_of(book.rows, [&](const LogRow& row) {
    return row.collective == use.collective && row.ranks == use.ranks;
  });
  if (nccls && first_root && rows[0].nccl)
    SteerBySimulation(part.topology, collective, one, *part.graphs, least_gain, book.steering);
  for (LogRow& row : rows) {
    row.ours.file = prefix + row.ours.file;
    book.rows.push_back(std::move(row));
  }
  return OkStatus();
}

}  // namespace

StatusOr<LogBook> MakeBookOfLog(const Topology& topology, const JobCalls& job, const TuneRequest& request,
                                double least_gain) {
  if (job.ranks > topology.num_ranks())
    return InvalidInput(fmt::format("the job has {}; {} has {}; hint: --hosts=N", Counted(job.ranks, "rank"),
                                    topology.name(), topology.num_ranks()));
  TuneRequest on_machine = request;
  on_machine.pipeline = OnMachineOf(topology, request.pipeline);
  LogBook book;
  book.warnings = job.warnings;
  const std::vector<Use> uses = UsesOf(job, book.warnings);
  std::map<int32_t, Part> parts;
  for (size_t u = 0; u < uses.size(); ++u) {
    const Use& use = uses[u];
    auto part = parts.find(use.ranks);
    if (part == parts.end()) {
      const auto groups = std::ranges::find(job.groups, use.ranks, &JobGroups::ranks);
      XCCL_ASSIGN_OR_RETURN(Part made, PartOf(topology, *groups, on_machine.pipeline, book.warnings));
      part = parts.emplace(use.ranks, std::move(made)).first;
    }
    const std::string prefix = use.ranks == topology.num_ranks() ? "" : fmt::format("{}-ranks-", use.ranks);
    XCCL_RETURN_IF_ERROR(PlanUse(use, part->second, on_machine, least_gain, prefix, book));
    if (request.on_collective) request.on_collective(u + 1, uses.size());
  }
  if (book.rows.empty())
    return InvalidInput("the log has no call that a plan can serve" +
                        (book.warnings.empty() ? "" : ": " + book.warnings.back()));
  double all = 0;
  for (const LogRow& row : book.rows) all += row.share;
  for (LogRow& row : book.rows) row.share = all > 0 ? row.share / all : 0;
  std::ranges::stable_sort(book.rows, std::ranges::greater(), &LogRow::share);
  return book;
}

}  // namespace xccl::nccl
