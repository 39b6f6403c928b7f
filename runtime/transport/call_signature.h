// The values of a call on which its ranks must agree, in 128 bits, so that they travel with every message and
// an error can name both sides of a disagreement. Zero where a caller does not number its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/numbers.h"

namespace xccl {

struct CallSignature {
  uint64_t what = 0;   // count, collective
  uint64_t which = 0;  // type, operator, root, plan, number of the call; its lowest bit is set
  bool operator==(const CallSignature&) const = default;
  bool IsSet() const { return which != 0; }
  uint32_t Number() const;  // modulo 2^19
  // Earlier of two calls that are not far apart.
  bool IsBefore(const CallSignature& other) const;
};

struct CallFields {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int64_t count = 0;  // below 2^60
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  std::optional<Rank> root;
  uint64_t plan = 0;    // modulo 2^16
  uint64_t number = 1;  // the communicator's calls are numbered from 1
};
CallSignature SignatureOf(const CallFields& fields);

// Two signatures that differ: "rank 1: call 7 is allreduce of 100 float, sum; expected call 7, allreduce of
// 1000 float, sum, as on rank 0".
std::string Disagreement(Rank theirs, const CallSignature& their_call, Rank mine,
                         const CallSignature& my_call);
// "allreduce of 100 float, sum".
std::string What(const CallSignature& call);
// "call 7, allreduce of 100 float, sum".
std::string ToString(const CallSignature& call);

// In front of a message's data in a slot: its call's signature. The data begins at a cache line.
inline constexpr int64_t kMessageHead = 64;
static_assert(sizeof(CallSignature) <= kMessageHead);

}  // namespace xccl
