#include "runtime/experts/rank.h"

#include <fmt/core.h>

#include <string>

#include "base/random.h"

namespace xccl::dispatch {

std::string ToString(const CallHead& call) {
  const std::string ways = fmt::format(" by the ways of call {}", call.ways);
  switch (call.kind) {
    case CallHead::Kind::kDispatch:
      return fmt::format("call {}, dispatch of {}B rows", call.number, call.row_bytes);
    case CallHead::Kind::kAgain:
      return fmt::format("call {}, dispatch of {}B rows{}", call.number, call.row_bytes, ways);
    case CallHead::Kind::kCombine:
      return fmt::format("call {}, combine of {}B rows of {}{}", call.number, call.row_bytes,
                         xccl::ToString(static_cast<DataType>(call.type)), ways);
  }
  return "";
}

void FailForOther(Endpoint& endpoint, int32_t connection, const CallHead& theirs, const CallHead& mine) {
  endpoint.Fail(InvalidInput(fmt::format("rank {}: {}; expected {}, as on rank {}",
                                         endpoint.wiring().connections[connection].src.value,
                                         ToString(theirs), ToString(mine), endpoint.rank().value)));
}

Status CheckCombineType(DataType type) {
  if (type == DataType::kFloat || type == DataType::kHalf || type == DataType::kBfloat16) return OkStatus();
  return InvalidInput(
      fmt::format("combine: {} rows; expected float, half or bfloat16", xccl::ToString(type)));
}

ExpertRank::Placer KeepRowsOf(int64_t row_bytes) {
  return [row_bytes](Received& received) -> StatusOr<RowPlace> {
    received.rows.resize(static_cast<size_t>(received.num_rows * row_bytes));
    return RowPlace{.rows = received.rows.data(), .row_bytes = row_bytes};
  };
}

ExpertRank::ExpertRank(const ExpertWires& wires, Endpoint& endpoint)
    : wires_(wires),
      endpoint_(endpoint),
      place_(wires.plan->hops.size()),
      finder_(*wires.plan),
      lends_(wires.lend && endpoint.OnOneHost()) {
  lender_.number = static_cast<uint32_t>(SystemRandom());
  for (size_t h = 0; h < wires.plan->hops.size(); ++h) {
    const Hop& hop = wires.plan->hops[h];
    if (hop.from != endpoint.rank() && hop.to != endpoint.rank()) continue;
    with_threads_ = endpoint.At(wires.there[h]).direct != nullptr;
    if (hop.from == endpoint.rank()) {
      place_[h] = static_cast<int32_t>(out_.size());
      out_.push_back(static_cast<int32_t>(h));
    }
    if (hop.to == endpoint.rank()) {
      place_[h] = static_cast<int32_t>(in_.size());
      in_.push_back(static_cast<int32_t>(h));
    }
  }
}

int64_t ExpertRank::BytesThatFit(int64_t header_bytes) const {
  return (endpoint_.slot_bytes() - kMessageHead - header_bytes) / 16 * 16;
}

}  // namespace xccl::dispatch
