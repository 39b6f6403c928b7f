#include "synth/groups/joint.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "ir/collective_json.h"
#include "ir/sizes.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// Returns kLimit if the joint tables would be too large. Their rows and contributions follow from the kinds.
Status CheckTables(const GroupRequest& request) {
  double rows = 0, contributions = 0;
  for (const ProcessGroup& group : request.groups) {
    const KindTraits& traits = TraitsOf(group.collective.kind());
    const double parts = group.collective.num_parts(), n = group.collective.num_members();
    const double before = traits.before == KindTraits::Holders::kAll ? n : 1;
    const double after = traits.after == KindTraits::Holders::kAll ? n : 1;
    rows += parts * (before + after);
    contributions += parts * (before + after * (group.collective.Reduces() ? n : 1));
  }
  if (rows <= static_cast<double>(kMostJointRows) && contributions <= static_cast<double>(kMostCells))
    return OkStatus();
  return LimitReached(
      fmt::format("{}: one plan of {} has tables of {:.0f} rows and {:.0f} contributions; at most 2^22 and "
                  "2^26; hint: without --output the groups are planned apart",
                  request.name, Counted(std::ssize(request.groups), "group"), rows, contributions));
}

// Adds the group's parts to `spec`, with the ranks that hold them before and after.
Status AddGroup(const ProcessGroup& group, CollectiveSpec& spec) {
  const Collective& collective = group.collective;
  const CollectiveSizes sizes(collective, group.size_bytes);
  if (sizes.size_bytes() == 0) {
    const bool is_empty =
        std::ranges::all_of(collective.spec().counts, [](int64_t count) { return count == 0; });
    return InvalidInput(fmt::format(
        "group {}: {} on {} moves nothing: {}", group.name, collective.name(),
        Counted(collective.num_members(), "rank"),
        is_empty && !collective.spec().counts.empty()
            ? "all counts are 0; expected one that is not"
            : fmt::format("{} bytes leave none for each part; expected a larger size", group.size_bytes)));
  }
  std::vector<Holding> holdings;
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    const PartId part(static_cast<int64_t>(spec.custom_weights.size()));
    spec.custom_weights.push_back(sizes.PartElements(PartId(p)));
    const ChunkId chunk = collective.FirstChunk(PartId(p));
    for (std::vector<TableEntry>* const table : {&spec.pre, &spec.post}) {
      table == &spec.pre ? collective.Before(chunk, holdings) : collective.After(chunk, holdings);
      for (const Holding& h : holdings)
        table->push_back({h.rank, part, {h.contributions.begin(), h.contributions.end()}});
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Joint> MakeJoint(const GroupRequest& request) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = request.name;
  std::vector<int32_t> first_part = {0};
  std::set<Rank> members;
  XCCL_RETURN_IF_ERROR(CheckTables(request));
  for (const ProcessGroup& group : request.groups) {
    XCCL_RETURN_IF_ERROR(AddGroup(group, spec));
    members.insert(group.collective.ranks().begin(), group.collective.ranks().end());
    first_part.push_back(static_cast<int32_t>(spec.custom_weights.size()));
  }
  spec.ranks.assign(members.begin(), members.end());
  int64_t divisor = 0;
  for (int64_t weight : spec.custom_weights) divisor = std::gcd(divisor, weight);
  for (int64_t& weight : spec.custom_weights) {
    weight /= divisor;
    if (weight > kMostWeight)
      return InvalidInput(
          fmt::format("{}: parts of more than 2^40 times the smallest unit; expected sizes of "
                      "fewer digits",
                      request.name));
  }
  XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
  int64_t fullest = 0;
  for (Rank r : collective.ranks()) {
    for (const std::vector<PartId>& buffer : {collective.InputParts(r), collective.OutputParts(r)}) {
      int64_t sum = 0;
      for (PartId p : buffer) sum += collective.spec().custom_weights[p.index()];
      fullest = std::max(fullest, sum);
    }
  }
  return Joint{std::move(collective), fullest * divisor * kDefaultElementBytes, std::move(first_part)};
}

MergedPlan Merge(const Joint& joint, const SymmetryGroup& translations,
                 const std::vector<MovedSchedule>& plans, StepOrder order, const std::vector<int32_t>& turn) {
  std::vector<std::vector<int64_t>> weights;
  int64_t transfers = 0, longest = 1;
  for (const auto& [plan, element] : plans) {
    const Collective& cut = plan->collective;
    for (int32_t p = 0; p < cut.num_parts(); ++p) {
      std::vector<int64_t>& part = weights.emplace_back();
      const int32_t first = cut.FirstChunk(PartId(p)).value;
      for (int32_t c = 0; c < cut.ChunksOf(PartId(p)); ++c) part.push_back(cut.Weight(ChunkId(first + c)));
    }
    transfers += plan->schedule.size();
    longest = std::max<int64_t>(longest, plan->schedule.num_steps());
  }
  std::vector<int64_t> begin(plans.size(), 0);
  int64_t before = 0;
  if (order == StepOrder::kInTurn) {
    for (int32_t g : turn) {
      begin[static_cast<size_t>(g)] = before;
      before += plans[static_cast<size_t>(g)].plan->schedule.num_steps();
    }
  }
  MergedPlan merged{joint.collective.WithWeights(weights), {}};
  merged.schedule.num_chunks = merged.collective.num_chunks();
  merged.schedule.Reserve(transfers);
  std::vector<PathId> path;
  std::vector<LinkId> links;
  for (size_t g = 0; g < plans.size(); ++g) {
    const int64_t element = plans[g].element;
    const Schedule& own = plans[g].plan->schedule;
    const int32_t first_chunk = merged.collective.FirstChunk(PartId(joint.first_part[g])).value;
    const int64_t steps = std::max<int64_t>(1, own.num_steps());
    path.clear();
    for (int32_t p = 0; p < own.paths.size(); ++p) {
      links.clear();
      for (LinkId l : own.paths[PathId(p)]) links.push_back(translations.Image(element, l));
      path.push_back(merged.schedule.paths.Intern(links));
    }
    for (int64_t t = 0; t < own.size(); ++t) {
      Transfer transfer = own.at(t);
      transfer.src = translations.Image(element, transfer.src);
      transfer.dst = translations.Image(element, transfer.dst);
      transfer.first = ChunkId(transfer.first.value + first_chunk);
      transfer.path = path[transfer.path.index()];
      const int64_t step = order == StepOrder::kStretched ? transfer.step * longest / steps : transfer.step;
      transfer.step = static_cast<int32_t>(begin[g] + step);
      merged.schedule.Add(transfer);
    }
  }
  Normalize(merged.schedule);
  return merged;
}

}  // namespace xccl
