// A call of one rank as Drive (runtime/drive.h) runs it. Internal to runtime/experts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/received.h"
#include "runtime/drive.h"
#include "runtime/experts/messages.h"
#include "runtime/experts/rank.h"

namespace xccl::dispatch {

// A row's header: home and token; then weights and experts of a dispatch, or the rank whose row it is where
// combine takes no sums on the way. HeaderBytes() are what it takes.
struct RowHead {
  int32_t home = 0, token = 0, from = 0;
};
static_assert(sizeof(RowHead) == 12);
constexpr size_t kChoicesAt = 8;  // bytes from the header's begin
constexpr uint16_t kNoExpert = 0xffff;

// Copies bytes from .. from + count of one row, counted over both arrays, out of them or into them.
template <typename Byte, typename Copy>
void ForParts(const RowArrays<Byte>& arrays, int64_t row, int64_t from, int64_t count, const Copy& copy) {
  const int64_t first = std::clamp<int64_t>(arrays.row_bytes - from, 0, count);
  if (first > 0) copy(arrays.rows + row * arrays.row_bytes + from, int64_t{0}, first);
  if (first < count)
    copy(arrays.beside + row * arrays.beside_bytes + from + first - arrays.row_bytes, first, count - first);
}

// A part of a call shares this with its twin for the other direction.
struct CallPart {
  CallPart(Endpoint& on, const CallHead& of, const RowLayout& rows) : endpoint(on), call(of), layout(rows) {}

  void Open(const std::vector<int32_t>& inward, const std::vector<int32_t>& outward,
            const std::vector<int32_t>& connections, const std::vector<int32_t>& others_connections) {
    for (const int32_t hop : inward) inlets.emplace_back(endpoint, connections[hop], call, layout);
    for (const int32_t hop : outward) {
      outlets.emplace_back(endpoint, connections[hop], call, layout);
      strays.push_back(others_connections[hop]);
    }
  }

  // Fails the call where a rank that this one waits for has left, or is in another call.
  // waits: this rank expects something of the inlet.
  template <typename Waits>
  void LookAround(const Waits& waits) {
    for (const int32_t connection : strays) Inlet(endpoint, connection, call, layout).HasMessage();
    const auto& keys = endpoint.wiring().connections;
    for (size_t i = 0; i < inlets.size(); ++i) {
      const Rank peer = keys[inlets[i].connection()].src;
      if (!waits(i) || !endpoint.HasLeft(peer)) continue;
      endpoint.Progress();  // what it sent before it left still counts
      if (!inlets[i].HasMessage()) FailFor(peer);
    }
    for (const Outlet& outlet : outlets) {
      const Rank peer = keys[outlet.connection()].dst;
      if (outlet.IsFull() && !outlet.ended() && endpoint.HasLeft(peer)) FailFor(peer);
    }
  }
  void FailFor(Rank left) {
    endpoint.FailAsSaid(PeerEnded(fmt::format("rank {}: has left; expected it in {}, with rank {}",
                                              left.value, ToString(call), endpoint.rank().value)));
  }

  template <typename Waits>
  Status Stuck(std::chrono::nanoseconds limit, const Waits& waits) const {
    const auto& keys = endpoint.wiring().connections;
    std::string text = "is about to go on";
    for (const Outlet& outlet : outlets)
      if (outlet.IsFull() && !outlet.ended())
        text = fmt::format("expected rank {} to take rows", keys[outlet.connection()].dst.value);
    for (size_t i = inlets.size(); i-- > 0;)
      if (waits(i)) text = fmt::format("expected rows from rank {}", keys[inlets[i].connection()].src.value);
    return LimitReached(fmt::format("rank {}: {}: {}; nothing moved for {} ms", endpoint.rank().value,
                                    ToString(call), text,
                                    std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()));
  }

  Endpoint& endpoint;
  const CallHead call;
  const RowLayout layout;
  std::vector<Inlet> inlets;
  std::vector<Outlet> outlets;
  std::vector<int32_t> strays;  // connections on which a rank in the other call would send to this one
};

// Drives a part that its maker keeps.
template <typename Part>
Status DrivePart(Part& part, Endpoint& endpoint, std::chrono::nanoseconds limit) {
  struct Kept {
    Part* part;
    bool Round() { return part->Round(); }
    bool MovedAll() const { return part->MovedAll(); }
    bool Done() const { return part->MovedAll() && part->endpoint.Flushed(); }
    void LookAround() { part->LookAround(); }
    Status Stuck() const { return part->Stuck(); }
  };
  return Drive(endpoint, limit, [&] { return Kept{&part}; });
}

}  // namespace xccl::dispatch
