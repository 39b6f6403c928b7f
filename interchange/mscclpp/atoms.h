// The ops of an MSCCL++ plan that a program's instructions become. Private to the writer.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "interchange/mscclpp/cut.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/place.h"
#include "ir/analysis/program_index.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl::mscclpp {

struct BlockOptions {
  std::string name;                 // opens messages
  IdVector<Rank, int32_t> domains;  // as in MscclppOptions
  bool in_place = false;
  bool packets = false;        // protocol LL
  int64_t pipeline_bytes = 0;  // size of a segment; 0: no pipeline
};

// How two ranks reach each other.
ChannelType TypeOf(const IdVector<Rank, int32_t>& domains, Rank a, Rank b);
std::vector<Piece> Local(BufferKind buffer, const std::vector<Span>& spans);

// The messages of a connection between a part of its sender and one of its receiver, of one instance.
struct Lane {
  int32_t connection = 0, copy = 0, sender = 0, receiver = 0;
  auto operator<=>(const Lane&) const = default;
};

// Pieces of a peer, switches and semaphores count in the rank's lists.
struct AtomOp {
  Op op;
  std::optional<Lane> lane = std::nullopt;  // lane of an op that moves a message, such as a put
};
// One instruction of one instance, in this order.
struct Atom {
  std::vector<int32_t> acquires;
  std::vector<Lane> waits;
  std::vector<AtomOp> ops;
  std::vector<Lane> signals;
  std::vector<int32_t> releases;
};

// Makes atoms, and with them the ranks' lists of buffers, switches and semaphores. Requires: the program
// verifies, and CheckGroups finds nothing.
class Atoms {
 public:
  Atoms(const Program& program, const Collective& collective, const Cut& cut, const BlockOptions& options);
  // Errors: kInvalidInput that names the group and the limit of the executor's ops that it breaks.
  Status CheckGroups() const;
  // Errors: kInvalidInput where an instruction moves more pieces than the ops of a threadblock can.
  Status CheckSpans() const;
  Atom MakeAtom(int32_t node, int32_t copy);

  const ProgramIndex& index() const { return index_; }
  std::vector<Gpu>& gpus() { return gpus_; }
  Places& places() { return places_; }
  int32_t part(int32_t node) const { return part_[static_cast<size_t>(node)]; }
  // Cuts threadblocks: parts_of[node] counts from 0 in every threadblock. Semaphores are numbered anew.
  void SetParts(std::vector<int32_t> parts_of);
  // One semaphore for all waits between two parts of an instance.
  int32_t SemaphoreOf(int32_t block, int32_t part, int32_t waiter, int32_t waiter_part, int32_t copy);

  const Connection& ConnectionAt(int32_t c) const { return program_.connections[static_cast<size_t>(c)]; }
  ChannelType TypeOfConnection(int32_t c) const {
    return TypeOf(options_.domains, ConnectionAt(c).src, ConnectionAt(c).dst);
  }
  // Do senders wait for the receiver's kernel? Where data goes both ways between all ranks, packets need not.
  bool HasReady(int32_t connection) const {
    return options_.packets ? IsRooted(collective_.kind()) : !IntoSwitch(connection);
  }
  std::span<const int32_t> SendsTo(int32_t node) const;
  std::span<const int32_t> ReceivesFrom(int32_t node) const;
  // Does it wait for other threadblocks, or they for it?
  bool HasWaits(int32_t node) const {
    return !waits_[static_cast<size_t>(node)].empty() || !awaited_[static_cast<size_t>(node)].empty();
  }
  // The path of a threadblock's sends, or of the messages that a switch adds up for it.
  std::vector<LinkId> LinksOf(int32_t block, bool sends) const;
  Lane LaneOfSend(int32_t send, int32_t connection, int32_t copy) const {
    return {connection, copy, part(send), part(ReceiveOf(send, connection))};
  }
  Lane LaneOfReceive(int32_t receive, int32_t connection, int32_t copy) const {
    return LaneOfSend(SendOf(receive, connection), connection, copy);
  }

 private:
  using Pieces = std::vector<Piece>;
  Rank RankOf(int32_t node) const { return index_.BlockRank(index_.BlockOf(node)); }
  // Whose send this receive takes from the connection, and the other way.
  int32_t SendOf(int32_t receive, int32_t connection) const {
    return index_.SendsOf(connection)[static_cast<size_t>(index_.RecvOrdinal(receive))];
  }
  int32_t ReceiveOf(int32_t send, int32_t connection) const {
    return index_.ReceivesOf(connection)[static_cast<size_t>(index_.SendOrdinal(send))];
  }
  void KeepWaits();
  void FindStored();
  const Group* SwitchGroup(std::optional<int32_t> group) const;
  bool IntoSwitch(int32_t connection) const;
  std::string_view WrongWithSwitch(int32_t node, bool reduces, bool stores) const;
  int32_t SwitchOf(const Group& group, BufferKind buffer);
  void AddSwitched(int32_t node, const Group& group, bool reduces, int32_t copy, Atom& atom);
  std::vector<Span> SpansOf(int32_t node, const Operand& operand, int32_t copy) const;
  int32_t RemoteOf(Rank r, Rank peer, BufferKind buffer, ChannelType type);
  Pieces RemotePieces(int32_t node, int32_t connection, int32_t copy);
  void AddPuts(int32_t node, const Pieces& source, int32_t copy, Atom& atom);
  void AddSums(const std::vector<Pieces>& inputs, const Pieces& dst, const Pieces& to,
               const std::optional<Lane>& lane, Atom& atom) const;
  std::vector<Pieces> InputsOf(int32_t node, int32_t copy);
  void AddForward(int32_t node, const Pieces& landed, const Pieces& dst, int32_t copy, Atom& atom);
  void AddReceive(int32_t node, int32_t copy, Atom& atom);
  void AddLocal(int32_t node, int32_t copy, Atom& atom) const;

  const Program& program_;
  const Collective& collective_;
  const Cut& cut_;
  const BlockOptions& options_;
  const ProgramIndex index_;
  Places places_;
  std::vector<Gpu> gpus_;
  std::vector<int32_t> part_;                          // by instruction
  std::vector<std::vector<int32_t>> waits_, awaited_;  // by instruction: instructions of other threadblocks
  std::map<std::array<int32_t, 5>, int32_t> semaphores_;
  // Chunks of a root's input that a switch also stores in its output, by rank: output slot to input slot.
  std::vector<std::map<int32_t, int32_t>> stored_;
};

}  // namespace xccl::mscclpp
