// A threadblock's atoms are written one after the other, with a nop wherever its threads must have met:
// before an op that follows a wait or touches the data of an earlier op, and before a signal. Waits and
// signals are made by single threads, so no nop is needed between them. A threadblock of too many ops is cut
// into parts at atoms.
#include "interchange/mscclpp/blocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace xccl::mscclpp {
namespace {

// Ops beside the atoms': a pipeline, a signal and a wait before it, a wait for the part before, and after the
// atoms a nop and a release for the part behind, and a nop, a signal and a wait where ports need them.
constexpr int32_t kOpsAround = 9;

int32_t CountOf(const std::vector<Op>& ops) {
  auto count = static_cast<int32_t>(ops.size());
  for (const Op& op : ops) count += static_cast<int32_t>(op.ops.size());
  return count;
}

bool Overlap(const Piece& a, const Piece& b) {
  return a.where == Piece::Where::kLocal && b.where == Piece::Where::kLocal && a.buffer == b.buffer &&
         a.index < b.index + b.size && b.index < a.index + a.size;
}

// The ops of a threadblock as they grow.
class Ops {
 public:
  std::vector<Op> all;

  void Meet() {
    if (!waited_ && since_.empty()) return;
    all.push_back({});
    waited_ = false;
    since_.clear();
  }
  // In place, input and output may share memory. Only the caller's pointers tell which part, so any two
  // pieces of them count as one place.
  void Data(Op op, bool in_place) {
    const auto alike = [&](Piece piece) {
      if (in_place && piece.buffer == BufferKind::kInput) piece.buffer = BufferKind::kOutput;
      if (in_place && piece.buffer == BufferKind::kOutput) piece.index = 0, piece.size = kMostBytes;
      return piece;
    };
    bool conflicts = false;
    for (const auto& [piece, written] : since_) {
      for (const Piece& dst : op.dst) conflicts |= Overlap(alike(dst), alike(piece));
      for (const Piece& src : op.src) conflicts |= written && Overlap(alike(src), alike(piece));
    }
    if (waited_ || conflicts) Meet();
    for (const Piece& src : op.src) since_.emplace_back(src, false);
    for (const Piece& dst : op.dst) since_.emplace_back(dst, true);
    all.push_back(std::move(op));
  }
  void Wait(Op op) {
    all.push_back(std::move(op));
    waited_ = true;
  }
  void Signal(Op op) {
    Meet();
    all.push_back(std::move(op));
  }
  // The rest stands in a pipeline: as many passes as a piece has units.
  std::vector<Op> TakeAll() { return std::exchange(all, {}); }

 private:
  bool waited_ = false;
  std::vector<std::pair<Piece, bool>> since_;  // pieces that ops used since threads met; true: they write it
};

class Assembler {
 public:
  Assembler(const Program& program, const Collective& collective, const Cut& cut, const BlockOptions& options)
      : cut_(cut), options_(options), atoms_(program, collective, cut, options), index_(atoms_.index()) {}

  StatusOr<std::vector<Gpu>> Make() {
    XCCL_RETURN_IF_ERROR(atoms_.CheckGroups());
    XCCL_RETURN_IF_ERROR(atoms_.CheckSpans());
    NumberLanes();
    CutIntoParts();
    NumberLanes();
    std::vector<Gpu>& gpus = atoms_.gpus();
    for (int32_t block = 0; block < index_.num_blocks(); ++block)
      for (int32_t copy = 0; copy < cut_.copies(); ++copy)
        for (int32_t part = 0; part < PartsOf(block); ++part) {
          Block made = MakePart(block, copy, part);
          if (made.ops.empty()) continue;
          std::vector<Block>& blocks = gpus[index_.BlockRank(block).index()].blocks;
          if (part > 0) made.continues = static_cast<int32_t>(blocks.size()) - 1;
          made.links = atoms_.LinksOf(block, true);
          made.recv_links = atoms_.LinksOf(block, false);
          blocks.push_back(std::move(made));
        }
    for (size_t r = 0; r < gpus.size(); ++r) {
      gpus[r].input = cut_.NominalInput();
      gpus[r].output = cut_.NominalOutput();
      gpus[r].scratch = atoms_.places().ScratchOf(Rank(static_cast<int64_t>(r)));
    }
    if (options_.packets) {
      // Senders find the second half of a peer's scratch by the size of their own.
      int64_t most = 0;
      for (const Gpu& gpu : gpus) most = std::max(most, gpu.scratch);
      for (Gpu& gpu : gpus) gpu.scratch = most;
    }
    return std::move(gpus);
  }

 private:
  int32_t LastOf(int32_t block) const {
    return index_.BlockFirst(block) + static_cast<int32_t>(index_.threadblock(block).instructions.size()) - 1;
  }
  int32_t PartsOf(int32_t block) const {
    return LastOf(block) < index_.BlockFirst(block) ? 0 : atoms_.part(LastOf(block)) + 1;
  }

  // Both ends of a lane list their channels in one order, by which the executor pairs them.
  void NumberLanes() {
    std::set<Lane> lanes;
    for (int32_t node = 0; node < index_.size(); ++node)
      for (const int32_t connection : atoms_.SendsTo(node))
        for (int32_t copy = 0; copy < cut_.copies(); ++copy)
          lanes.insert(atoms_.LaneOfSend(node, connection, copy));
    channels_.assign(atoms_.gpus().size(), {});
    for (Gpu& gpu : atoms_.gpus()) gpu.peers = {};
    for (const Lane& lane : lanes) {
      const Connection& c = atoms_.ConnectionAt(lane.connection);
      const auto type = static_cast<size_t>(atoms_.TypeOfConnection(lane.connection));
      for (const auto& [r, peer] : {std::pair(c.src, c.dst), std::pair(c.dst, c.src)}) {
        std::vector<int32_t>& peers = atoms_.gpus()[r.index()].peers[type];
        channels_[r.index()][lane] = static_cast<int32_t>(peers.size());
        peers.push_back(peer.value);
      }
    }
  }

  void CutIntoParts() {
    std::vector<int32_t> parts(static_cast<size_t>(index_.size()), 0);
    for (int32_t block = 0; block < index_.num_blocks(); ++block) {
      if (PartsOf(block) == 0 || CountOf(MakePart(block, 0, 0).ops) <= kMostOps) continue;
      int32_t part = 0, used = 0;
      for (int32_t node = index_.BlockFirst(block); node <= LastOf(block); ++node) {
        Ops alone;
        alone.Wait({});  // as if threads had not met
        AddAtom(atoms_.MakeAtom(node, IsAlone(block) ? kAllCopies : 0), alone);
        const auto cost = static_cast<int32_t>(alone.all.size()) - 1;
        if (used > 0 && used + cost > kMostOps - kOpsAround) {
          ++part;
          used = 0;
        }
        used += cost;
        parts[static_cast<size_t>(node)] = part;
      }
    }
    atoms_.SetParts(std::move(parts));
  }

  template <typename Lanes>
  std::vector<Op> SyncOps(OpName name, const Lanes& lanes) const {
    std::vector<Op> ops;
    for (const ChannelType type : {ChannelType::kMemory, ChannelType::kPort}) {
      Op op{.name = name, .type = type};
      for (const Lane& lane : lanes) {
        if (atoms_.TypeOfConnection(lane.connection) != type) continue;
        if (std::ssize(op.channels) == kMostChannelsOfOp)
          ops.push_back(std::exchange(op, {.name = name, .type = type}));
        op.channels.push_back(ChannelOf(lane));
      }
      if (!op.channels.empty()) ops.push_back(std::move(op));
    }
    return ops;
  }
  static std::vector<Op> SemaphoreOps(OpName name, const std::vector<int32_t>& semaphores) {
    std::vector<Op> ops;
    for (size_t s = 0; s < semaphores.size(); ++s) {
      if (s % kMostSemaphoresOfOp == 0) ops.push_back({.name = name});
      ops.back().semaphores.push_back(semaphores[s]);
    }
    return ops;
  }

  void AddAtom(const Atom& atom, Ops& ops) {
    for (Op& op : SemaphoreOps(OpName::kSemAcquire, atom.acquires)) ops.Wait(std::move(op));
    for (Op& op : SyncOps(OpName::kWait, atom.waits)) ops.Wait(std::move(op));
    for (const AtomOp& part : atom.ops) {
      Op op = part.op;
      if (part.lane)
        op.channels.assign(op.name == OpName::kPut || op.name == OpName::kPws || op.name == OpName::kPpkt
                               ? op.dst.size()
                               : 1,
                           ChannelOf(*part.lane));
      ops.Data(std::move(op), options_.in_place);
    }
    for (Op& op : SyncOps(OpName::kSignal, atom.signals)) ops.Signal(std::move(op));
    for (Op& op : SemaphoreOps(OpName::kSemRelease, atom.releases)) ops.Signal(std::move(op));
  }

  // Local work that nothing waits for needs neither instances nor segments.
  bool IsAlone(int32_t block) const {
    for (int32_t node = index_.BlockFirst(block); node <= LastOf(block); ++node)
      if (!atoms_.SendsTo(node).empty() || !atoms_.ReceivesFrom(node).empty() || atoms_.HasWaits(node))
        return false;
    return true;
  }

  Block MakePart(int32_t block, int32_t copy, int32_t part) {
    rank_ = index_.BlockRank(block).index();
    const bool alone = IsAlone(block);
    if (alone && copy > 0) return {};
    const bool pipelined = options_.pipeline_bytes > 0 && !alone;
    std::set<Lane> in, out, ports_in, ports_out;
    Ops body;
    std::vector<Atom> atoms;
    for (int32_t node = index_.BlockFirst(block); node <= LastOf(block); ++node) {
      if (atoms_.part(node) != part) continue;
      for (const int32_t c : atoms_.ReceivesFrom(node)) {
        if (atoms_.HasReady(c)) in.insert(atoms_.LaneOfReceive(node, c, copy));
        if (atoms_.TypeOfConnection(c) == ChannelType::kPort)
          ports_in.insert(atoms_.LaneOfReceive(node, c, copy));
      }
      for (const int32_t c : atoms_.SendsTo(node)) {
        if (atoms_.HasReady(c)) out.insert(atoms_.LaneOfSend(node, c, copy));
        if (atoms_.TypeOfConnection(c) == ChannelType::kPort)
          ports_out.insert(atoms_.LaneOfSend(node, c, copy));
      }
      atoms.push_back(atoms_.MakeAtom(node, alone ? kAllCopies : copy));
    }
    Ops ops;
    for (Op& op : SyncOps(OpName::kSignal, in)) ops.Signal(std::move(op));
    for (Op& op : SyncOps(OpName::kWait, out)) ops.Wait(std::move(op));
    std::vector<Op> before;
    if (pipelined) before = ops.TakeAll();
    const auto chain = [&](int32_t from) {
      return std::vector<int32_t>{atoms_.SemaphoreOf(block, from, block, from + 1, copy)};
    };
    if (part > 0)
      for (Op& op : SemaphoreOps(OpName::kSemAcquire, chain(part - 1))) ops.Wait(std::move(op));
    for (const Atom& atom : atoms) AddAtom(atom, ops);
    if (part + 1 < PartsOf(block))
      for (Op& op : SemaphoreOps(OpName::kSemRelease, chain(part))) ops.Signal(std::move(op));
    if (pipelined && !ops.all.empty()) {
      Op pipeline{
          .name = OpName::kPipeline, .unit_bytes = options_.pipeline_bytes, .unit_chunks = cut_.span_size()};
      pipeline.ops = ops.TakeAll();
      ops.all = std::move(before);
      ops.all.push_back(std::move(pipeline));
    }
    // A port reads the data of a put after the op has ended: nobody may overwrite them before they have
    // arrived.
    for (Op& op : SyncOps(OpName::kSignal, ports_in)) ops.Signal(std::move(op));
    for (Op& op : SyncOps(OpName::kWait, ports_out)) ops.Wait(std::move(op));
    return WithOwnLists(ops.TakeAll());
  }

  int32_t ChannelOf(const Lane& lane) const { return channels_[rank_].at(lane); }

  // Ops count in the lists of their threadblock.
  static int32_t PlaceIn(std::vector<int32_t>& list, int32_t id) {
    const auto at = std::ranges::find(list, id);
    if (at != list.end()) return static_cast<int32_t>(at - list.begin());
    list.push_back(id);
    return static_cast<int32_t>(list.size()) - 1;
  }
  static void Localize(Op& op, Block& block) {
    const auto type = static_cast<size_t>(op.type);
    for (int32_t& channel : op.channels) channel = PlaceIn(block.channels[type], channel);
    for (std::vector<Piece>* pieces : {&op.src, &op.dst})
      for (Piece& piece : *pieces) {
        if (piece.where == Piece::Where::kRemote) piece.id = PlaceIn(block.remotes[type], piece.id);
        if (piece.where == Piece::Where::kSwitch) piece.id = PlaceIn(block.channels[type], piece.id);
      }
    for (Op& inner : op.ops) Localize(inner, block);
  }
  static Block WithOwnLists(std::vector<Op> ops) {
    Block block;
    block.ops = std::move(ops);
    for (Op& op : block.ops) Localize(op, block);
    return block;
  }

  const Cut& cut_;
  const BlockOptions& options_;
  Atoms atoms_;
  const ProgramIndex& index_;
  size_t rank_ = 0;                                // whose threadblock is made
  std::vector<std::map<Lane, int32_t>> channels_;  // by rank: in its list of the lane's type
};

}  // namespace

StatusOr<std::vector<Gpu>> MakeGpus(const Program& program, const Collective& collective, const Cut& cut,
                                    const BlockOptions& options) {
  return Assembler(program, collective, cut, options).Make();
}

}  // namespace xccl::mscclpp
