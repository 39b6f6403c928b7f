#include "interchange/msccl/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ir/analysis/program_index.h"

namespace xccl::msccl {
namespace {

struct Value {
  int32_t chunk = -1;  // -1: never written
  int32_t set = 0;     // index of its set of contributions
  bool raw = false;    // the rank's own input
  int32_t key = -1;    // in scratch of the program: the slot there
};

struct Memory {
  int32_t in = 0, out = 0, scratch = 0, shift = 0;
  std::vector<Value> cells;  // output, input, scratch
  std::vector<int32_t> output_chunks, input_chunks;
  std::map<std::pair<int32_t, int32_t>, int32_t> keys;  // by cell and place in a part
  std::vector<std::array<int32_t, 3>> key_of;           // cell, place, chunk
};

class Runner {
 public:
  Runner(const File& file, std::string_view name, const Collective& collective, const Outline& outline)
      : file_(file),
        name_(name),
        collective_(collective),
        outline_(outline),
        in_place_(file.in_place && !file.out_of_place) {}

  StatusOr<Ran> Make() {
    Fill();
    const ProgramIndex index(outline_.program);
    flight_.resize(outline_.program.connections.size());
    ran_.made.resize(static_cast<size_t>(index.size()));
    for (const int32_t node : outline_.order) XCCL_RETURN_IF_ERROR(Run(index, node));
    XCCL_RETURN_IF_ERROR(CheckOutputs());
    for (Memory& memory : memory_) ran_.scratch.push_back(std::move(memory.key_of));
    return std::move(ran_);
  }

 private:
  template <typename... Args>
  Status Bad(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(fmt::format("{}: {}", name_, fmt::format(format, std::forward<Args>(args)...)));
  }
  template <typename... Args>
  Status BadAt(const ProgramSite& site, fmt::format_string<Args...> format, Args&&... args) const {
    return BadStep(file_, name_, site, fmt::format(format, std::forward<Args>(args)...));
  }

  int32_t SetOf(const std::vector<uint64_t>& bits) {
    const auto [at, added] = set_ids_.try_emplace(bits, static_cast<int32_t>(sets_.size()));
    if (added) sets_.push_back(bits);
    return at->second;
  }
  int32_t SetOf(std::span<const Rank> ranks) {
    std::vector<uint64_t> bits(file_.ranks.size() / 64 + 1);
    for (const Rank r : ranks) bits[r.index() / 64] |= uint64_t{1} << r.index() % 64;
    return SetOf(bits);
  }
  std::string SetText(int32_t set) const {
    std::string text;
    for (size_t r = 0; r < file_.ranks.size(); ++r)
      if ((sets_[static_cast<size_t>(set)][r / 64] >> r % 64 & 1) != 0)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", r);
    return text;
  }

  void Fill() {
    for (Rank r(0); r.value < outline_.program.ranks.size(); ++r.value) {
      Memory& memory = memory_.emplace_back();
      for (const ChunkId c : SlotChunks(outline_.program, collective_, r, BufferKind::kInput))
        memory.input_chunks.push_back(c.value);
      for (const ChunkId c : SlotChunks(outline_.program, collective_, r, BufferKind::kOutput))
        memory.output_chunks.push_back(c.value);
      memory.in = static_cast<int32_t>(memory.input_chunks.size());
      memory.out = static_cast<int32_t>(memory.output_chunks.size());
      memory.scratch = file_.ranks[r.index()].scratch;
      memory.shift = InPlaceShift(collective_, r).value_or(0);
      memory.cells.resize(static_cast<size_t>(memory.in + memory.out + memory.scratch));
      // Each rank holds a contribution of its own to every chunk of its input, or all of it.
      const std::vector<Rank> own = {r};
      for (int32_t slot = 0; slot < memory.in; ++slot)
        memory.cells[static_cast<size_t>(*CellOf(memory, BufferKind::kInput, slot))] = {
            memory.input_chunks[static_cast<size_t>(slot)], SetOf(own), true, -1};
    }
    if (collective_.kind() != CollectiveKind::kCustom) complete_ = SetOf(collective_.ranks());
  }

  std::optional<int32_t> CellOf(const Memory& memory, BufferKind buffer, int64_t slot) const {
    if (buffer == BufferKind::kScratch)
      return slot < memory.scratch ? std::optional<int32_t>(memory.out + memory.in + slot) : std::nullopt;
    const bool input = buffer == BufferKind::kInput;
    const int64_t of_output = input ? slot + memory.shift : slot,
                  of_input = input ? slot : slot - memory.shift;
    if ((in_place_ || !input) && of_output >= 0 && of_output < memory.out) return of_output;
    if ((in_place_ || input) && of_input >= 0 && of_input < memory.in) return memory.out + of_input;
    return std::nullopt;
  }

  int32_t PlaceOf(int32_t chunk) const {
    return chunk - collective_.FirstChunk(collective_.PartOf(ChunkId(chunk))).value;
  }

  // Where the program reads a value that the file has in this cell.
  static Operand ReadFrom(const Memory& memory, int32_t cell, const Value& value, int32_t shift) {
    if (value.raw) {
      const int32_t slot = cell < memory.out ? cell - shift : cell - memory.out;
      return {BufferKind::kInput, slot};
    }
    if (value.key < 0) return {BufferKind::kOutput, cell};
    return {BufferKind::kScratch, value.key};
  }
  // Where the program writes it. A cell beyond the output is scratch, and so is one of the output while it
  // holds a chunk that may differ in size from the one that belongs there.
  Operand WriteTo(Memory& memory, int32_t cell, Value& value) const {
    value.raw = false;
    value.key = -1;
    const int32_t place = PlaceOf(value.chunk);
    if (cell < memory.out && PlaceOf(memory.output_chunks[static_cast<size_t>(cell)]) == place)
      return {BufferKind::kOutput, cell};
    const auto [at, added] =
        memory.keys.try_emplace({cell, place}, static_cast<int32_t>(memory.key_of.size()));
    if (added) memory.key_of.push_back({cell, place, value.chunk});
    value.key = at->second;
    return {BufferKind::kScratch, value.key};
  }

  Status Add(const ProgramSite& site, Value& to, const Value& value) {
    if (to.chunk != value.chunk) return BadAt(site, "adds chunk {} to chunk {}", value.chunk, to.chunk);
    std::vector<uint64_t> bits = sets_[static_cast<size_t>(to.set)];
    const std::vector<uint64_t>& more = sets_[static_cast<size_t>(value.set)];
    for (size_t w = 0; w < bits.size(); ++w) {
      if ((bits[w] & more[w]) != 0)
        return BadAt(site, "adds a contribution to chunk {} twice: those of ranks {} to those of {}",
                     to.chunk, SetText(value.set), SetText(to.set));
      bits[w] |= more[w];
    }
    to.set = SetOf(bits);
    return OkStatus();
  }

  StatusOr<int32_t> ReadCell(const ProgramSite& site, const Operand& operand, int32_t k, bool reads) const {
    const Memory& memory = memory_[site.rank.index()];
    const int64_t slot = int64_t{operand.slot} + k;
    const std::optional<int32_t> cell = CellOf(memory, operand.buffer, slot);
    if (!cell)
      return BadAt(site, "has chunk {} of its {}, which ends before", slot, ToString(operand.buffer));
    if (reads && memory.cells[static_cast<size_t>(*cell)].chunk < 0)
      return BadAt(site, "reads chunk {} of its {}, which nothing has written", slot,
                   ToString(operand.buffer));
    return *cell;
  }

  Status Run(const ProgramIndex& index, int32_t node) {
    const ProgramSite site = index.Site(node);
    const FileStep& step = StepAt(file_, site);
    Memory& memory = memory_[site.rank.index()];
    Made& made = ran_.made[static_cast<size_t>(node)].emplace_back();
    made.op = step.op;
    Made copies;  // a sum in place of the rank's own input: out of place, that is copied first
    copies.op = Opcode::kCopy;
    const int32_t block = index.BlockOf(node);
    for (int32_t k = 0; k < step.count; ++k) {
      Value value;
      bool first = false, adds = false;
      if (ReadsSource(step.op)) {
        XCCL_ASSIGN_OR_RETURN(const int32_t cell, ReadCell(site, step.src, k, true));
        value = memory.cells[static_cast<size_t>(cell)];
        first = value.raw && collective_.Reduces();
        made.src.push_back(ReadFrom(memory, cell, value, memory.shift));
      }
      if (Receives(step.op)) {
        adds = ReadsSource(step.op);
        for (const int32_t connection : index.RecvConnections(block)) {
          const Value received = flight_[static_cast<size_t>(connection)][heads_[connection]++];
          if (adds)
            XCCL_RETURN_IF_ERROR(Add(site, value, received));
          else
            value = received;
          adds |= index.RecvConnections(block).size() > 1;
        }
      }
      if (WritesDestination(step.op)) {
        XCCL_ASSIGN_OR_RETURN(const int32_t cell, ReadCell(site, step.dst, k, step.op == Opcode::kReduce));
        if (cell >= memory.out && cell < memory.out + memory.in && file_.in_place && file_.out_of_place)
          return BadAt(
              site,
              "writes its input; expected that a file for both in place and out of place only reads it");
        if (step.op == Opcode::kReduce) {
          Value sum = memory.cells[static_cast<size_t>(cell)];
          if (sum.raw) {
            copies.src.push_back(ReadFrom(memory, cell, sum, memory.shift));
            copies.dst.push_back(WriteTo(memory, cell, sum));
            copies.first.push_back(collective_.Reduces());
            copies.final.push_back(false);
          }
          XCCL_RETURN_IF_ERROR(Add(site, sum, value));
          value = sum;
          adds = true;
        }
        made.dst.push_back(WriteTo(memory, cell, value));
        memory.cells[static_cast<size_t>(cell)] = value;
      }
      made.first.push_back(first);
      made.final.push_back(adds && collective_.Reduces() && value.set == complete_);
      if (!Sends(step.op)) continue;
      for (const int32_t connection : index.SendConnections(block))
        flight_[static_cast<size_t>(connection)].push_back(value);
    }
    ReadCopies(memory, made);
    if (!copies.src.empty())
      ran_.made[static_cast<size_t>(node)].insert(ran_.made[static_cast<size_t>(node)].begin(), copies);
    return OkStatus();
  }

  // A send that reads own input and output side by side, in place, reads all of it from output instead, since
  // the rank copies its own input there in any case. Reductions are left as they are, because own input is
  // scaled when it is first read.
  void ReadCopies(const Memory& memory, Made& made) const {
    if (collective_.Reduces() || !Sends(made.op)) return;
    const auto own = [](const Operand& operand) { return operand.buffer == BufferKind::kInput; };
    const auto owns = std::ranges::count_if(made.src, own);
    if (owns == 0 || owns == std::ssize(made.src)) return;
    for (Operand& operand : made.src)
      if (own(operand)) operand = {BufferKind::kOutput, operand.slot + memory.shift};
    made.after_copies = true;
  }

  // Checks that every output holds what the collective asks for. Also lists the own input that nothing writes
  // to the output: a rank copies it there unless it runs in place.
  Status CheckOutputs() {
    ran_.copies.resize(memory_.size());
    std::vector<Holding> after;
    std::vector<std::map<int32_t, int32_t>> wanted(memory_.size());  // by rank: set by chunk
    for (int32_t c = 0; c < collective_.num_chunks(); ++c) {
      collective_.After(ChunkId(c), after);
      for (const Holding& holding : after) wanted[holding.rank.index()][c] = SetOf(holding.contributions);
    }
    for (size_t r = 0; r < memory_.size(); ++r) {
      const Memory& memory = memory_[r];
      for (int32_t slot = 0; slot < memory.out; ++slot) {
        const int32_t chunk = memory.output_chunks[static_cast<size_t>(slot)];
        const auto want = wanted[r].find(chunk);
        if (want == wanted[r].end()) continue;
        const Value& value = memory.cells[static_cast<size_t>(slot)];
        if (value.chunk < 0) return Bad("rank {} chunk {} of its output is never written", r, slot);
        if (value.chunk != chunk)
          return Bad("rank {} chunk {} of its output holds chunk {}; expected chunk {}", r, slot, value.chunk,
                     chunk);
        if (value.set != want->second)
          return Bad("rank {} chunk {} of its output holds the contributions of {}; expected those of {}", r,
                     slot, SetText(value.set), SetText(want->second));
        if (!value.raw) continue;
        Made& copy = ran_.copies[r];
        copy.op = Opcode::kCopy;
        copy.src.push_back(ReadFrom(memory, slot, value, memory.shift));
        copy.dst.push_back({BufferKind::kOutput, slot});
        copy.first.push_back(collective_.Reduces());
        copy.final.push_back(false);
      }
    }
    return OkStatus();
  }

  const File& file_;
  const std::string_view name_;
  const Collective& collective_;
  const Outline& outline_;
  const bool in_place_;  // and not out of place
  Ran ran_;
  int32_t complete_ = -1;  // the set of all; -1: of a custom collective
  std::vector<Memory> memory_;
  std::map<std::vector<uint64_t>, int32_t> set_ids_;
  std::vector<std::vector<uint64_t>> sets_;
  std::vector<std::vector<Value>> flight_;  // by connection: all that was sent
  std::map<int32_t, size_t> heads_;         // by connection: how much of it is received
};

}  // namespace

StatusOr<Ran> RunFile(const File& file, std::string_view name, const Collective& collective,
                      const Outline& outline) {
  return Runner(file, name, collective, outline).Make();
}

}  // namespace xccl::msccl
