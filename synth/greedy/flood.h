// The flood search: whenever a link is idle, it carries a chunk that the rank at its head lacks, rare chunks
// first. Suits problems in which most ranks need most chunks: allgather, broadcast, and their reversals. The
// method is that of TACOS (Won et al., 2024), with bit tables in place of a scan of all needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "ir/schedule.h"
#include "ir/simulate/event_queue.h"
#include "synth/common/bit_table.h"
#include "synth/common/problem.h"
#include "synth/greedy/greedy_move.h"

namespace xccl::greedy {

// The rules by which one run chooses links and chunks. A group is a set of ranks that faster links join.
struct FloodPolicy {
  uint64_t seed = 0;
  int32_t samples = 8;               // chooses the rarest of this number of candidates; 1: any
  int64_t batch_bytes = 0;           // largest message of several chunks; 0: one chunk a message
  bool one_entry_per_group = false;  // a chunk enters each group at most once
  bool defer_slow_links = false;     // a direct link takes no chunk that another one would bring sooner
  bool fine_groups = false;          // only the fastest links join groups
  bool fast_first = false;           // a rank's fast links choose before its slow links
  bool local_rarity = false;         // rarity is counted in the receiver's group
  int64_t deadline_ps = INT64_MAX;   // no chunk is sent that would arrive at this time or later
};

// The set of ranks whose links are to be served next.
class Marks {
 public:
  explicit Marks(int32_t ranks = 0) : is_marked_(static_cast<size_t>(ranks), 0) {}
  void Mark(int32_t rank) {
    if (!std::exchange(is_marked_[rank], 1)) ranks_.push_back(rank);
  }
  // Returns the marked ranks in random order, and unmarks them.
  std::vector<int32_t> Take(Random& random) {
    random.Shuffle(std::span(ranks_));
    for (int32_t rank : ranks_) is_marked_[rank] = 0;
    return std::exchange(ranks_, {});
  }

 private:
  std::vector<int32_t> ranks_;
  std::vector<char> is_marked_;
};

// Runs floods over one problem and reuses their memory. Not thread-safe.
class Flood {
 public:
  explicit Flood(const CopyProblem& problem);
  // Returns true if every need is met before the policy's deadline, and false otherwise. Gives up after
  // `most_work` units of work (see work()), because ranks that search a large fabric again and again take
  // very long. Cost: moves × (words of a row × links into a rank); for moves through switches, × links of a
  // switch.
  bool Run(const FloodPolicy& policy, int64_t most_work = INT64_MAX);

  // The results of the last run.
  int64_t time_ps() const { return time_ps_; }
  const std::vector<GreedyMove>& moves() const { return moves_; }
  int64_t work() const { return work_; }  // table words and links that the run looked at
  // The paths of the moves. The table grows from run to run.
  const PathTable& paths() const { return paths_; }

 private:
  // Kinds of events. The kind is the high half of an event's code. Events of one time are handled in this
  // order. Code kArrival + i means that message i arrives.
  enum Happens : uint64_t { kDestinationIdle, kSourceIdle, kFabricIdle, kArrival };
  // A node that a search through switches, NICs and CPUs has reached over `link`.
  struct Visit {
    NodeId node;
    LinkId link;
    int32_t parent = -1;
    int64_t ready_ps = 0;     // earliest time at which the message can leave the node
    int64_t duration_ps = 0;  // time for which the message occupies `link`
  };
  struct PathTimes {
    int64_t arrival_ps = 0;
    std::vector<int64_t> start_ps, end_ps;  // by link: when the message starts and ends
  };
  struct Message {
    int32_t destination = 0;
    int32_t step = 0;
    int32_t first = 0, count = 0;  // the moves of the message in moves_
  };

  void Reset(const FloodPolicy& policy);
  std::vector<int32_t> GroupsJoinedAt(int64_t bytes_per_s) const;
  void BuildGroups();
  void Deliver(const Message& message);
  // A direct link into the rank that is being served, and the chunks that the link will carry.
  struct LinkOffer {
    LinkId link;
    int32_t count = 0;  // candidates left in the link's row of scratch_
    std::vector<int32_t> picked = {};
    int64_t bytes = 0;
    bool closed = false;
  };
  uint64_t* Row(size_t offer) { return scratch_.data() + offer * static_cast<size_t>(words_); }
  void ServeDestination(int32_t rank);
  std::vector<LinkOffer> OffersTo(int32_t rank);
  bool Pick(std::vector<LinkOffer>& offers, size_t i, int32_t rank);
  void ServeSource(int32_t rank);
  bool SearchFabric(int32_t rank, LinkId uplink, std::optional<bool> crosses);
  bool SendThrough(int32_t rank, int32_t destination, int32_t last_visit, LinkId last, bool crosses);
  int32_t FillCandidates(int32_t source, int32_t destination, bool crosses, uint64_t* row);
  int32_t Choose(const uint64_t* row, int32_t count, int32_t destination);
  void CountCopy(int32_t chunk, int32_t destination);
  bool ComesSoonerElsewhere(LinkId link, int32_t chunk, int64_t arrival_ps);
  void Send(std::span<const LinkId> links, std::span<const int32_t> chunks, int64_t bytes);
  void Push(int64_t at_ps, uint64_t happens, int32_t rank = 0) {
    queue_.Push(at_ps, happens << 32 | static_cast<uint64_t>(rank));
  }
  void Handle(uint64_t event);
  PathTimes Times(std::span<const LinkId> links, int64_t bytes) const;
  int64_t Duration(LinkId link, int64_t bytes) const;

  const CopyProblem& problem_;
  const Topology& topology_;
  int32_t ranks_, words_;
  std::vector<LinkCost> costs_;
  int64_t common_bytes_ = -1;  // the size of every chunk if all are equal, else -1
  std::vector<int64_t> common_duration_ps_;
  std::vector<int32_t> head_rank_, tail_rank_;                         // by link; -1: no rank
  std::vector<std::vector<LinkId>> direct_in_, direct_out_, uplinks_;  // by rank
  std::vector<int32_t> group_;                                         // by rank, of this run
  std::vector<int32_t> coarse_group_, fine_group_;
  BitTable initial_, wants_;

  FloodPolicy policy_;
  Random random_{0};
  int64_t now_ps_ = 0, time_ps_ = 0, work_ = 0, missing_ = 0;
  BitTable has_, has_or_coming_, group_has_;
  std::vector<int32_t> copies_;  // by chunk: ranks that have the chunk or are being sent it
  // By (group, chunk): ranks of the group that have the chunk or are being sent it.
  std::vector<int32_t> group_copies_;
  // By rank × chunk: step of the message that brings the chunk; -1 if the rank had it or still lacks it.
  std::vector<int32_t> arrival_step_;
  std::vector<int64_t> free_ps_;
  std::vector<int32_t> last_step_;
  std::vector<Message> messages_;
  std::vector<GreedyMove> moves_;
  EventQueue queue_;
  std::vector<Event> batch_;
  Marks destinations_, sources_;
  std::vector<char> starved_;      // by rank: could send nothing over an idle uplink
  std::vector<int32_t> rotation_;  // by link: where the next search behind the link goes on; -1: none yet
  std::vector<uint64_t> scratch_;
  // paths_ lists single links first, then paths through switches. visits_ is the search for a switch path.
  PathTable paths_;
  std::vector<Visit> visits_;
  std::vector<int64_t> seen_at_;
  int64_t search_id_ = 0;
};

}  // namespace xccl::greedy
