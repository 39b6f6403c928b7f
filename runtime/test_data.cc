// How a result is exact in any order:
//   integers: they wrap, so sum, min, max and avg take any values; prod takes odd ones, which lose no bits.
//   sum: multiples of one power of two whose total needs no more bits than the type's significand. Where
//     there are too many ranks for that, most of them contribute zero; which ones rotates over the elements.
//   prod: powers of two. Few of them are not one, so no partial product leaves the exponent range.
//   min, max: any finite values but zero (whose two signs compare equal).
//   avg: a rank contributes x with x / n == s after rounding, where s follows the rule for sum. Such pairs
//     are searched for, with the rounding of the definition.
// Collectives that only move data take any bits at all.
#include "runtime/test_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace xccl {
namespace {

constexpr int64_t kShortTable = 1021, kLongTable = 16381;
constexpr int64_t kPhaseStep = 7919, kLapStep = 5081;  // primes: rotations of parts and of laps

struct Format {
  int significand_bits;  // with the implied one
  int product_range;     // powers of two that a product may move up or down
};

Format FormatOf(DataType type) {
  switch (type) {
    case DataType::kHalf:
      return {11, 14};
    case DataType::kFloat:
      return {20, 60};  // fewer than there are: enough
    case DataType::kDouble:
      return {20, 60};
    case DataType::kBfloat16:
      return {8, 60};
    case DataType::kFp8E4m3:
      return {4, 6};
    case DataType::kFp8E5m2:
      return {3, 14};
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64:
      return {0, 0};
  }
  return {0, 0};
}

// The bits of a value that the type holds exactly, in the low bytes.
uint64_t Encode(DataType type, double value) {
  uint64_t bits = 0;
  const float narrow = static_cast<float>(value);
  const auto store = [&](auto x) { std::memcpy(&bits, &x, sizeof x); };
  if (type == DataType::kDouble) store(value);
  if (type == DataType::kFloat) store(narrow);
  if (type == DataType::kHalf) store(FloatToHalf(narrow));
  if (type == DataType::kBfloat16) store(FloatToBfloat16(narrow));
  if (type == DataType::kFp8E4m3) store(FloatToE4m3(narrow));
  if (type == DataType::kFp8E5m2) store(FloatToE5m2(narrow));
  return bits;
}

// SplitMix64's finaliser over a and b.
uint64_t Hash(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15ULL + b * 0xd1342543de82ef95ULL + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// The members that contribute a nonzero value to the sum at element j: `active` of the n members, starting at
// a member that depends on j, so that the exact sum fits the type.
struct Shares {
  int64_t n = 1, active = 1, largest = 1;  // each active one contributes 1..largest
  bool Has(int64_t member, int64_t j) const {
    return (member + static_cast<int64_t>(Hash(77, static_cast<uint64_t>(j)) % static_cast<uint64_t>(n))) %
               n <
           active;
  }
};

Shares SumShares(DataType type, int64_t n) {
  const int64_t most = int64_t{1} << FormatOf(type).significand_bits;
  Shares shares{n, std::clamp<int64_t>(most / 2, 1, n), 1};
  shares.largest = std::min<int64_t>(most / shares.active, 1 << 12);
  return shares;
}

// Inputs x that avg scales to a whole multiple of one unit: x / n rounds to steps × unit, steps
// in 1..largest.
std::vector<uint64_t> AverageInputs(DataType type, int64_t n, int64_t largest) {
  std::vector<uint64_t> found;
  for (int exponent = 0; exponent >= -6 && found.empty(); exponent -= 2) {
    for (int64_t steps = 1; steps <= std::min<int64_t>(largest, 64); ++steps) {
      const double scaled = std::ldexp(static_cast<double>(steps), exponent);
      const uint64_t wanted = Encode(type, scaled), near = Encode(type, scaled * static_cast<double>(n));
      for (uint64_t x = near - 2; x != near + 3; ++x) {
        uint64_t got = 0;
        ScaleReference(type, ReduceOp::kAvg, static_cast<int32_t>(n), &got, &x, 1);
        if (got == wanted) {
          found.push_back(x);
          break;
        }
      }
    }
  }
  return found;
}

uint64_t SignBit(DataType type) { return uint64_t{1} << (8 * SizeOf(type) - 1); }

// One contributor's values.
class Pattern {
 public:
  Pattern(const Collective& collective, DataType type, ReduceOp op)
      : moves_only_(!collective.Reduces()),
        type_(type),
        op_(op),
        shares_(SumShares(type, collective.num_members())) {
    if (op == ReduceOp::kAvg && IsFloating(type))
      average_inputs_ = AverageInputs(type, shares_.n, shares_.largest);
  }

  uint64_t At(int64_t rank, int64_t member, int64_t j) const {
    const uint64_t random = Hash(static_cast<uint64_t>(rank) + 1, static_cast<uint64_t>(j));
    if (moves_only_) return random;
    if (!IsFloating(type_)) return op_ == ReduceOp::kProd ? random | 1 : random;
    const uint64_t common = Hash(0, static_cast<uint64_t>(j));  // equal on all ranks
    const bool negative = (common & 1) != 0;
    const int exponent = static_cast<int>(common >> 1 & 1);
    switch (op_) {
      case ReduceOp::kSum: {
        if (!shares_.Has(member, j)) return 0;
        const double steps = 1 + static_cast<double>(random % static_cast<uint64_t>(shares_.largest));
        return Encode(type_, std::ldexp(negative ? -steps : steps, exponent));
      }
      case ReduceOp::kProd: {
        Shares few = shares_;
        few.active = std::min<int64_t>(few.n, FormatOf(type_).product_range);
        const double sign = (random & 1) != 0 ? -1 : 1;
        return Encode(type_, !few.Has(member, j) ? sign : (random & 2) != 0 ? 2 * sign : 0.5 * sign);
      }
      case ReduceOp::kMin:
      case ReduceOp::kMax: {
        const uint64_t most = uint64_t{1} << FormatOf(type_).significand_bits;
        const double magnitude = 1 + static_cast<double>((random >> 1) % most);
        return Encode(type_, (random & 1) != 0 ? -magnitude : magnitude);
      }
      case ReduceOp::kAvg: {
        if (average_inputs_.empty() || !shares_.Has(member, j)) return 0;
        return average_inputs_[random % average_inputs_.size()] | (negative ? SignBit(type_) : 0);
      }
    }
    return 0;
  }

 private:
  bool moves_only_;
  DataType type_;
  ReduceOp op_;
  Shares shares_;
  std::vector<uint64_t> average_inputs_;
};

// Calls visit(first element, table index, elements) for the runs of a part of `elements` elements.
template <typename Visit>
void ForEachRun(int64_t table, PartId part, int64_t elements, Visit visit) {
  for (int64_t lap = 0; lap * table < elements; ++lap) {
    const int64_t start = (part.value * kPhaseStep + lap % table * kLapStep) % table;
    const int64_t begin = lap * table, in_lap = std::min(table, elements - begin);
    const int64_t until_end = std::min(in_lap, table - start);
    visit(begin, start, until_end);
    if (in_lap > until_end) visit(begin + until_end, int64_t{0}, in_lap - until_end);
  }
}

}  // namespace

StatusOr<TestData> TestData::Create(const Collective& collective, DataType type, ReduceOp op,
                                    int64_t largest_part) {
  if (op == ReduceOp::kAvg && collective.kind() == CollectiveKind::kCustom && collective.Reduces())
    return InvalidInput(collective.name() +
                        ": avg of a user-defined collective is not defined; hint: --redop sum");
  TestData data(collective, type, op);
  data.table_elements_ = largest_part <= 8 * kShortTable ? kShortTable : kLongTable;
  std::vector<Holding> holdings;
  std::map<std::pair<Rank, PartId>, int32_t> before, after;
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    for (const bool first : {true, false}) {
      const ChunkId chunk = collective.FirstChunk(PartId(p));
      if (first)
        collective.Before(chunk, holdings);
      else
        collective.After(chunk, holdings);
      for (const Holding& holding : holdings) {
        const std::vector<Rank> contributions(holding.contributions.begin(), holding.contributions.end());
        (first ? before : after)[{holding.rank, PartId(p)}] = data.TableOf(contributions, !first);
      }
    }
  }
  for (Rank rank : collective.ranks()) {
    for (PartId part : collective.InputParts(rank)) {
      const auto known = before.find({rank, part});
      // Data that a collective does not read (a non-root's input of a broadcast) may be anything: here,
      // zeros' table.
      data.inputs_[rank].push_back(
          {part, known != before.end() ? known->second : data.TableOf({rank}, false)});
    }
    for (PartId part : collective.OutputParts(rank)) {
      const auto known = after.find({rank, part});
      if (known != after.end())
        data.outputs_[rank].push_back({part, known->second});
      else
        data.outputs_[rank].push_back({part, -1});
    }
  }
  return data;
}

int32_t TestData::TableOf(const std::vector<Rank>& contributions, bool complete) {
  complete = complete && op_ == ReduceOp::kAvg && collective_->Reduces();
  const std::pair<std::vector<Rank>, bool> key(contributions, complete);
  if (const auto known = table_ids_.find(key); known != table_ids_.end()) return known->second;
  std::vector<std::byte> table = MakeTable(key.first, complete);  // may add others
  tables_.push_back(std::move(table));
  return table_ids_[key] = static_cast<int32_t>(tables_.size()) - 1;
}

std::vector<std::byte> TestData::MakeTable(const std::vector<Rank>& contributions, bool complete) {
  const int32_t n = collective_->num_members();
  const auto bytes = static_cast<size_t>(table_elements_ * element_bytes_);
  std::vector<std::byte> total;
  if (contributions.size() == 1 && !complete) {
    const Rank rank = contributions[0];
    const Pattern pattern(*collective_, type_, op_);
    const int32_t member = collective_->MemberIndex(rank).value_or(0);
    total.resize(bytes);
    for (int64_t j = 0; j < table_elements_; ++j) {
      const uint64_t bits = pattern.At(rank.value, member, j);
      std::memcpy(total.data() + j * element_bytes_, &bits, static_cast<size_t>(element_bytes_));
    }
    return total;
  }
  for (Rank rank : contributions) {
    std::vector<std::byte> one = tables_[static_cast<size_t>(TableOf({rank}, false))];
    if (complete) ScaleReference(type_, op_, n, one.data(), one.data(), table_elements_);
    if (total.empty())
      total = std::move(one);
    else
      ReduceReference(type_, op_, total.data(), total.data(), one.data(), table_elements_);
  }
  if (complete) FinishReference(type_, op_, n, total.data(), table_elements_);
  return total;
}

void TestData::Fill(const CollectiveSizes& sizes, Rank rank, std::byte* input) const {
  const auto pieces = inputs_.find(rank);
  if (pieces == inputs_.end()) return;
  for (const Piece& piece : pieces->second) {
    const std::byte* table = tables_[piece.table].data();
    ForEachRun(table_elements_, piece.part, sizes.PartElements(piece.part),
               [&](int64_t first, int64_t start, int64_t elements) {
                 std::memcpy(input + first * element_bytes_, table + start * element_bytes_,
                             static_cast<size_t>(elements * element_bytes_));
               });
    input += sizes.PartBytes(piece.part);
  }
}

int64_t TestData::Differences(const CollectiveSizes& sizes, const std::vector<Piece>& pieces,
                              const std::byte* data) const {
  int64_t wrong = 0;
  for (const Piece& piece : pieces) {
    const auto compare = [&](int64_t first, int64_t start, int64_t elements) {
      const std::byte* expected = tables_[piece.table].data() + start * element_bytes_;
      const std::byte* found = data + first * element_bytes_;
      const size_t size = static_cast<size_t>(element_bytes_);
      if (std::memcmp(found, expected, static_cast<size_t>(elements) * size) == 0) return;
      for (int64_t i = 0; i < elements; ++i)
        wrong += std::memcmp(found + i * element_bytes_, expected + i * element_bytes_, size) != 0 ? 1 : 0;
    };
    if (piece.table >= 0) ForEachRun(table_elements_, piece.part, sizes.PartElements(piece.part), compare);
    data += sizes.PartBytes(piece.part);
  }
  return wrong;
}

int64_t TestData::CountWrong(const CollectiveSizes& sizes, Rank rank, const std::byte* output) const {
  const auto pieces = outputs_.find(rank);
  return pieces == outputs_.end() ? 0 : Differences(sizes, pieces->second, output);
}

int64_t TestData::CountChanged(const CollectiveSizes& sizes, Rank rank, const std::byte* input) const {
  const auto pieces = inputs_.find(rank);
  return pieces == inputs_.end() ? 0 : Differences(sizes, pieces->second, input);
}

}  // namespace xccl
