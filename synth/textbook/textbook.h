// The textbook algorithms' common frame. An algorithm, placed on a machine, is a Recipe: how it gathers,
// broadcasts or exchanges chunks. Everything else follows: a reduction is the same on the machine turned
// round, played backwards (synth/common/reverse.h), an allreduce is a reduction and its gather.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "synth/common/moves.h"
#include "synth/common/rank_graph.h"
#include "synth/common/serves.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Alpha-beta: fixed_ps + ps_per_byte × size, where size is nccl-tests' (ir/sizes.h).
struct Cost {
  double fixed_ps = 0;
  double ps_per_byte = 0;
  double Ps(const SynthesisRequest& request) const;  // a barrier moves no bytes
};

using Blocks = std::vector<ChunkRange>;  // by member: what it has, or shall have, of the whole
// The whole in equal pieces, one for each of these of n members, or, where none are named, for all.
Blocks EqualBlocks(ChunkRange whole, int32_t n, std::span<const int32_t> owners = {});

// What a collective asks of a recipe, before any reversal.
enum class Base : uint8_t { kAllgather, kBroadcast, kGather, kAlltoall, kSendrecv, kAllreduce };
// An allreduce counts as its allgather.
Base BaseOf(CollectiveKind kind);

// The chunks of each (source member, destination member).
struct Pairs {
  const Collective* collective = nullptr;
  ChunkRange Of(int32_t source, int32_t destination) const;
};

// An algorithm placed on a machine for one request. It does not do what is unset. Functions add copies only,
// but for allreduce; steps start at 0.
struct Recipe {
  int32_t pieces = 1;  // that each block, or the whole of a broadcast or allreduce, is best cut into
  Rank root;           // for allreduce by trees: where they meet
  std::function<void(const Blocks&, Moves&)> allgather;
  std::function<void(Rank root, ChunkRange, Moves&)> broadcast;
  std::function<void(Rank root, const Blocks&, Moves&)> gather;
  std::function<void(const Pairs&, Moves&)> alltoall;
  std::function<void(const Collective&, Moves&)> sendrecv;
  std::function<void(ChunkRange, Moves&)> allreduce;
  std::vector<int32_t> allreduce_owners;  // members that own a block of an allreduce by allgather; empty: all
  bool repeats = false;                   // may give a rank what it has
  bool pipelines = false;                 // steps overlap: what counts is a link's load in all of them
  std::optional<Cost> cost;               // of what the request asks for; absent: measured on the moves
  double alltoall_hops = 1;               // times that a chunk is moved
  // For allreduce, where it is faster than `allgather` forwards and backwards: all exchange their sums.
  struct Exchange {
    Cost cost;
    std::function<void(ChunkRange, Moves&)> allreduce;
  };
  std::optional<Exchange> exchange;
};

// The graph is turned round for reductions. Requires: all members are joined. Errors: kInvalidInput "NAME:
// why; hint: ...".
using PlaceFunction = StatusOr<Recipe>(const RankGraph& graph, const SynthesisRequest& request);

struct TextbookEngine {
  std::string_view name;
  EngineFamily family = EngineFamily::kTrees;
  std::string_view summary;
  std::vector<CollectiveKind> kinds;
  PlaceFunction* place = nullptr;
};

// An engine placed for a request: estimate it, then perhaps make its schedule.
class PlacedEngine {
 public:
  // Errors: those of Serves and place. `graphs` and what `request` points to must outlive the result.
  static StatusOr<PlacedEngine> Place(const TextbookEngine& engine, RankGraphs& graphs,
                                      const SynthesisRequest& request);
  double EstimatePs() const;
  // Chunks that the schedule moves, each counted once a hop; saturates.
  int64_t Work() const;
  StatusOr<Synthesis> Make() const;

 private:
  PlacedEngine() = default;
  int32_t Chunks() const;
  StatusOr<Schedule> Gather(const RankGraph& graph, const Recipe& recipe, const Collective& cut) const;
  void AddMoves(const Recipe& recipe, const Collective& cut, Moves& moves) const;
  Cost BaseCost(const RankGraph& graph, const Recipe& recipe) const;

  const TextbookEngine* engine_ = nullptr;
  const SynthesisRequest* request_ = nullptr;
  const RankGraph* forward_ = nullptr;
  const RankGraph* reversed_ = nullptr;
  std::optional<Recipe> recipe_, reversed_recipe_;  // those that the collective's kind asks for
};

// `engine` must outlive the row.
Engine RowOf(const TextbookEngine& engine);

// Time of moves of chunks of size × `fraction` each, step after step: the latency of the longest path and the
// load of the busiest link, in every step, or, where they overlap, in all. Where a model is given, a message
// also occupies its links for their overhead, and in the blocking model for their latency.
Cost MeasureMoves(const Moves& moves, const RankGraph& graph, double fraction, bool overlap = false,
                  std::optional<TimeModel> messages = {});

}  // namespace xccl
