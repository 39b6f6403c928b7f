// Proofs for all counts, by the structure of the plan:
//
// Exactly once. The ranks on a token's branches are those on the ways from the needed ranks up to its home.
// Where each rank has one parent and all ways end at the home (D2), every such rank is entered by one branch.
// With Entry::kNeeded the rank that enters a domain depends on the token, so all that may enter are taken:
// the parent of the domain's entry sends to each of them, and each of them to each other (D3, D7). With
// Entry::kNested each of them sends to those farther from the entry, in a smaller block than that in which it
// got the row itself, so that no rank gets it from two.
//
// Slots. With a slot for every row nobody waits (D5). Else the receiver of a message gives its slot back once
// all messages that it makes from it have slots. A hop waits for those that a row takes next. If the hops can
// be ordered so that each waits for later ones only, the last hop's slots come free, then those of the one
// before, and so on (Dally and Seitz 1987): no ring in the graph of waits (D6). On the way back all arrows
// turn around, which makes no ring.
#include "dispatch/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace xccl::dispatch {
namespace {

using Key = std::tuple<int32_t, int32_t, int32_t, int32_t>;  // lane, stage, from, to

std::string BranchName(const Key& key) {
  return fmt::format("lane {}, stage {}, rank {} to rank {}", std::get<0>(key), std::get<1>(key),
                     std::get<2>(key), std::get<3>(key));
}

class Verifier {
 public:
  explicit Verifier(const ExpertPlan& plan) : plan_(plan), ranks_(plan.sizes.ranks) {}

  std::vector<Fault> Run() {
    CheckCounts();
    if (!faults_.empty()) return faults_;
    CheckTrees();
    if (!faults_.empty()) return faults_;
    for (size_t h = 0; h < plan_.hops.size(); ++h) {
      const Hop& hop = plan_.hops[h];
      const Key key(hop.lane, hop.stage, hop.from.value, hop.to.value);
      if (!hops_.emplace(key, static_cast<int32_t>(h)).second)
        Add("D3", BranchName(key) + ": two hops; expected one");
      if (!InRange(hop))
        Add("D3", BranchName(key) + ": no such lane, stage or pair of ranks; expected those of a tree");
    }
    if (!faults_.empty()) return faults_;
    rows_.resize(plan_.hops.size());
    waits_.resize(plan_.hops.size());
    for (int32_t lane = 0; lane < plan_.lanes; ++lane)
      for (int32_t home = 0; home < ranks_; ++home) WalkTree(lane, home);
    WalkEntered();
    for (const Hop& hop : plan_.hops) CheckLinks(hop);
    CheckSlots();
    CheckRings();
    return faults_;
  }

 private:
  bool InRange(const Hop& hop) const {
    const auto is_rank = [&](Rank rank) { return rank.value >= 0 && rank.value < ranks_; };
    return hop.lane >= 0 && hop.lane < plan_.lanes && is_rank(hop.from) && is_rank(hop.to) &&
           hop.from != hop.to &&
           std::ranges::find(plan_.stage_of_depth, hop.stage) != plan_.stage_of_depth.end();
  }

  void Add(std::string_view rule, std::string text) {
    if (faults_.size() < kMostFaults) faults_.push_back({std::string(rule), std::move(text)});
  }

  void CheckCounts() {
    if (const Status fits = CheckSizes(plan_.sizes); !fits.ok()) Add("D1", fits.message());
    const auto expect = [&](bool right, const std::string& text) {
      if (!right) Add("D1", text);
    };
    expect(plan_.topology.num_ranks() == ranks_,
           fmt::format("{} ranks; the machine has {}", ranks_, plan_.topology.num_ranks()));
    expect(plan_.lanes >= 1, fmt::format("{} lanes; expected at least 1", plan_.lanes));
    expect(plan_.rows_per_message >= 1,
           fmt::format("{} rows in a message; expected at least 1", plan_.rows_per_message));
    expect(plan_.domains.size() == static_cast<size_t>(ranks_),
           fmt::format("domains of {} ranks; expected {}", plan_.domains.size(), ranks_));
    const auto trees = static_cast<size_t>(plan_.lanes) * ranks_ * ranks_;
    expect(plan_.parents.size() == trees,
           fmt::format("{} parents; expected {}", plan_.parents.size(), trees));
    expect(std::ranges::all_of(plan_.parents, [&](int32_t p) { return p >= 0 && p < ranks_; }),
           "a parent is no rank; expected ranks");
  }

  int32_t Parent(int32_t lane, int32_t home, int32_t rank) const {
    return plan_.parents[(static_cast<size_t>(lane) * ranks_ + home) * ranks_ + rank];
  }

  // Every rank's parents lead to the home within as many steps as there are ranks.
  void CheckTrees() {
    enum : uint8_t { kUnseen, kOnWay, kRooted };
    std::vector<uint8_t> state(ranks_);
    std::vector<int32_t> way;
    for (int32_t lane = 0; lane < plan_.lanes; ++lane)
      for (int32_t home = 0; home < ranks_; ++home) {
        const std::string place = fmt::format("lane {}, home {}", lane, home);
        if (Parent(lane, home, home) != home) {
          Add("D2", fmt::format("{}: the home hangs on rank {}; expected on itself", place,
                                Parent(lane, home, home)));
          continue;
        }
        std::ranges::fill(state, kUnseen);
        state[home] = kRooted;
        for (int32_t rank = 0; rank < ranks_; ++rank) {
          way.clear();
          int32_t at = rank;
          for (; state[at] == kUnseen; at = Parent(lane, home, at)) {
            state[at] = kOnWay;
            way.push_back(at);
          }
          if (state[at] == kOnWay) {
            Add("D2",
                fmt::format("{}: rank {} hangs on a ring of ranks; expected a way to the home", place, rank));
            break;
          }
          for (const int32_t passed : way) state[passed] = kRooted;
        }
      }
  }

  int32_t StageOf(int32_t depth) const {
    return depth < static_cast<int32_t>(plan_.stage_of_depth.size()) ? plan_.stage_of_depth[depth] : -1;
  }

  // The hop of a branch. Adds a fault and returns -1 where there is none.
  int32_t HopOf(int32_t lane, int32_t depth, int32_t from, int32_t to) {
    const Key key(lane, StageOf(depth), from, to);
    const auto found = hops_.find(key);
    if (found != hops_.end()) return found->second;
    Add("D3", BranchName(key) + ": no hop; expected one for the branch");
    return -1;
  }

  // Notes that a tree's rows may take the hop, behind another one (or none: -1).
  void Take(int32_t hop, int32_t before, int64_t rows) {
    if (hop < 0) return;
    rows_[hop] += rows;
    if (before >= 0) waits_[before].insert(hop);
  }

  void WalkTree(int32_t lane, int32_t home) {
    std::vector<std::vector<int32_t>> children(ranks_);
    for (int32_t rank = 0; rank < ranks_; ++rank)
      if (rank != home) children[Parent(lane, home, rank)].push_back(rank);
    // Every token of the lane may take every branch. Without sums on the way a branch carries a row for each
    // rank below it that a token may need.
    const int64_t tokens = (plan_.sizes.max_tokens - lane + plan_.lanes - 1) / plan_.lanes;
    const bool each = plan_.sums == Sums::kHome;
    std::vector<int64_t> below(ranks_, 1);
    std::vector<int32_t> order = {home}, depth(ranks_), hop(ranks_, -1);
    for (size_t i = 0; i < order.size(); ++i)
      for (const int32_t child : children[order[i]]) {
        depth[child] = depth[order[i]] + 1;
        order.push_back(child);
      }
    for (size_t i = order.size(); i-- > 1;) below[Parent(lane, home, order[i])] += below[order[i]];
    const auto rows = [&](int64_t ranks_below) {
      return each ? tokens * std::min<int64_t>(ranks_below, plan_.sizes.top_k) : tokens;
    };
    for (size_t i = 1; i < order.size(); ++i) {
      const int32_t rank = order[i], parent = Parent(lane, home, rank);
      const bool by_need = plan_.entry == Entry::kNested ||
                           (plan_.entry == Entry::kNeeded && plan_.domains[rank] != plan_.domains[home]);
      if (by_need) continue;
      hop[rank] = HopOf(lane, depth[parent], parent, rank);
      Take(hop[rank], hop[parent], rows(below[rank]));
    }
    if (plan_.entry != Entry::kFixed) WalkNeeded(lane, home, depth, hop, rows);
    if (plan_.entry != Entry::kNested) return;
    std::vector<int32_t> own;
    for (int32_t rank = 0; rank < ranks_; ++rank)
      if (plan_.domains[rank] == plan_.domains[home]) own.push_back(rank);
    WalkInside(lane, home, own, true, rows);
  }

  // The branches inside a domain: by rank, how it may have got the row.
  template <typename Rows>
  void WalkInside(int32_t lane, int32_t entry, std::vector<int32_t> ranks, bool is_home, Rows rows) {
    struct Got {
      int32_t depth, block, hop;  // the smallest block with its sender, as a power of two
      auto operator<=>(const Got&) const = default;
    };
    std::ranges::sort(ranks, {}, [&](int32_t rank) { return rank ^ entry; });
    std::vector<std::set<Got>> got(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i)
      if (!is_home || i == 0) got[i].insert({is_home ? 0 : 1, 33, -1});
    std::set<int32_t> taken;
    for (size_t i = 0; i < ranks.size(); ++i)
      for (const auto [depth, larger, before] : got[i])
        for (size_t j = i + 1; j < ranks.size(); ++j) {
          int32_t block = 0;
          for (int32_t apart = ranks[i] ^ ranks[j]; apart != 0; apart /= 2) ++block;
          if (block >= larger) continue;
          const int32_t next = HopOf(lane, depth, ranks[i], ranks[j]);
          Take(next, before, taken.insert(next).second ? rows(static_cast<int64_t>(ranks.size())) : 0);
          got[j].insert({depth + 1, block, next});
        }
  }

  template <typename Rows>
  void WalkNeeded(int32_t lane, int32_t home, const std::vector<int32_t>& depth,
                  const std::vector<int32_t>& hop, Rows rows) {
    std::map<int32_t, std::vector<int32_t>> members, entries;  // by domain
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      if (plan_.domains[rank] == plan_.domains[home]) continue;
      members[plan_.domains[rank]].push_back(rank);
      if (plan_.domains[Parent(lane, home, rank)] != plan_.domains[rank])
        entries[plan_.domains[rank]].push_back(rank);
    }
    for (const auto& [domain, ranks] : members) {
      const std::vector<int32_t>& of_domain = entries[domain];
      const int32_t sender = of_domain.empty() ? -1 : Parent(lane, home, of_domain[0]);
      const bool nested = plan_.entry == Entry::kNested;
      if (of_domain.size() == 1 && nested && sender != home) {
        Add("D7", fmt::format("lane {}, home {}: domain {} is entered from rank {}; expected from the home",
                              lane, home, domain, sender));
        continue;
      }
      if (of_domain.size() != 1 || plan_.domains[sender] != plan_.domains[home]) {
        Add("D7",
            fmt::format(
                "lane {}, home {}: domain {} is entered {}; expected once, from the home's domain", lane,
                home, domain,
                of_domain.size() == 1 ? "from another one" : fmt::format("by {} ranks", of_domain.size())));
        continue;
      }
      for (const int32_t first : ranks) {
        const int32_t in = HopOf(lane, depth[sender], sender, first);
        Take(in, hop[sender], rows(static_cast<int64_t>(ranks.size())));
        const auto goes_on = [&](int32_t to) {
          return nested ? (to ^ of_domain[0]) > (first ^ of_domain[0]) : to != first;
        };
        for (const int32_t to : ranks)
          if (goes_on(to)) Take(HopOf(lane, depth[sender] + 1, first, to), in, nested ? 0 : rows(1));
      }
      if (nested) ++trees_inside_[{lane, of_domain[0]}];
    }
  }

  // Entry::kNested: rows of all homes that enter a domain by the same rank take the same ways inside.
  void WalkEntered() {
    for (const auto& [key, trees] : trees_inside_) {
      const auto [lane, entry] = key;
      std::vector<int32_t> ranks;
      for (int32_t rank = 0; rank < ranks_; ++rank)
        if (plan_.domains[rank] == plan_.domains[entry]) ranks.push_back(rank);
      const int64_t tokens = (plan_.sizes.max_tokens - lane + plan_.lanes - 1) / plan_.lanes;
      const int64_t most = plan_.sums == Sums::kHome ? plan_.sizes.top_k : 1;
      WalkInside(lane, entry, ranks, false,
                 [&, homes = trees](int64_t below) { return homes * tokens * std::min(below, most); });
    }
  }

  bool Joins(const std::vector<LinkId>& links, Rank from, Rank to) const {
    NodeId at = plan_.topology.NodeOf(from);
    for (size_t i = 0; i < links.size(); ++i) {
      if (links[i].value < 0 || links[i].value >= plan_.topology.num_links()) return false;
      const Link& link = plan_.topology.link(links[i]);
      if (link.from != at || (i > 0 && plan_.topology.IsGpu(at))) return false;
      at = link.to;
    }
    return at == plan_.topology.NodeOf(to);
  }

  void CheckLinks(const Hop& hop) {
    const Key key(hop.lane, hop.stage, hop.from.value, hop.to.value);
    if (!Joins(hop.links, hop.from, hop.to))
      Add("D4", BranchName(key) + ": its links do not join them; expected a path through no other GPU");
    if (!Joins(hop.back, hop.to, hop.from))
      Add("D4", BranchName(key) + ": its links back do not join them; expected a path through no other GPU");
  }

  void CheckSlots() {
    for (size_t h = 0; h < plan_.hops.size(); ++h) {
      const Hop& hop = plan_.hops[h];
      const int64_t all = (rows_[h] + plan_.rows_per_message - 1) / plan_.rows_per_message;
      const int64_t least = plan_.aim == Aim::kLatency ? all : std::min<int64_t>(all, 1);
      if (hop.slots < least)
        Add("D5", fmt::format("{}: {} slots of {} rows for up to {} rows; expected at least {} slots",
                              BranchName({hop.lane, hop.stage, hop.from.value, hop.to.value}), hop.slots,
                              plan_.rows_per_message, rows_[h], least));
    }
  }

  // Takes hops that wait for none that is left, until none is left, or only rings and what waits for them.
  void CheckRings() {
    if (plan_.aim == Aim::kLatency) return;  // nobody waits
    std::vector<int32_t> waits(plan_.hops.size());
    std::vector<std::vector<int32_t>> waited_by(plan_.hops.size());
    std::vector<int32_t> free;
    for (size_t h = 0; h < waits.size(); ++h) {
      waits[h] = static_cast<int32_t>(waits_[h].size());
      for (const int32_t next : waits_[h]) waited_by[next].push_back(static_cast<int32_t>(h));
      if (waits[h] == 0) free.push_back(static_cast<int32_t>(h));
    }
    for (size_t i = 0; i < free.size(); ++i)
      for (const int32_t before : waited_by[free[i]])
        if (--waits[before] == 0) free.push_back(before);
    if (free.size() == waits.size()) return;
    const size_t h = std::ranges::find_if(waits, [](int32_t n) { return n > 0; }) - waits.begin();
    const Hop& hop = plan_.hops[h];
    Add("D6", fmt::format("{}: its slots wait for a ring of hops; expected stages that part them",
                          BranchName({hop.lane, hop.stage, hop.from.value, hop.to.value})));
  }

  const ExpertPlan& plan_;
  const int32_t ranks_;
  std::map<Key, int32_t> hops_;
  std::vector<int64_t> rows_;                                    // by hop: the most that it may carry
  std::vector<std::set<int32_t>> waits_;                         // by hop: those that a row takes next
  std::map<std::pair<int32_t, int32_t>, int64_t> trees_inside_;  // kNested: trees by lane and entry
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> VerifyExpertPlan(const ExpertPlan& plan) { return Verifier(plan).Run(); }

StatusOr<ExpertPlan> ReadExpertPlan(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(ExpertPlan plan, ReadExpertPlanUnverified(path));
  const std::vector<Fault> faults = VerifyExpertPlan(plan);
  if (!faults.empty())
    return InvalidInput(fmt::format("{}: [{}] {}", path, faults.front().rule, faults.front().text));
  return plan;
}

}  // namespace xccl::dispatch
