#include <fmt/core.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/rdma/ofi/ofi_transport.h"
#include "runtime/rdma/ofi/signal.h"

namespace xccl::ofi {
namespace {

constexpr size_t kBatch = 32;

}  // namespace

OfiTransport::OfiTransport(const Library& library, const NetworkMemory& memory)
    : library_(library), memory_(memory) {
  int32_t most = -1;
  for (const RemoteConnection& one : memory.layout.connections) most = std::max(most, one.connection);
  place_.assign(static_cast<size_t>(most + 1), -1);
}

void OfiTransport::AddRail(Rail rail) {
  files_.push_back(rail.file);
  rails_.push_back(std::move(rail));
}

void OfiTransport::AddConnection(OfiConnection connection) {
  const auto place = static_cast<int32_t>(connections_.size());
  place_[static_cast<size_t>(connection.at.connection)] = place;
  connection.cell = &memory_.cells[connection.at.cell];
  const auto slots = static_cast<size_t>(memory_.layout.num_slots);
  connection.operations.assign(slots, {.context = {}, .place = place});
  connection.arrived.assign(slots, false);
  connections_.push_back(std::move(connection));
}

ConnectionEnd OfiTransport::At(int32_t connection) {
  const OfiConnection& found = Find(connection);
  return {.slots = memory_.slots + found.at.slots_at,
          .num_slots = static_cast<uint64_t>(memory_.layout.num_slots),
          .window = static_cast<uint64_t>(memory_.layout.window),
          .direct = nullptr,
          .head = &found.cell->head,
          .tail = &found.cell->tail};
}

void OfiTransport::Put(int32_t connection, int64_t bytes) {
  OfiConnection& found = Find(connection);
  const uint64_t head = found.cell->head.load(std::memory_order_relaxed) + 1;
  found.cell->head.store(head, std::memory_order_relaxed);
  Start({.place = found.operations[0].place, .tail = false, .counter = head, .bytes = bytes});
}

void OfiTransport::Take(int32_t connection, bool together) {
  OfiConnection& found = Find(connection);
  const uint64_t tail = found.cell->tail.load(std::memory_order_relaxed) + 1;
  found.cell->tail.store(tail, std::memory_order_relaxed);
  // One signal gives several slots back; it costs as much as a small message. As many as programs need are
  // never held back, so no sender waits for slots that the receiver has taken.
  const int64_t hold = int64_t{memory_.layout.num_slots} - memory_.layout.needed_slots;
  if (together && static_cast<int64_t>(tail - found.given_back) <= hold) return;
  TellTaken(found, tail);
}

void OfiTransport::GiveBack() {
  for (OfiConnection& connection : connections_) {
    if (connection.at.sends) continue;
    const uint64_t tail = connection.cell->tail.load(std::memory_order_relaxed);
    if (tail != connection.given_back) TellTaken(connection, tail);
  }
}

void OfiTransport::TellTaken(OfiConnection& connection, uint64_t tail) {
  connection.given_back = tail;
  Start({.place = connection.operations[0].place, .tail = true, .counter = tail});
}

void OfiTransport::Start(const Write& write) {
  if (!waiting_.empty() || !Post(write)) waiting_.push_back(write);
}

bool OfiTransport::Post(const Write& write) {
  OfiConnection& to = connections_[static_cast<size_t>(write.place)];
  const NetworkLayout& layout = memory_.layout;
  const uint64_t slot = (write.counter - 1) % static_cast<uint64_t>(layout.num_slots);
  const int64_t at = write.tail ? 0 : static_cast<int64_t>(slot) * layout.slot_bytes;
  const ssize_t code = fi_writedata(
      to.rail->endpoint.get(), memory_.slots + to.at.slots_at + at, static_cast<size_t>(write.bytes),
      fi_mr_desc(to.memory), Encode(to.peer_mark, write.counter), to.peer,
      to.peer_base + static_cast<uint64_t>(at), to.peer_key, &to.operations[slot].context);
  if (code == -FI_EAGAIN) return false;
  if (code != 0 && failure_.ok())
    failure_ = PeerEnded(fmt::format("write to rank {} over {}: {}", to.at.peer.value, to.rail->name,
                                     library_.ErrorText(static_cast<int>(-code))));
  if (code == 0) ++under_way_;
  return true;
}

void OfiTransport::Arrive(uint64_t data) {
  const auto cell = static_cast<size_t>(CellOf(data, static_cast<int32_t>(connections_.size())));
  if (cell >= connections_.size() || !HasMark(data, connections_[cell].mark)) return;
  OfiConnection& of = connections_[cell];
  moved_ = true;
  const Status status = of.at.sends ? ArriveTail(of, data) : ArriveHead(of, data);
  if (!status.ok() && failure_.ok()) failure_ = status;
}

Status OfiTransport::ArriveTail(OfiConnection& of, uint64_t data) const {
  const uint64_t known = of.cell->tail.load(std::memory_order_relaxed);
  // Takes may arrive in any order; the highest counts.
  const uint64_t tail = std::max(known, Unwrap(data, known));
  const uint64_t head = of.cell->head.load(std::memory_order_relaxed);
  if (!CountersFit(head, tail, memory_.layout.num_slots)) return WrongSignalOf(of, head, tail);
  of.cell->tail.store(tail, std::memory_order_release);
  return OkStatus();
}

Status OfiTransport::ArriveHead(OfiConnection& of, uint64_t data) {
  uint64_t head = of.cell->head.load(std::memory_order_relaxed);
  const uint64_t message = Unwrap(data, head);
  const auto slots = static_cast<uint64_t>(memory_.layout.num_slots);
  if (message <= head || !CountersFit(message, of.given_back, memory_.layout.num_slots) ||
      of.arrived[(message - 1) % slots])
    return WrongSignalOf(of, message, of.given_back);
  of.arrived[(message - 1) % slots] = true;
  for (; of.arrived[head % slots]; ++head) of.arrived[head % slots] = false;
  of.cell->head.store(head, std::memory_order_release);
  return OkStatus();
}

Status OfiTransport::WrongSignalOf(const OfiConnection& of, uint64_t head, uint64_t tail) const {
  return WrongSignal(fmt::format("rank {}", of.at.peer.value), of.rail->name, of.at.sends, head, tail,
                     memory_.layout.num_slots);
}

Status OfiTransport::ReadError(Rail& rail) {
  fi_cq_err_entry error = {};
  const ssize_t read = fi_cq_readerr(rail.completions.get(), &error, 0);
  if (read < 0)
    return SystemError(
        fmt::format("{}: completions: {}", rail.name, library_.ErrorText(static_cast<int>(-read))));
  // An arrival that broke off may be a stranger's. A peer's is an error of the peer's own write.
  if ((error.flags & FI_REMOTE_WRITE) != 0 || error.op_context == nullptr) return OkStatus();
  const auto& operation = *static_cast<const Operation*>(error.op_context);
  return PeerEnded(fmt::format("write to rank {} over {}: {}",
                               connections_[static_cast<size_t>(operation.place)].at.peer.value, rail.name,
                               library_.ErrorText(error.err)));
}

Status OfiTransport::ReadCompletions(Rail& rail) {
  std::array<fi_cq_data_entry, kBatch> entries;
  while (true) {
    const ssize_t count = fi_cq_read(rail.completions.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) return OkStatus();
    if (count == -FI_EAVAIL) {
      XCCL_RETURN_IF_ERROR(ReadError(rail));
      continue;
    }
    if (count < 0)
      return SystemError(
          fmt::format("{}: completions: {}", rail.name, library_.ErrorText(static_cast<int>(-count))));
    for (const fi_cq_data_entry& entry : std::span(entries).first(static_cast<size_t>(count))) {
      if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
        Arrive(entry.data);
      } else {
        --under_way_;
      }
    }
    if (static_cast<size_t>(count) < entries.size()) return OkStatus();
  }
}

StatusOr<bool> OfiTransport::Progress() {
  moved_ = false;
  for (Rail& rail : rails_) XCCL_RETURN_IF_ERROR(ReadCompletions(rail));
  while (!waiting_.empty() && Post(waiting_.front())) waiting_.pop_front();
  if (!failure_.ok()) return failure_;
  return moved_;
}

bool OfiTransport::PrepareToSleep() {
  for (Rail& rail : rails_) {
    fid* watched[] = {&rail.completions->fid};
    if (fi_trywait(rail.fabric.get(), watched, 1) != 0) return false;
  }
  return true;
}

}  // namespace xccl::ofi
