// Programs are built chunk by chunk: contributors send a chunk to its root, and ranks that need it receive
// it from there. Two or more of them form a group. Threadblocks are found or made by their ends.
#include "tests/testing/group_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "ir/testing/programs.h"
#include "ir/testing/trees.h"
#include "ir/verify/verify_program.h"

namespace xccl::testing {
namespace {

struct Ends {
  std::vector<Rank> from, to;  // one rank: a peer; more: a group
  int32_t channel = 0;
  bool operator==(const Ends&) const = default;
};

class Maker {
 public:
  Maker(const Collective& collective, int32_t ranks) : collective_(collective) {
    program_.ranks.resize(static_cast<size_t>(ranks));
    ends_.resize(static_cast<size_t>(ranks));
    program_.in_place = true;
  }

  // Appends to the threadblock with these ends, after its last instruction.
  Dependency Add(Rank r, const Ends& ends, Instruction instruction, std::vector<Dependency> after = {}) {
    std::vector<Ends>& known = ends_[r.index()];
    std::vector<Threadblock>& blocks = program_.ranks[r].threadblocks;
    const auto at = std::ranges::find(known, ends) - known.begin();
    if (at == std::ssize(known)) {
      known.push_back(ends);
      blocks.emplace_back().channel = ends.channel;
    }
    instruction.dep_first = static_cast<int32_t>(program_.dependencies.size());
    instruction.dep_count = static_cast<int32_t>(after.size());
    program_.dependencies.insert(program_.dependencies.end(), after.begin(), after.end());
    std::vector<Instruction>& instructions = blocks[static_cast<size_t>(at)].instructions;
    instructions.push_back(instruction);
    return {static_cast<int32_t>(at), static_cast<int32_t>(instructions.size()) - 1};
  }

  Operand At(Rank r, BufferKind buffer, ChunkId chunk) {
    std::vector<ChunkId>& scratch = program_.ranks[r].scratch;
    if (buffer == BufferKind::kScratch) {
      scratch.push_back(chunk);
      return {buffer, static_cast<int32_t>(scratch.size()) - 1};
    }
    const std::vector<ChunkId> slots = SlotChunks(program_, collective_, r, buffer);
    const auto slot = std::ranges::find(slots, chunk) - slots.begin();
    XCCL_CHECK(slot < std::ssize(slots));
    return {buffer, static_cast<int32_t>(slot)};
  }

  Program Take() {
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      for (size_t b = 0; b < ends_[r.index()].size(); ++b) {
        const Ends& ends = ends_[r.index()][b];
        for (Rank peer : ends.to) program_.connections.push_back({r, peer, ends.channel, {}});
        if (ends.to.size() > 1)
          program_.groups.push_back({Group::Kind::kMulticast, r, ends.to, ends.channel, {}});
        if (ends.from.size() > 1)
          program_.groups.push_back({Group::Kind::kReduce, r, ends.from, ends.channel, {}});
      }
    }
    const auto key = [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); };
    std::ranges::sort(program_.connections, {}, key);
    const auto group_key = [](const Group& g) { return std::tuple(g.kind, g.root, g.channel); };
    std::ranges::sort(program_.groups, {}, group_key);
    const auto group = [&](Group::Kind kind, Rank root, int32_t channel) {
      const auto at =
          std::ranges::lower_bound(program_.groups, std::tuple(kind, root, channel), {}, group_key);
      return static_cast<int32_t>(at - program_.groups.begin());
    };
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      for (size_t b = 0; b < ends_[r.index()].size(); ++b) {
        const Ends& ends = ends_[r.index()][b];
        Threadblock& block = program_.ranks[r].threadblocks[b];
        if (ends.to.size() == 1) block.send_peer = ends.to[0];
        if (ends.from.size() == 1) block.recv_peer = ends.from[0];
        if (ends.to.size() > 1) block.send_group = group(Group::Kind::kMulticast, r, ends.channel);
        if (ends.from.size() > 1) block.recv_group = group(Group::Kind::kReduce, r, ends.channel);
      }
    }
    return std::move(program_);
  }

 private:
  const Collective& collective_;
  Program program_;
  std::vector<std::vector<Ends>> ends_;  // ends of each rank's threadblocks
};

// Builds the instructions of one chunk.
class ChunkMaker {
 public:
  ChunkMaker(Maker& maker, const Collective& collective, ChunkId chunk, GroupForm form)
      : maker_(maker), collective_(collective), chunk_(chunk), form_(form) {
    std::vector<Holding> before, after;
    collective.Before(chunk, before);
    collective.After(chunk, after);
    for (const Holding& holding : before) sources_.push_back(holding.rank);
    for (const Holding& holding : after) needs_.push_back(holding.rank);
    const size_t turn = static_cast<size_t>(chunk.value);
    root_ = needs_.size() == 1 ? needs_[0] : sources_[turn % sources_.size()];
    // Each root has a channel of its own, so no connection is used both to a root and from another.
    channel_ = root_.value;
    hub_ = root_;
    // The groups are at another member, which exchanges what they carry with the root.
    if (form == GroupForm::kRelay) {
      const std::span<const Rank> all = collective.ranks();
      const size_t place = static_cast<size_t>(std::ranges::find(all, root_) - all.begin());
      hub_ = all[(place + 1) % all.size()];
    }
  }

  void Make() { collective_.Reduces() ? Reduce() : Copy(); }

 private:
  static std::vector<Rank> Without(std::vector<Rank> ranks, Rank a, Rank b) {
    std::erase(ranks, a);
    std::erase(ranks, b);
    return ranks;
  }
  Instruction Do(Opcode op, std::optional<Operand> src, std::optional<Operand> dst, bool first, bool final) {
    Instruction i;
    i.op = op;
    i.count = 1;
    if (src) i.src = *src;
    if (dst) i.dst = *dst;
    i.first = first;
    i.final = final;
    return i;
  }
  Operand Input(Rank r) { return maker_.At(r, BufferKind::kInput, chunk_); }
  Operand Output(Rank r) { return maker_.At(r, BufferKind::kOutput, chunk_); }

  void Copy() {
    const std::vector<Rank> others = Without(needs_, hub_, root_);
    maker_.Add(root_, {}, Do(Opcode::kCopy, Input(root_), Output(root_), false, false));
    if (hub_ == root_) {
      maker_.Add(root_, {{}, others, channel_}, Do(Opcode::kSend, Input(root_), std::nullopt, false, false));
    } else {
      maker_.Add(root_, {{}, {hub_}, channel_}, Do(Opcode::kSend, Input(root_), std::nullopt, false, false));
      maker_.Add(hub_, {{root_}, others, channel_},
                 Do(Opcode::kRecvCopySend, std::nullopt, Output(hub_), false, false));
    }
    for (Rank r : others)
      maker_.Add(r, {{hub_}, {}, channel_}, Do(Opcode::kRecv, std::nullopt, Output(r), false, false));
  }

  // Members send; a member's threadblock for the hub also receives from it.
  void Reduce() {
    const bool spreads = needs_.size() > 1;
    const std::vector<Rank> senders = Without(sources_, hub_, root_),
                            receivers = spreads ? Without(needs_, hub_, root_) : std::vector<Rank>();
    const auto member = [&](Rank r) {
      const bool back = std::ranges::count(receivers, r) != 0;
      return Ends{back ? std::vector<Rank>{hub_} : std::vector<Rank>{}, {hub_}, channel_};
    };
    for (Rank r : senders) maker_.Add(r, member(r), Do(Opcode::kSend, Input(r), std::nullopt, true, false));
    switch (form_) {
      case GroupForm::kFused:
        if (spreads) {
          maker_.Add(root_, {senders, receivers, channel_},
                     Do(Opcode::kRecvReduceCopySend, Input(root_), Output(root_), true, true));
        } else {
          maker_.Add(root_, {senders, {}, channel_},
                     Do(Opcode::kRecvReduceCopy, Input(root_), Output(root_), true, true));
        }
        break;
      case GroupForm::kSeparate: {
        const Dependency sum =
            maker_.Add(root_, {senders, {}, channel_},
                       Do(Opcode::kRecvReduceCopy, Input(root_), Output(root_), true, true));
        if (spreads)
          maker_.Add(root_, {{}, receivers, channel_},
                     Do(Opcode::kSend, Output(root_), std::nullopt, false, false), {sum});
        break;
      }
      case GroupForm::kScratch: {
        const Operand scratch = maker_.At(root_, BufferKind::kScratch, chunk_);
        const Dependency received = maker_.Add(root_, {senders, {}, channel_},
                                               Do(Opcode::kRecv, std::nullopt, scratch, false, false));
        const Dependency copied =
            maker_.Add(root_, {}, Do(Opcode::kCopy, Input(root_), Output(root_), true, false));
        const Dependency sum = maker_.Add(root_, {}, Do(Opcode::kReduce, scratch, Output(root_), false, true),
                                          {received, copied});
        if (spreads)
          maker_.Add(root_, {{}, receivers, channel_},
                     Do(Opcode::kSend, Output(root_), std::nullopt, false, false), {sum});
        break;
      }
      case GroupForm::kRelay:
        // Up to the root and down again.
        maker_.Add(hub_, {senders, {root_}, channel_},
                   Do(Opcode::kRecvReduceSend, Input(hub_), std::nullopt, true, false));
        if (spreads) {
          maker_.Add(root_, {{hub_}, {hub_}, channel_},
                     Do(Opcode::kRecvReduceCopySend, Input(root_), Output(root_), true, true));
          maker_.Add(hub_, {{root_}, receivers, channel_},
                     Do(Opcode::kRecvCopySend, std::nullopt, Output(hub_), false, false));
        } else {
          maker_.Add(root_, {{hub_}, {}, channel_},
                     Do(Opcode::kRecvReduceCopy, Input(root_), Output(root_), true, true));
        }
        break;
    }
    for (Rank r : receivers)
      maker_.Add(r, member(r), Do(Opcode::kRecv, std::nullopt, Output(r), false, false));
  }

  Maker& maker_;
  const Collective& collective_;
  const ChunkId chunk_;
  const GroupForm form_;
  std::vector<Rank> sources_, needs_;
  Rank root_, hub_;
  int32_t channel_ = 0;
};

std::string_view ToString(GroupForm form) {
  switch (form) {
    case GroupForm::kFused:
      return "fused";
    case GroupForm::kSeparate:
      return "separate";
    case GroupForm::kScratch:
      return "scratch";
    case GroupForm::kRelay:
      return "relay";
  }
  return "";
}

}  // namespace

Program MakeGroupProgram(const Collective& collective, int32_t ranks, GroupForm form) {
  Maker maker(collective, ranks);
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    if (!collective.AlwaysEmpty(ChunkId(c))) ChunkMaker(maker, collective, ChunkId(c), form).Make();
  return maker.Take();
}

std::vector<KernelCase> GroupCases() {
  std::vector<KernelCase> cases;
  int32_t turn = 0;
  for (int32_t ranks : {3, 4, 5, 8}) {
    for (CollectiveKind kind :
         {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAllgatherv,
          CollectiveKind::kReduceScatterv}) {
      for (GroupForm form :
           {GroupForm::kFused, GroupForm::kSeparate, GroupForm::kScratch, GroupForm::kRelay}) {
        const bool copies = kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAllgatherv ||
                            kind == CollectiveKind::kBroadcast;
        if (copies && form != GroupForm::kFused && form != GroupForm::kRelay) continue;
        if (form == GroupForm::kRelay && ranks < 4) continue;
        ++turn;
        const Collective whole = MakeCollective(kind, ranks);
        const bool one_part = whole.num_parts() == 1;
        const Collective cut = one_part        ? whole.WithChunks(ranks + turn % 3)
                               : turn % 2 == 0 ? whole.WithChunks(2)
                                               : whole;
        Program program = MakeGroupProgram(cut, ranks, form);
        if (turn % 3 == 0) {
          program.segment_bytes = 512;
          program.instances = 2;
        }
        const Topology topology = TreeSwitch(ranks);
        RouteThrough(topology, program);
        XCCL_CHECK(VerifyProgram(program, cut, topology).empty());
        cases.push_back(
            {fmt::format("{} {} on {}", ToString(kind), ToString(form), ranks), cut, std::move(program)});
      }
    }
  }
  return cases;
}

}  // namespace xccl::testing
