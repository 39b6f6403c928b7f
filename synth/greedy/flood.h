// The matching of idle links and chunks along time: every rank wants every chunk that flows, and whenever a
// link is idle it is given a chunk that its head lacks, rare ones first. For allgather, broadcast and their
// reversals. Time-expanded as in TACOS (Won et al., 2024), with bit tables in the place of a scan of all
// needs.
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

// How one run chooses. Several policies are tried and the best result kept.
struct FloodPolicy {
  uint64_t seed = 0;
  int32_t samples = 8;              // candidates looked at to find a rare chunk; 1: any chunk
  int64_t batch_bytes = 0;          // a message takes more chunks while it stays within; always at least one
  bool one_entry_per_group = false;         // a chunk enters a group of well-joined ranks once
  bool defer_slow_links = false;             // a slow link leaves alone what a fast one will bring sooner
  bool random_idle = false;            // an idle link that is not the fastest into its head often waits a turn
  bool fine_groups = false;         // those groups are joined by the fastest links alone
  bool fast_first = false;          // a rank's fast links choose before its slow ones
  bool local_rarity = false;         // rare is what few ranks of the head's group have
  int64_t deadline_ps = INT64_MAX;  // give up when a chunk would arrive at this time or later
};

// Ranks to be served, each once.
class Marks {
 public:
  explicit Marks(int32_t ranks = 0) : is_marked_(static_cast<size_t>(ranks), 0) {}
  void Mark(int32_t rank) {
    if (!std::exchange(is_marked_[rank], 1)) ranks_.push_back(rank);
  }
  // Those marked, in random order; none is any more.
  std::vector<int32_t> Take(Random& random) {
    random.Shuffle(std::span(ranks_));
    for (int32_t rank : ranks_) is_marked_[rank] = 0;
    return std::exchange(ranks_, {});
  }

 private:
  std::vector<int32_t> ranks_;
  std::vector<char> is_marked_;
};

// Reusable state of runs over one problem. Not thread-safe.
class Flood {
 public:
  explicit Flood(const CopyProblem& problem);
  // True when every need was met before the deadline. Cost: linear in moves × (words of a row × links into a
  // rank), and for moves through switches × links that a switch has.
  // Given up as well once `most_work` was done: where many ranks search a large fabric again and again, a run
  // has no end.
  bool Run(const FloodPolicy& policy, int64_t most_work = INT64_MAX);

  // Are some ranks joined better to each other than to the rest?
  bool grouped() const { return grouped_; }

  // Of the last run.
  int64_t time_ps() const { return time_ps_; }
  const std::vector<GreedyMove>& moves() const { return moves_; }
  int64_t missing() const { return missing_; }  // chunks that ranks still lacked when the run was given up
  int64_t work() const { return work_; }        // words and links looked at
  // Where moves find their paths; it grows from run to run.
  const PathTable& paths() const { return paths_; }

 private:
  // Kinds of events, in the order in which those of one time are handled; in the high half of their code.
  // Beyond them: a message, by its number, arrives.
  enum Happens : uint64_t { kDestinationIdle, kSourceIdle, kFabricIdle, kArrival };
  // A node that the search has come to, over `link`.
  struct Visit {
    NodeId node;
    LinkId link;
    int32_t parent = -1;
    int64_t ready_ps = 0;     // when the message could go on
    int64_t duration_ps = 0;  // of the link that led here
  };
  struct PathTimes {
    int64_t arrival_ps = 0;
    std::vector<int64_t> start_ps, end_ps;  // of each link's occupation
  };
  struct Message {
    int32_t destination = 0;
    int32_t step = 0;
    int32_t first = 0, count = 0;  // of moves_
  };

  void Reset(const FloodPolicy& policy);
  std::vector<int32_t> GroupsJoinedAt(int64_t bytes_per_s) const;
  void BuildGroups();
  void Deliver(const Message& message);
  void ServeDestination(int32_t rank);
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
  int64_t common_bytes_ = -1;  // of every chunk where all are equal
  std::vector<int64_t> common_duration_ps_;
  std::vector<int32_t> head_rank_, tail_rank_;                         // of a link; -1: not a rank
  std::vector<std::vector<LinkId>> direct_in_, direct_out_, uplinks_;  // of a rank
  std::vector<char> slow_;      // links for which random_idle policies wait
  std::vector<int32_t> group_;  // of a rank, in this run
  std::vector<int32_t> coarse_group_, fine_group_;
  bool grouped_ = false;
  bool has_fabric_ = false;
  BitTable initial_, wants_;

  FloodPolicy policy_;
  Random random_{0};
  int64_t now_ps_ = 0, time_ps_ = 0, work_ = 0, missing_ = 0;
  bool failed_ = false;
  BitTable has_, has_or_coming_, group_has_;
  std::vector<int32_t> copies_;        // of a chunk, those coming included
  std::vector<int32_t> group_copies_;  // groups × chunks, likewise
  std::vector<int32_t> arrival_step_;  // ranks × chunks
  std::vector<int64_t> free_ps_;
  std::vector<int32_t> last_step_;
  std::vector<Message> messages_;
  std::vector<GreedyMove> moves_;
  EventQueue queue_;
  std::vector<Event> batch_;
  Marks destinations_, sources_;
  std::vector<char> starved_;  // ranks with an idle uplink and nothing to send
  std::vector<int32_t> rotation_;
  std::vector<uint64_t> scratch_;
  std::vector<int32_t> scratch_count_;
  // Links' own paths first, then those through switches; and the state of the search for them.
  PathTable paths_;
  std::vector<Visit> visits_;
  std::vector<int64_t> seen_at_;
  int64_t search_id_ = 0;
};

}  // namespace xccl::greedy
