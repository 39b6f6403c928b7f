// One walk over the ranks finds order, merged blocks and direct modes; another over the instructions finds
// their runs. All operands of an instruction, and the operands at the other ends of its messages, hold the
// same chunks. A run ends where the next chunk does not follow in the part or has another weight. Since that
// depends on chunks alone, sender and receiver have the same runs.
#include "ir/kernel/kernel_form.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/analysis/rank_clocks.h"
#include "ir/kernel/local_order.h"

namespace xccl {
namespace {

constexpr int32_t kMostMerged = kMaxKernelEnds / 2;  // each threadblock has at most two ends
constexpr int64_t kMostWeight = std::numeric_limits<int32_t>::max();

class FormMaker {
 public:
  FormMaker(const Program& program, const Collective& collective, bool merge)
      : program_(program),
        collective_(collective),
        index_(program),
        turns_(index_),
        merges_(merge && program.segment_bytes == 0) {}

  StatusOr<KernelForm> Make() {
    if (index_.size() > kMaxKernelInstructions)
      return InvalidInput(fmt::format("kernel: {} instructions; at most {} are supported", index_.size(),
                                      kMaxKernelInstructions));
    form_.members = collective_.num_members();
    form_.instructions = index_.size();
    form_.tables = PartsDiffer();
    form_.ranks.resize(static_cast<size_t>(program_.ranks.size()));
    node_place_.resize(static_cast<size_t>(index_.size()));
    put_.assign(static_cast<size_t>(index_.size()), {});
    get_.assign(static_cast<size_t>(index_.size()), {});
    switch_put_.assign(static_cast<size_t>(index_.size()), false);
    switch_get_.assign(static_cast<size_t>(index_.size()), false);
    for (size_t c = 0; c < program_.connections.size(); ++c) {
      form_.ranks[program_.connections[c].src].connections.push_back(static_cast<int32_t>(c));
      form_.ranks[program_.connections[c].dst].connections.push_back(static_cast<int32_t>(c));
    }
    for (size_t g = 0; g < program_.groups.size(); ++g)
      form_.ranks[program_.groups[g].root].groups.push_back(static_cast<int32_t>(g));
    const std::vector<int32_t> order = TopologicalOrder(program_, index_, ProgramEdges::kLocal);
    place_.resize(order.size());
    for (size_t k = 0; k < order.size(); ++k) place_[static_cast<size_t>(order[k])] = static_cast<int32_t>(k);
    const Grouped<int32_t> of_rank = ByRank(index_, order);
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) AnalyseRank(r, of_rank[r.value]);
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) XCCL_RETURN_IF_ERROR(CutScratch(r));
    if (!form_.tables && !program_.groups.empty())
      for (int32_t node = 0; node < index_.size(); ++node) AllowSwitch(node);
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) XCCL_RETURN_IF_ERROR(FillRank(r));
    for (const auto& [node, on] : extra_after_) {
      const Rank root = index_.BlockRank(index_.BlockOf(node));
      if (switch_put_[static_cast<size_t>(node)]) AddDependency(root, node, on);
    }
    return std::move(form_);
  }

 private:
  struct Allowed {
    bool out_of_place = false, in_place = false;
  };
  // The chunk in every slot of a rank, and the position of each slot.
  struct Slots {
    std::array<std::vector<ChunkId>, 3> chunks;
    std::array<std::vector<int32_t>, 3> position;
  };

  bool PartsDiffer() const {
    return TraitsOf(collective_.kind()).counted || collective_.kind() == CollectiveKind::kCustom;
  }

  void AnalyseRank(Rank r, std::span<const int32_t> nodes) {
    const RankClocks local(index_, r, nodes);
    MergeBlocks(r, local);
    const SlotAccesses apart(program_, collective_, index_, r, false);
    const std::unique_ptr<SlotAccesses> over =
        program_.in_place ? std::make_unique<SlotAccesses>(program_, collective_, index_, r, true) : nullptr;
    if (!apart.AllOrdered(local) || (over && !over->AllOrdered(local))) form_.messages_order = true;
    // With tables, messages cannot be direct: a rank does not know the offsets in its peers' tables.
    if (form_.tables) return;
    const auto allowed = [&](auto question) {
      const bool first = question(apart);
      return Allowed{first, over ? question(*over) : first};
    };
    const int32_t end = index_.BlockFirst(index_.RankFirstBlock(Rank(r.value + 1)));
    for (int32_t node = index_.BlockFirst(index_.RankFirstBlock(r)); node < end; ++node) {
      const Instruction& i = index_.instruction(node);
      if (i.op == Opcode::kRecv || i.op == Opcode::kRecvCopySend)
        put_[static_cast<size_t>(node)] = allowed([&](const SlotAccesses& a) {
          return a.NothingBefore(node, local, turns_.TakenBeforeSent(node));
        });
      if ((i.op == Opcode::kSend && !i.final) || (Sends(i.op) && WritesDestination(i.op))) {
        const Operand& sent = i.op == Opcode::kSend ? i.src : i.dst;
        get_[static_cast<size_t>(node)] = allowed([&](const SlotAccesses& a) {
          return a.NothingWritesAfter(node, sent, local, turns_.SentAfterTaken(node));
        });
      }
    }
  }

  // Are the two operands the same slots, holding the same chunks, of both ranks' inputs, or of both outputs?
  bool SamePlace(Rank a, const Operand& of_a, Rank b, const Operand& of_b, int32_t count) const {
    if (of_a.buffer != of_b.buffer || of_a.buffer == BufferKind::kScratch) return false;
    const auto kind = static_cast<size_t>(of_a.buffer);
    if (of_a.slot + count > std::ssize(SlotsOf(a).chunks[kind]) ||
        of_b.slot + count > std::ssize(SlotsOf(b).chunks[kind]))
      return false;
    for (int32_t k = 0; k < count; ++k)
      if (ChunkAt(a, of_a, k) != ChunkAt(b, of_b, k) || PlaceAt(a, of_a, k) != PlaceAt(b, of_b, k))
        return false;
    return true;
  }
  // True if the only writes to `slots` of the root are copies, which wait for nothing, of the data that
  // `send` sends. If so, `send` comes after them.
  bool HoldsWhatItSends(Rank root, int32_t send, const Operand& slots) {
    const Instruction& sent = index_.instruction(send);
    if (sent.op != Opcode::kSend || sent.final || slots.buffer != BufferKind::kOutput) return false;
    if (sent.src == slots) return true;
    const int32_t end = index_.BlockFirst(index_.RankFirstBlock(Rank(root.value + 1)));
    std::vector<int32_t> copies;
    for (int32_t node = index_.BlockFirst(index_.RankFirstBlock(root)); node < end; ++node) {
      const Instruction& i = index_.instruction(node);
      if (!WritesDestination(i.op) || i.dst.buffer != slots.buffer || i.dst.slot + i.count <= slots.slot ||
          slots.slot + sent.count <= i.dst.slot)
        continue;
      if (i.op != Opcode::kCopy || i.first || i.final || i.src.buffer != sent.src.buffer ||
          i.src.slot - i.dst.slot != sent.src.slot - slots.slot || !WaitsForNothing(node))
        return false;
      copies.push_back(node);
    }
    for (const int32_t node : copies) extra_after_.emplace_back(send, node);
    return !copies.empty();
  }
  // True if neither the instruction nor any instruction before it in its threadblock waits for anything.
  bool WaitsForNothing(int32_t node) const {
    for (int32_t before = index_.BlockFirst(index_.BlockOf(node)); before <= node; ++before) {
      const Instruction& i = index_.instruction(before);
      if (Sends(i.op) || Receives(i.op) || i.dep_count > 0) return false;
    }
    return true;
  }

  // Decides for a root's instruction whether the switch may work on the buffers.
  void AllowSwitch(int32_t node) {
    const Instruction& own = index_.instruction(node);
    const Threadblock& threadblock = ThreadblockOf(node);
    const Rank root = index_.BlockRank(index_.BlockOf(node));
    const auto group = [&](std::optional<int32_t> of) -> const Group& {
      return program_.groups[static_cast<size_t>(*of)];
    };
    const bool from_group = Receives(own.op) && threadblock.recv_group.has_value();
    const bool to_group = Sends(own.op) && threadblock.send_group.has_value();
    // The switch moves from one place to itself and at most one place more.
    bool get =
        from_group && HasSwitch(group(threadblock.recv_group)) && ReadsSource(own.op) &&
        !(Sends(own.op) && !to_group && WritesDestination(own.op)) &&
        std::ranges::all_of(index_.RecvConnections(index_.BlockOf(node)), [&](int32_t connection) {
          const int32_t send = index_.SendsOf(connection)[static_cast<size_t>(index_.RecvOrdinal(node))];
          const Instruction& i = index_.instruction(send);
          const Allowed& allowed = get_[static_cast<size_t>(send)];
          return allowed.out_of_place && allowed.in_place && i.op == Opcode::kSend && i.first == own.first &&
                 SamePlace(program_.connections[static_cast<size_t>(connection)].src, i.src, root, own.src,
                           own.count);
        });
    bool put = to_group && !(Receives(own.op) && !from_group && ReadsSource(own.op)) &&
               std::ranges::all_of(index_.SendConnections(index_.BlockOf(node)), [&](int32_t connection) {
                 const int32_t receive =
                     index_.ReceivesOf(connection)[static_cast<size_t>(index_.SendOrdinal(node))];
                 const Instruction& i = index_.instruction(receive);
                 const Allowed& allowed = put_[static_cast<size_t>(receive)];
                 return allowed.out_of_place && allowed.in_place &&
                        !(Sends(i.op) && ThreadblockOf(receive).send_group) &&
                        SamePlace(program_.connections[static_cast<size_t>(connection)].dst, i.dst, root,
                                  i.dst, own.count) &&
                        (WritesDestination(own.op) ? own.dst == i.dst : HoldsWhatItSends(root, node, i.dst));
               });
    // With a group at both ends, at both or at none, and at the same offset.
    if (from_group && to_group) {
      for (int32_t k = 0; get && put && k < own.count; ++k)
        put = PlaceAt(root, own.src, k).position == PlaceAt(root, own.dst, k).position;
      get = put = get && put;
    }
    switch_get_[static_cast<size_t>(node)] = get;
    switch_put_[static_cast<size_t>(node)] = put;
  }

  // Appends a threadblock to a block that ends before it can start. With several passes this would prevent
  // them from overlapping, so only single-pass programs are merged.
  void MergeBlocks(Rank r, const RankClocks& local) {
    struct Chain {
      int32_t last_node, length, threadblocks;
    };
    std::vector<Chain> chains;
    const int32_t first_block = index_.RankFirstBlock(r),
                  end_block = index_.RankFirstBlock(Rank(r.value + 1));
    // Sorted by first instruction, so that threadblocks are met in the rank's order.
    std::vector<int32_t> blocks;
    for (int32_t b = first_block; b < end_block; ++b)
      if (index_.BlockFirst(b) < index_.BlockFirst(b + 1)) blocks.push_back(b);
    if (merges_)
      std::ranges::stable_sort(blocks, {},
                               [&](int32_t b) { return place_[static_cast<size_t>(index_.BlockFirst(b))]; });
    for (int32_t block : blocks) {
      const int32_t first = index_.BlockFirst(block), end = index_.BlockFirst(block + 1);
      size_t chain = 0;
      while (chain < chains.size() && (!merges_ || chains[chain].threadblocks == kMostMerged ||
                                       !local.Before(chains[chain].last_node, first)))
        ++chain;
      if (chain == chains.size()) chains.push_back({first, 0, 0});
      for (int32_t node = first; node < end; ++node)
        node_place_[static_cast<size_t>(node)] = {static_cast<int32_t>(chain), chains[chain].length++};
      chains[chain].last_node = end - 1;
      ++chains[chain].threadblocks;
    }
    form_.ranks[r].blocks.resize(chains.size());
    for (size_t c = 0; c < chains.size(); ++c)
      form_.ranks[r].blocks[c].instructions.resize(static_cast<size_t>(chains[c].length));
    form_.blocks_per_rank = std::max(form_.blocks_per_rank, static_cast<int32_t>(chains.size()));
  }

  Status CutScratch(Rank r) {
    Slots slots;
    for (BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch}) {
      std::vector<ChunkId>& chunks = slots.chunks[static_cast<size_t>(kind)];
      std::vector<int32_t>& position = slots.position[static_cast<size_t>(kind)];
      chunks = SlotChunks(program_, collective_, r, kind);
      for (size_t s = 0; s < chunks.size(); ++s) {
        const PartId part = collective_.PartOf(chunks[s]);
        const bool same_part = s > 0 && collective_.PartOf(chunks[s - 1]) == part;
        const bool continues = same_part && chunks[s].value == chunks[s - 1].value + 1;
        if (collective_.PartWeight(part) > kMostWeight)
          return InvalidInput(fmt::format("kernel: part {} has weight {}; at most {} is supported",
                                          part.value, collective_.PartWeight(part), kMostWeight));
        if (kind == BufferKind::kScratch) {
          std::vector<ScratchRun>& runs = form_.ranks[r].scratch;
          if (!continues)
            runs.push_back({part, collective_.PartWeight(part), collective_.WeightBefore(chunks[s]), 0});
          runs.back().weight += collective_.Weight(chunks[s]);
          position.push_back(static_cast<int32_t>(runs.size()) - 1);
        } else {
          position.push_back(s == 0 ? 0 : position.back() + (same_part ? 0 : 1));
        }
      }
    }
    slots_.push_back(std::move(slots));
    return OkStatus();
  }

  Status FillRank(Rank r) {
    const int32_t first_block = index_.RankFirstBlock(r),
                  end_block = index_.RankFirstBlock(Rank(r.value + 1));
    for (int32_t node = index_.BlockFirst(first_block); node < index_.BlockFirst(end_block); ++node) {
      KernelInstruction& to = At(r, node);
      const ProgramSite site = index_.Site(node);
      to.what = index_.instruction(node);
      to.threadblock = site.threadblock;
      to.index = site.index;
      for (const Dependency& d : index_.Dependencies(node)) AddDependency(r, node, index_.NodeOf(r, d));
      XCCL_RETURN_IF_ERROR(AddMessages(r, node, to));
    }
    return OkStatus();
  }

  KernelInstruction& At(Rank r, int32_t node) {
    const KernelDependency& place = node_place_[static_cast<size_t>(node)];
    return form_.ranks[r]
        .blocks[static_cast<size_t>(place.block)]
        .instructions[static_cast<size_t>(place.index)];
  }

  void AddDependency(Rank r, int32_t node, int32_t on) {
    const KernelDependency& here = node_place_[static_cast<size_t>(node)];
    const KernelDependency& there = node_place_[static_cast<size_t>(on)];
    if (here.block == there.block) return;  // the order within the block suffices
    std::vector<KernelDependency>& after = At(r, node).after;
    for (KernelDependency& d : after) {
      if (d.block != there.block) continue;
      d.index = std::max(d.index, there.index);
      At(r, on).signals = true;
      return;
    }
    after.push_back(there);
    At(r, on).signals = true;
  }

  static DirectMode ModeOf(const Allowed& put, const Allowed& get) {
    if (put.out_of_place && put.in_place) return DirectMode::kPut;
    if (get.out_of_place && get.in_place) return DirectMode::kGet;
    if (put.out_of_place) return DirectMode::kPutOutOfPlace;
    return get.out_of_place ? DirectMode::kGetOutOfPlace : DirectMode::kNo;
  }

  // The index of a connection or group in its rank's list.
  static int32_t LocalIndex(const std::vector<int32_t>& all, int32_t of) {
    return static_cast<int32_t>(std::ranges::lower_bound(all, of) - all.begin());
  }

  const Threadblock& ThreadblockOf(int32_t node) const {
    const ProgramSite site = index_.Site(node);
    return program_.ranks[site.rank].threadblocks[static_cast<size_t>(site.threadblock)];
  }
  bool UsesGroup(int32_t node) const {
    const Opcode op = index_.instruction(node).op;
    const Threadblock& threadblock = ThreadblockOf(node);
    return (Sends(op) && threadblock.send_group) || (Receives(op) && threadblock.recv_group);
  }

  DirectMode MessageMode(int32_t send, int32_t receive) {
    if (UsesGroup(send) || UsesGroup(receive)) {
      if (switch_put_[static_cast<size_t>(send)] && !ThreadblockOf(receive).recv_group) {
        form_.switch_direct = true;
        return DirectMode::kSwitchPut;
      }
      if (switch_get_[static_cast<size_t>(receive)] && !ThreadblockOf(send).send_group) {
        form_.switch_direct = true;
        return DirectMode::kSwitchGet;
      }
      return DirectMode::kNo;
    }
    const DirectMode mode = ModeOf(put_[static_cast<size_t>(receive)], get_[static_cast<size_t>(send)]);
    if (mode != DirectMode::kNo) form_.direct = true;
    return mode;
  }

  Status AddMessages(Rank r, int32_t node, KernelInstruction& to) {
    const int32_t block = index_.BlockOf(node);
    const Threadblock& threadblock = ThreadblockOf(node);
    std::vector<Side> sides = {{r, &to.what}};
    std::optional<size_t> from_side, to_side;
    if (Receives(to.what.op)) {
      for (int32_t connection : index_.RecvConnections(block)) {
        const int32_t send = index_.SendsOf(connection)[static_cast<size_t>(index_.RecvOrdinal(node))];
        from_side = sides.size();
        sides.push_back(
            {program_.connections[static_cast<size_t>(connection)].src, &index_.instruction(send)});
        if (threadblock.recv_group) continue;
        to.from = LocalIndex(form_.ranks[r].connections, connection);
        to.receive = MessageMode(send, node);
        to.received_first = IsGet(to.receive) && index_.instruction(send).op == Opcode::kSend &&
                            index_.instruction(send).first;
      }
      if (threadblock.recv_group) to.from_group = LocalIndex(form_.ranks[r].groups, *threadblock.recv_group);
      if (switch_get_[static_cast<size_t>(node)]) to.receive = DirectMode::kSwitchGet;
    }
    if (Sends(to.what.op)) {
      for (int32_t connection : index_.SendConnections(block)) {
        const int32_t receive = index_.ReceivesOf(connection)[static_cast<size_t>(index_.SendOrdinal(node))];
        to_side = sides.size();
        sides.push_back(
            {program_.connections[static_cast<size_t>(connection)].dst, &index_.instruction(receive)});
        if (threadblock.send_group) continue;
        to.to = LocalIndex(form_.ranks[r].connections, connection);
        to.send = MessageMode(node, receive);
      }
      if (threadblock.send_group) to.to_group = LocalIndex(form_.ranks[r].groups, *threadblock.send_group);
      if (switch_put_[static_cast<size_t>(node)]) to.send = DirectMode::kSwitchPut;
    }
    if (to.what.op == Opcode::kNop) return OkStatus();
    return AddRuns(node, sides, from_side, to_side, to);
  }

  struct Side {
    Rank rank;
    const Instruction* what;
  };

  const Slots& SlotsOf(Rank r) const { return slots_[r.index()]; }
  ChunkId ChunkAt(Rank r, const Operand& operand, int32_t k) const {
    return SlotsOf(r).chunks[static_cast<size_t>(operand.buffer)][static_cast<size_t>(operand.slot + k)];
  }
  KernelPlace PlaceAt(Rank r, const Operand& operand, int32_t k) const {
    return {operand.buffer,
            SlotsOf(r).position[static_cast<size_t>(operand.buffer)][static_cast<size_t>(operand.slot + k)]};
  }

  Status AddRuns(int32_t node, const std::vector<Side>& sides, std::optional<size_t> from_side,
                 std::optional<size_t> to_side, KernelInstruction& to) {
    for (int32_t k = 0; k < to.what.count; ++k) {
      const Operand& own = ReadsSource(to.what.op) ? to.what.src : to.what.dst;
      const ChunkId chunk = ChunkAt(sides[0].rank, own, k);
      const PartId part = collective_.PartOf(chunk);
      for (const Side& side : sides)
        for (const Operand* operand : OperandsOf(*side.what))
          if (ChunkAt(side.rank, *operand, k) != chunk)
            return InvalidInput(
                fmt::format("kernel: {}: chunk {} meets chunk {}; expected the same chunk in every operand",
                            ToString(index_.Site(node)), chunk.value, ChunkAt(side.rank, *operand, k).value));
      const bool continues =
          !to.runs.empty() && ChunkAt(sides[0].rank, own, k - 1).value == chunk.value - 1 &&
          to.runs.back().part == part && to.runs.back().weight == collective_.Weight(chunk);
      if (continues) {
        ++to.runs.back().count;
        continue;
      }
      KernelRun run{part,
                    collective_.PartWeight(part),
                    collective_.WeightBefore(chunk),
                    collective_.Weight(chunk),
                    1,
                    {},
                    {},
                    {},
                    {}};
      if (ReadsSource(to.what.op)) run.src = PlaceAt(sides[0].rank, to.what.src, k);
      if (WritesDestination(to.what.op)) run.dst = PlaceAt(sides[0].rank, to.what.dst, k);
      if (to_side && IsPut(to.send)) run.peer = PlaceAt(sides[*to_side].rank, sides[*to_side].what->dst, k);
      if (from_side && IsGet(to.receive)) {
        const Side& sender = sides[*from_side];
        run.peer_src =
            PlaceAt(sender.rank, sender.what->op == Opcode::kSend ? sender.what->src : sender.what->dst, k);
      }
      to.runs.push_back(run);
    }
    return OkStatus();
  }

  static std::vector<const Operand*> OperandsOf(const Instruction& i) {
    std::vector<const Operand*> operands;
    if (ReadsSource(i.op)) operands.push_back(&i.src);
    if (WritesDestination(i.op)) operands.push_back(&i.dst);
    return operands;
  }

  const Program& program_;
  const Collective& collective_;
  const ProgramIndex index_;
  const RootTurns turns_;
  const bool merges_;
  KernelForm form_;
  std::vector<KernelDependency> node_place_;  // block and index of each instruction
  std::vector<int32_t> place_;                // by instruction: its position in a topological order
  std::vector<Allowed> put_, get_;            // by instruction
  std::vector<std::pair<int32_t, int32_t>> extra_after_;  // an instruction, and one that it must come after
  std::vector<bool> switch_put_, switch_get_;             // by instruction of a group's root
  std::vector<Slots> slots_;                              // by rank
};

}  // namespace

StatusOr<KernelForm> MakeKernelForm(const Program& program, const Collective& collective, bool merge) {
  return FormMaker(program, collective, merge).Make();
}

std::string Describe(const KernelInstruction& instruction, const Program& program, Rank rank,
                     const KernelForm& form) {
  const Instruction& i = instruction.what;
  const auto slots = [&](const Operand& operand) {
    const std::string_view letter = operand.buffer == BufferKind::kInput    ? "i"
                                    : operand.buffer == BufferKind::kOutput ? "o"
                                                                            : "s";
    return i.count == 1 ? fmt::format(" {}[{}]", letter, operand.slot)
                        : fmt::format(" {}[{}..{}]", letter, operand.slot, operand.slot + i.count - 1);
  };
  const KernelRank& here = form.ranks[rank];
  std::string text = fmt::format("{}.{}: {}", instruction.threadblock, instruction.index, ToString(i.op));
  if (ReadsSource(i.op)) text += slots(i.src);
  if (WritesDestination(i.op)) text += (ReadsSource(i.op) ? " ->" : "") + slots(i.dst);
  if (instruction.from)
    text += fmt::format(", from rank {}", ConnectionOf(program, here, *instruction.from).src.value);
  if (instruction.to)
    text += fmt::format(", to rank {}", ConnectionOf(program, here, *instruction.to).dst.value);
  const auto of_group = [&](int32_t local) -> const Group& {
    return program.groups[static_cast<size_t>(here.groups[static_cast<size_t>(local)])];
  };
  const auto group = [&](int32_t local) {
    std::string list;
    for (Rank member : of_group(local).members)
      list += fmt::format("{}{}", list.empty() ? "" : " ", member.value);
    return list;
  };
  if (instruction.from_group) {
    const Group& from = of_group(*instruction.from_group);
    text += fmt::format(", {} from ranks {}", HasSwitch(from) ? "reduced" : "added up",
                        group(*instruction.from_group));
    if (!HasSwitch(from) && ReadsSource(i.op)) text += fmt::format(", own after {}", from.own);
  }
  if (instruction.to_group) text += fmt::format(", multicast to ranks {}", group(*instruction.to_group));
  if (i.first) text += ", first";
  if (i.final) text += ", final";
  for (int32_t d = 0; d < i.dep_count; ++d) {
    const Dependency& on = program.dependencies[static_cast<size_t>(i.dep_first + d)];
    text += fmt::format("{} {}.{}", d == 0 ? ", after" : "", on.threadblock, on.index);
  }
  return text;
}

}  // namespace xccl
