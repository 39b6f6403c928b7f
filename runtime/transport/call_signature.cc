#include "runtime/transport/call_signature.h"

#include <fmt/core.h>

namespace xccl {
namespace {

constexpr int kKindBits = 4, kNumberBits = 19, kPlanBits = 16, kRootBits = 20, kOpBits = 4;
constexpr int kNumberAt = 1, kPlanAt = kNumberAt + kNumberBits, kRootAt = kPlanAt + kPlanBits,
              kOpAt = kRootAt + kRootBits, kTypeAt = kOpAt + kOpBits;
static_assert(kTypeAt + 4 == 64 && static_cast<int>(CollectiveKind::kCustom) < 1 << kKindBits);

uint64_t Low(uint64_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

std::string Describe(const CallSignature& call, bool plan) {
  const auto kind = static_cast<CollectiveKind>(Low(call.what, kKindBits));
  std::string text = fmt::format("{} of {} {}", ToString(kind), call.what >> kKindBits,
                                 ToString(static_cast<DataType>(call.which >> kTypeAt)));
  if (IsReduction(kind))
    text += fmt::format(", {}", ToString(static_cast<ReduceOp>(Low(call.which >> kOpAt, kOpBits))));
  if (const uint64_t root = Low(call.which >> kRootAt, kRootBits); root != 0)
    text += fmt::format(", root {}", root - 1);
  if (plan) text += fmt::format(", by plan {} of its books", Low(call.which >> kPlanAt, kPlanBits));
  return text;
}

}  // namespace

uint32_t CallSignature::Number() const { return static_cast<uint32_t>(Low(which >> kNumberAt, kNumberBits)); }

bool CallSignature::IsBefore(const CallSignature& other) const {
  const uint64_t ahead = Low(uint64_t{other.Number()} - Number(), kNumberBits);
  return ahead != 0 && ahead < uint64_t{1} << (kNumberBits - 1);
}

CallSignature SignatureOf(const CallFields& fields) {
  // A collective that only moves data has no operator.
  const ReduceOp op = IsReduction(fields.collective) ? fields.op : ReduceOp::kSum;
  const uint64_t root = fields.root ? static_cast<uint64_t>(fields.root->value) + 1 : 0;
  return {static_cast<uint64_t>(fields.count) << kKindBits | static_cast<uint64_t>(fields.collective),
          static_cast<uint64_t>(fields.type) << kTypeAt | static_cast<uint64_t>(op) << kOpAt |
              Low(root, kRootBits) << kRootAt | Low(fields.plan, kPlanBits) << kPlanAt |
              Low(fields.number, kNumberBits) << kNumberAt | 1};
}

std::string Disagreement(Rank theirs, const CallSignature& their_call, Rank mine,
                         const CallSignature& my_call) {
  const bool plan = their_call.Number() == my_call.Number() && their_call.what == my_call.what &&
                    Describe(their_call, false) == Describe(my_call, false);
  return fmt::format("rank {}: call {} is {}; expected call {}, {}, as on rank {}", theirs.value,
                     their_call.Number(), Describe(their_call, plan), my_call.Number(),
                     Describe(my_call, plan), mine.value);
}

std::string What(const CallSignature& call) { return Describe(call, false); }

std::string ToString(const CallSignature& call) {
  return fmt::format("call {}, {}", call.Number(), What(call));
}

}  // namespace xccl
