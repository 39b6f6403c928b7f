// Where the messages of a program land on an MSCCL++ executor, whose senders write into the receiver's
// buffers at any time. Private to the writer.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "interchange/mscclpp/cut.h"
#include "ir/analysis/program_index.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl::mscclpp {

struct Landing {
  BufferKind buffer = BufferKind::kScratch;
  std::vector<Span> spans;
};

class Places {
 public:
  // `packets`: messages are packets, which land in scratch alone. `ports`: by connection, whether a port
  // carries it. Requires: the program verifies. Cost: for every receive into a buffer that is used before,
  // and for every send over a port from one that is written later, at most linear in the instructions.
  Places(const Program& program, const Collective& collective, const Cut& cut, const ProgramIndex& index,
         bool in_place, bool packets, std::vector<bool> ports);

  // Does the message of a receive land where the receive writes? True if all earlier uses of that place are
  // done before the send.
  bool IsDirect(int32_t receive) const { return direct_[static_cast<size_t>(receive)]; }
  // Do ports send a copy of a send's data? A port reads its data at any time until the message has arrived,
  // so they must if the place may be written earlier than that.
  bool IsCopied(int32_t send) const { return copied_[static_cast<size_t>(send)]; }
  // Where that copy is; the same at every call.
  const std::vector<Span>& CopyOf(int32_t send, int32_t copy);
  // Where the message of a connection that this receive takes lands; the same at every call.
  const Landing& LandingOf(int32_t connection, int32_t receive, int32_t copy);
  // Scratch of its own for the sum that a threadblock sends on and stores nowhere.
  std::vector<Span> Unused(int32_t node, int32_t copy) const;
  // Chunks of scratch in all, when all landings have been asked for.
  int64_t ScratchOf(Rank r) const;

 private:
  std::vector<int64_t> CellsOf(Rank r, const Operand& operand, int32_t count) const;
  bool AllPrecede(std::vector<int32_t> before, int32_t node);
  void FindUsers();
  void FindCopied();
  void FindDirect();
  // The receives of the messages that an instruction sends over ports from a place that may be written later.
  std::vector<int32_t> LateReadersOf(int32_t send) const;
  const Operand& SourceOfSend(int32_t send) const;
  void PutIntoScratch(Rank r, std::vector<Span>& spans);
  // Packets take twice their bytes, so that their chunk i lies where plain chunks 2i and 2i + 1 do.
  int64_t PacketsBegin(Rank r) const { return packets_ ? (plain_[r] + 1) / 2 : plain_[r]; }
  Rank RankOf(int32_t node) const { return index_.BlockRank(index_.BlockOf(node)); }

  const Program& program_;
  const Collective& collective_;
  const Cut& cut_;
  const ProgramIndex& index_;
  const bool in_place_, packets_;
  const std::vector<bool> ports_;
  std::vector<int32_t> position_, seen_;  // by instruction: in a topological order; when last looked at
  int32_t mark_ = 0;
  std::vector<int32_t> order_;
  std::vector<std::map<int64_t, std::vector<int32_t>>> users_;  // by rank and cell, in this order
  std::vector<bool> direct_, copied_;
  IdVector<Rank, int64_t> plain_, landed_;  // chunks
  std::map<int32_t, int64_t> unused_;       // by instruction
  std::map<std::tuple<int32_t, int32_t, int32_t>, Landing> landings_;
  std::map<std::pair<int32_t, int32_t>, std::vector<Span>> copies_;
};

}  // namespace xccl::mscclpp
