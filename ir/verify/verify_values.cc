// Sets of contributions are interned bit sets, so values are small and equal sets have equal ids.
#include "ir/verify/verify_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "base/random.h"
#include "ir/analysis/slot_line.h"
#include "ir/violation.h"

namespace xccl {
namespace {

using SetId = int32_t;

class ContributionSets {
 public:
  explicit ContributionSets(int32_t num_ranks) : words_(static_cast<size_t>(num_ranks + 63) / 64) {}

  // Conditions often name the same ranks in a row by the same span, so the last one is cached.
  SetId Of(std::span<const Rank> ranks) {
    if (last_ && last_ranks_.data() == ranks.data() && last_ranks_.size() == ranks.size()) return *last_;
    std::vector<uint64_t> bits(words_, 0);
    for (Rank r : ranks) bits[r.index() / 64] |= uint64_t{1} << (r.index() % 64);
    last_ranks_ = ranks;
    last_ = Intern(bits);
    return *last_;
  }
  // A rank that is in both sets, if any.
  std::optional<Rank> Common(SetId a, SetId b) const {
    for (size_t w = 0; w < words_; ++w)
      if (const uint64_t both = Word(a, w) & Word(b, w); both != 0)
        return Rank(static_cast<int64_t>(w * 64) + std::countr_zero(both));
    return std::nullopt;
  }
  // Chunks in a row often add the same sets, so the last union is cached.
  SetId Union(SetId a, SetId b) {
    if (last_union_ && last_operands_ == std::pair(a, b)) return *last_union_;
    scratch_.resize(words_);
    for (size_t w = 0; w < words_; ++w) scratch_[w] = Word(a, w) | Word(b, w);
    last_operands_ = {a, b};
    last_union_ = Intern(scratch_);
    return *last_union_;
  }
  uint64_t HashOf(SetId set) const { return hashes_[static_cast<size_t>(set)]; }
  // "0..3, 7"
  std::string Text(SetId set) const {
    std::string text;
    const auto has = [&](size_t r) { return r / 64 < words_ && (Word(set, r / 64) >> (r % 64) & 1) != 0; };
    for (size_t r = 0; r < words_ * 64; ++r) {
      if (!has(r)) continue;
      size_t last = r;
      while (has(last + 1)) ++last;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", r);
      if (last > r) text += fmt::format("{}{}", last > r + 1 ? ".." : ", ", last);
      r = last;
    }
    return text;
  }

 private:
  uint64_t Word(SetId set, size_t w) const { return bits_[static_cast<size_t>(set) * words_ + w]; }
  SetId Intern(const std::vector<uint64_t>& bits) {
    uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (uint64_t word : bits) hash = (hash ^ word ^ hash >> 29) * 0xbf58476d1ce4e5b9ULL;
    const auto [begin, end] = ids_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (std::equal(bits.begin(), bits.end(), bits_.begin() + static_cast<int64_t>(it->second * words_)))
        return static_cast<SetId>(it->second);
    const size_t id = count_++;
    bits_.insert(bits_.end(), bits.begin(), bits.end());
    uint64_t sum = 0;
    for (size_t w = 0; w < words_; ++w)
      for (uint64_t left = bits[w]; left != 0; left &= left - 1)
        sum += Traffic::HashOf(Rank(static_cast<int64_t>(w * 64) + std::countr_zero(left)));
    hashes_.push_back(sum);
    ids_.emplace(hash, id);
    return static_cast<SetId>(id);
  }

  size_t words_, count_ = 0;
  std::span<const Rank> last_ranks_;
  std::optional<SetId> last_, last_union_;
  std::pair<SetId, SetId> last_operands_;
  std::vector<uint64_t> bits_, scratch_;
  std::vector<uint64_t> hashes_;  // by set
  std::unordered_multimap<uint64_t, size_t> ids_;
};

// The contents of a slot.
struct Value {
  enum class Kind : uint8_t {
    kNothing,  // never written
    kSum,      // the sum of the contributions in `set` to `chunk`
    kUnknown,  // follows from something already reported
  };
  Kind kind = Kind::kNothing;
  bool raw = false;  // the rank's own input, not yet scaled by avg
  ChunkId chunk;
  SetId set = 0;
  uint64_t expression = 0;  // a hash of how the sum was added up, which commutes but does not associate
};

uint64_t SumOf(uint64_t a, uint64_t b) { return Mix(Mix(a) + Mix(b)); }

// The values in flight on a connection.
class Fifo {
 public:
  void Push(const Value& value) { values_.push_back(value); }
  Value Pop() {
    const Value value = values_[head_++];
    if (head_ == values_.size()) values_.clear(), head_ = 0;
    return value;
  }

 private:
  std::vector<Value> values_;
  size_t head_ = 0;
};

class Execution {
 public:
  Execution(const Program& program, const Collective& collective, const ProgramIndex& index, bool in_place,
            std::vector<Violation>& violations, ProgramRecord* record)
      : program_(program),
        collective_(collective),
        index_(index),
        in_place_(in_place),
        violations_(violations),
        record_(record),
        sets_(program.ranks.size()),
        under_way_(program.connections.size()) {
    if (record_ != nullptr)
      for (const Connection& connection : program.connections)
        chains_.push_back(Traffic::HashOf(connection.path));
    if (collective.Reduces() && collective.kind() != CollectiveKind::kCustom)
      complete_ = sets_.Of(collective.ranks());
    for (Rank r(0); r.value < program.ranks.size(); ++r.value) Allocate(r);
    std::vector<Holding> holdings;
    for (int32_t c = 0; c < collective.num_chunks(); ++c) {
      collective.Before(ChunkId(c), holdings);
      for (const Holding& holding : holdings) Fill(ChunkId(c), holding);
    }
    for (Memory& memory : memory_) memory.input_slot.clear();
  }

  void Run(int32_t node) {
    node_ = node;
    const Instruction& i = index_.instruction(node);
    if (i.first && !ReadsSource(i.op))
      Report("P9", fmt::format("is first, but {} reads nothing", ToString(i.op)));
    if (i.op == Opcode::kNop && i.final) Report("P9", "is final, but nop makes nothing");
    if (i.op == Opcode::kNop) return;
    const int32_t block = index_.BlockOf(node);
    Memory& memory = memory_[index_.BlockRank(block).index()];
    std::span<const int32_t> in, out;  // connections
    if (Receives(i.op)) in = index_.RecvConnections(block);
    if (Sends(i.op)) out = index_.SendConnections(block);
    for (int32_t k = 0; k < i.count; ++k) {
      std::optional<Value> local;
      if (ReadsSource(i.op)) local = Read(At(memory, i.src, k), i, i.src, k);
      const bool adds = in.size() > 1 || Reduces(i.op);
      Value value;
      if (const Group* fan_in = in.empty() ? nullptr : FanInOf(program_, index_.threadblock(block)))
        value = FanIn(in, local, fan_in->own);
      else if (!in.empty())
        value = local ? Sum(*local, Received(in)) : Received(in);
      else
        value = i.op == Opcode::kReduce ? Sum(ReadSum(At(memory, i.dst, k), i.dst, k), *local) : *local;
      value.raw = false;
      CheckFinal(i, adds, value);
      if (WritesDestination(i.op)) At(memory, i.dst, k) = value;
      for (int32_t connection : out) {
        under_way_[connection].Push(value);
        if (record_ != nullptr && value.kind == Value::Kind::kSum)
          record_->traffic.Add(value.chunk, chains_[connection], sets_.HashOf(value.set));
      }
    }
  }

  void CheckPostcondition() {
    std::vector<Holding> holdings;
    for (int32_t c = 0; c < collective_.num_chunks() && !Full(); ++c) {
      collective_.After(ChunkId(c), holdings);
      std::optional<uint64_t> first;  // expression of a sum
      for (const Holding& holding : holdings) {
        const uint64_t expression = CheckOutput(ChunkId(c), holding);
        if (record_ == nullptr || holding.contributions.size() < 2) continue;
        record_->bitwise_same = record_->bitwise_same && first.value_or(expression) == expression;
        first = expression;
      }
    }
  }

 private:
  struct Memory {
    SlotLine line;
    std::vector<Value> slots = std::vector<Value>(line.size());
    std::vector<std::pair<ChunkId, int32_t>> input_slot = {}, output_slot = {};  // sorted by chunk
  };

  // All operands, added up in order and rounded once: not the same bits as one addition after another.
  Value FanIn(std::span<const int32_t> connections, const std::optional<Value>& local, int32_t own) {
    std::vector<Value> operands;
    for (int32_t connection : connections) operands.push_back(under_way_[connection].Pop());
    if (local) operands.insert(operands.begin() + own, *local);
    Value sum = operands.front();
    uint64_t expression = Mix(operands[0].expression) + Mix(operands[1].expression);
    for (size_t o = 1; o < operands.size(); ++o) {
      sum = Sum(sum, operands[o]);
      if (o > 1) expression = Mix(expression) ^ operands[o].expression;
    }
    if (operands.size() > 2) sum.expression = Mix(expression);
    return sum;
  }

  // Messages of a group are added up as they arrive.
  Value Received(std::span<const int32_t> connections) {
    Value value = under_way_[connections.front()].Pop();
    for (int32_t connection : connections.subspan(1)) value = Sum(value, under_way_[connection].Pop());
    if (connections.size() > 1) value.expression = Mix(value.expression + ++switch_sums_);
    return value;
  }

  void CheckFinal(const Instruction& i, bool adds, const Value& value) {
    if (value.kind != Value::Kind::kSum) return;
    const bool completes = adds && value.set == complete_;
    if (i.final && !completes) Report("P9", "is final, but what it makes is not the complete sum");
    if (!i.final && completes)
      Report("P9", fmt::format("completes the sum of chunk {}; expected final", value.chunk.value));
  }

  static bool Reduces(Opcode op) {
    return op == Opcode::kRecvReduceSend || op == Opcode::kRecvReduceCopy ||
           op == Opcode::kRecvReduceCopySend || op == Opcode::kReduce;
  }
  bool Full() const { return static_cast<int32_t>(violations_.size()) >= kMaxViolations; }

  void Allocate(Rank r) {
    Memory& memory = memory_.emplace_back(Memory{SlotLine(program_, collective_, r, in_place_)});
    const auto index = [&](BufferKind buffer, auto& slots) {
      for (ChunkId chunk : SlotChunks(program_, collective_, r, buffer))
        slots.emplace_back(chunk, static_cast<int32_t>(slots.size()));
    };
    index(BufferKind::kInput, memory.input_slot);
    index(BufferKind::kOutput, memory.output_slot);
  }

  static std::optional<int32_t> Find(const std::vector<std::pair<ChunkId, int32_t>>& slots, ChunkId c) {
    const auto it = std::lower_bound(slots.begin(), slots.end(), std::pair(c, 0));
    if (it == slots.end() || it->first != c) return std::nullopt;
    return it->second;
  }

  void Fill(ChunkId c, const Holding& holding) {
    Memory& memory = memory_[holding.rank.index()];
    if (const std::optional<int32_t> slot = Find(memory.input_slot, c)) {
      const SetId set = sets_.Of(holding.contributions);
      At(memory, {BufferKind::kInput, *slot}, 0) = {Value::Kind::kSum, true, c, set, sets_.HashOf(set)};
    }
  }

  static Value& At(Memory& memory, const Operand& operand, int32_t k) {
    return memory.slots[memory.line.SlotOf(operand) + static_cast<size_t>(k)];
  }

  void Report(const char* rule, std::string text) {
    if (Full()) return;
    violations_.push_back({rule,
                           fmt::format("{}{}", in_place_ ? "in place, " : "", ToString(index_.Site(node_))),
                           std::move(text)});
  }

  Value Written(const Value& value, const Operand& operand, int32_t k) {
    if (value.kind != Value::Kind::kNothing) return value;
    Report("P7", fmt::format("reads {} slot {}, which nothing has written", ToString(operand.buffer),
                             operand.slot + k));
    return {Value::Kind::kUnknown, false, ChunkId(), 0, 0};
  }

  // Reads the src operand; `first` must say whether it is raw input.
  Value Read(const Value& stored, const Instruction& i, const Operand& operand, int32_t k) {
    Value value = Written(stored, operand, k);
    if (value.kind != Value::Kind::kSum) return value;
    const bool expected = value.raw && collective_.Reduces();
    if (i.first != expected)
      Report("P9", expected ? fmt::format("reads the rank's own input in {} slot {}; expected first",
                                          ToString(operand.buffer), operand.slot + k)
                   : collective_.Reduces()
                       ? fmt::format("is first, but {} slot {} is not the rank's own input",
                                     ToString(operand.buffer), operand.slot + k)
                       : fmt::format("is first, but {} adds nothing up", collective_.name()));
    value.raw = false;
    return value;
  }

  // Reads the dst operand of reduce, which is not scaled when it is read.
  Value ReadSum(const Value& stored, const Operand& operand, int32_t k) {
    const Value value = Written(stored, operand, k);
    if (value.kind == Value::Kind::kSum && value.raw)
      Report("P9", fmt::format("adds to the rank's own input in {} slot {}, which avg has not scaled",
                               ToString(operand.buffer), operand.slot + k));
    return value;
  }

  Value Sum(const Value& a, const Value& b) {
    if (a.kind != Value::Kind::kSum || b.kind != Value::Kind::kSum)
      return {Value::Kind::kUnknown, false, ChunkId(), 0, 0};
    Value sum = a;
    if (record_ != nullptr) sum.expression = SumOf(a.expression, b.expression);
    if (a.chunk != b.chunk) {
      Report("P7", fmt::format("adds chunk {} to chunk {}", b.chunk.value, a.chunk.value));
      sum.kind = Value::Kind::kUnknown;
      return sum;
    }
    if (const std::optional<Rank> twice = sets_.Common(a.set, b.set)) {
      Report("P7",
             fmt::format("adds the contribution of rank {} to chunk {} twice", twice->value, a.chunk.value));
      sum.kind = Value::Kind::kUnknown;
      return sum;
    }
    sum.set = sets_.Union(a.set, b.set);
    return sum;
  }

  // Checks a chunk of the output, and returns the expression of its value; 0: none.
  uint64_t CheckOutput(ChunkId c, const Holding& holding) {
    Memory& memory = memory_[holding.rank.index()];
    const std::optional<int32_t> slot = Find(memory.output_slot, c);
    if (!slot || Full()) return 0;
    const Value& value = At(memory, {BufferKind::kOutput, *slot}, 0);
    if (value.kind == Value::Kind::kUnknown) return value.expression;
    const SetId wanted = sets_.Of(holding.contributions);
    std::string seen;
    if (value.kind == Value::Kind::kNothing) {
      seen = "is never written";
    } else if (value.chunk != c) {
      seen = fmt::format("holds chunk {}", value.chunk.value);
    } else if (value.set != wanted) {
      seen = fmt::format("holds the contributions of {}", sets_.Text(value.set));
    } else if (value.raw && collective_.Reduces()) {
      seen = "holds the rank's own input, which avg has not scaled";
    } else {
      return value.expression;
    }
    violations_.push_back(
        {"P8",
         fmt::format("{}rank {} output slot {}", in_place_ ? "in place, " : "", holding.rank.value, *slot),
         fmt::format("{}; expected chunk {} with the contributions of {}", seen, c.value,
                     sets_.Text(wanted))});
    return value.expression;
  }

  const Program& program_;
  const Collective& collective_;
  const ProgramIndex& index_;
  const bool in_place_;
  std::vector<Violation>& violations_;
  ProgramRecord* const record_;
  std::vector<uint64_t> chains_;  // by connection: the hash of its path
  uint64_t switch_sums_ = 0;
  ContributionSets sets_;
  std::optional<SetId> complete_;
  std::vector<Fifo> under_way_;  // by connection
  std::vector<Memory> memory_;   // by rank
  int32_t node_ = 0;
};

}  // namespace

void CheckValues(const Program& program, const Collective& collective, const ProgramIndex& index,
                 const std::vector<int32_t>& order, bool in_place, std::vector<Violation>& violations,
                 ProgramRecord* record) {
  Execution execution(program, collective, index, in_place, violations, record);
  for (int32_t node : order) execution.Run(node);
  execution.CheckPostcondition();
}

}  // namespace xccl
