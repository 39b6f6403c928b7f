#include "synth/common/members_alone.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/translated.h"
#include "synth/common/cost_model.h"

namespace xccl {

Collective RestrictTo(const Collective& whole, const Submachine& alone) {
  CollectiveSpec spec = whole.spec();
  const auto renumber = [&](Rank& r) {
    r = Rank(std::ranges::lower_bound(alone.rank, r) - alone.rank.begin());
  };
  for (Rank& r : spec.ranks) renumber(r);
  if (spec.root) renumber(*spec.root);
  for (auto& [from, to] : spec.pairs) {
    renumber(from);
    renumber(to);
  }
  for (std::vector<TableEntry>* const table : {&spec.pre, &spec.post}) {
    for (TableEntry& entry : *table) {
      renumber(entry.rank);
      for (Rank& r : entry.contributions) renumber(r);  // the list stays sorted
    }
  }
  return Collective::Create(std::move(spec)).value();
}

StatusOr<Synthesis> OnWholeMachine(Synthesis made, const Submachine& alone, const Collective& whole) {
  XCCL_ASSIGN_OR_RETURN(const Schedule plain,
                        Expand(made.schedule, made.collective, alone.topology, kMostTransfers));
  std::vector<std::vector<int64_t>> weights(static_cast<size_t>(whole.num_parts()));
  for (int32_t c = 0; c < made.collective.num_chunks(); ++c)
    weights[made.collective.PartOf(ChunkId(c)).index()].push_back(made.collective.Weight(ChunkId(c)));
  made.collective = whole.WithWeights(weights);

  made.schedule = Renumber(
      plain, [&](Rank r) { return alone.rank[r.index()]; }, [&](LinkId l) { return alone.link[l.index()]; });
  return made;
}

Schedule Renumber(const Schedule& plain, const std::function<Rank(Rank)>& rank,
                  const std::function<LinkId(LinkId)>& link) {
  Schedule schedule;
  schedule.num_chunks = plain.num_chunks;
  schedule.Reserve(plain.size());
  std::vector<PathId> path;  // by path of `plain`: its new id
  std::vector<LinkId> links;
  for (int32_t p = 0; p < plain.paths.size(); ++p) {
    links.clear();
    for (LinkId l : plain.paths[PathId(p)]) links.push_back(link(l));
    path.push_back(schedule.paths.Intern(links));
  }
  for (int64_t t = 0; t < plain.size(); ++t) {
    Transfer transfer = plain.at(t);
    transfer.src = rank(transfer.src);
    transfer.dst = rank(transfer.dst);
    transfer.path = path[transfer.path.index()];
    schedule.Add(transfer);
  }
  return schedule;
}

}  // namespace xccl
