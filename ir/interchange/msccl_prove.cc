// Steps become instructions in three passes: the structure is proved on stand-in chunks of one size (P1 to
// P5); the steps are run on symbolic values in an order so found, which tells what every slot holds; and the
// program is written down from that. In place, what is read before anything has written it is the rank's
// input, and all else is output or scratch. Chunks of a part may differ by an element, so that a scratch slot
// for several of them becomes several.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/interchange/msccl_file.h"
#include "ir/program_index.h"
#include "ir/verify/verify_program.h"
#include "ir/violation.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

using msccl::File;
using msccl::FileBlock;
using msccl::FileStep;

// Bytes of a chunk that the executors move at a time, by Protocol: of Simple 4 of NCCL's 8 slots of 512 KiB,
// of LL and LL128 the data of one (msccl_interpreter.h of microsoft/msccl b23e9cd; NCCL's 512 threads × 8
// lines × 8 data bytes, and 640 × 120 elements of 8 bytes with 15 of 16 data).
constexpr std::array<int64_t, kNumProtocols> kPieces = {2LL << 20, 32LL << 10, 576'000};

StatusOr<CollectiveKind> KindOf(const File& file, const ImportOptions& options) {
  if (file.collective == "custom") {
    if (options.collective) return *options.collective;
    return InvalidInput(options.file +
                        ": coll=\"custom\" does not say what is right; expected allreduce, allgather, "
                        "reduce_scatter, alltoall, broadcast or reduce");
  }
  if (file.collective == "reducescatter") return CollectiveKind::kReduceScatter;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce})
    if (file.collective == ToString(kind)) return kind;
  return InvalidInput(fmt::format(
      "{}: coll=\"{}\"; expected allreduce, allgather, reduce_scatter, alltoall, broadcast or reduce",
      options.file, file.collective));
}

// Every connection of a program as a link of its own, and a path over it.
StatusOr<Topology> LinksOf(Program& program) {
  TopologySpec spec;
  spec.name = "msccl";
  spec.hosts.push_back({"h0"});
  for (int32_t r = 0; r < program.ranks.size(); ++r)
    spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), HostId(0), false, false});
  for (Connection& c : program.connections) {
    c.path = {LinkId(static_cast<int64_t>(spec.links.size()))};
    spec.links.push_back({NodeId(c.src.value), NodeId(c.dst.value), 1, 0, 0});
  }
  return Topology::Create(std::move(spec));
}

struct Value {
  int32_t chunk = -1;  // -1: never written
  int32_t set = 0;     // of contributions
  bool raw = false;    // the rank's own input
  int32_t key = -1;    // in scratch: the slot of the program
};

// An instruction whose operands are known slot by slot.
struct Made {
  Opcode op = Opcode::kNop;
  std::vector<Operand> src, dst;
  std::vector<bool> first, final;
  bool after_copies = false;  // reads own input where the copies of WriteDown put it
};

struct Memory {
  int32_t in = 0, out = 0, scratch = 0, shift = 0;
  std::vector<Value> cells;  // output, input, scratch
  std::vector<int32_t> output_chunks, input_chunks;
  std::map<std::pair<int32_t, int32_t>, int32_t> keys;  // by cell and place in a part
  std::vector<std::array<int32_t, 3>> key_of;           // cell, place, chunk
};

class Importer {
 public:
  Importer(const File& file, const ImportOptions& options, const Collective& collective)
      : file_(file),
        options_(options),
        collective_(collective),
        in_place_(file.in_place && !file.out_of_place) {}

  StatusOr<Program> Import() {
    XCCL_RETURN_IF_ERROR(Outline());
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> order, ProveStructure());
    Fill();
    const ProgramIndex index(outline_);
    flight_.resize(outline_.connections.size());
    made_.resize(static_cast<size_t>(index.size()));
    for (const int32_t node : order) XCCL_RETURN_IF_ERROR(Run(index, node));
    XCCL_RETURN_IF_ERROR(CheckOutputs());
    XCCL_RETURN_IF_ERROR(WriteDown(index));
    return std::move(program_);
  }

 private:
  template <typename... Args>
  Status Bad(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(options_.file + ": " + fmt::format(format, std::forward<Args>(args)...));
  }
  const FileStep& StepAt(const ProgramSite& site) const {
    return file_.ranks[site.rank.index()]
        .blocks[static_cast<size_t>(site.threadblock)]
        .steps[static_cast<size_t>(site.index)];
  }
  template <typename... Args>
  Status BadStep(const ProgramSite& site, fmt::format_string<Args...> format, Args&&... args) const {
    if (!StepAt(site).place.empty())
      return InvalidInput(fmt::format("{}: {} {}", options_.file, StepAt(site).place,
                                      fmt::format(format, std::forward<Args>(args)...)));
    return InvalidInput(fmt::format("{}:{}: rank {} threadblock {} step {} {}", options_.file,
                                    StepAt(site).line, site.rank.value, site.threadblock, site.index,
                                    fmt::format(format, std::forward<Args>(args)...)));
  }

  // The step that ends a wait: steps without hasdep, and nops, post nothing, and any later step will do.
  StatusOr<int32_t> Until(const ProgramSite& site, const FileStep& step) const {
    const std::vector<FileStep>& steps =
        file_.ranks[site.rank.index()].blocks[static_cast<size_t>(step.wait_block)].steps;
    for (size_t s = static_cast<size_t>(step.wait_step); s < steps.size(); ++s)
      if (steps[s].posts && steps[s].op != Opcode::kNop) return static_cast<int32_t>(s);
    return BadStep(site, "waits for step {} of threadblock {}; expected hasdep=\"1\" there or later",
                   step.wait_step, step.wait_block);
  }

  // The program with all operands in slot 0 of output: its structure alone.
  Status Outline() {
    outline_.ranks = IdVector<Rank, RankProgram>(file_.ranks.size());
    outline_.slots = file_.slots > 0 ? file_.slots : file_.protocol == Protocol::kSimple ? 2 : 8;
    std::map<std::tuple<Rank, Rank, int32_t>, bool> connections;
    for (Rank r(0); r.value < outline_.ranks.size(); ++r.value) {
      const std::vector<FileBlock>& blocks = file_.ranks[r.index()].blocks;
      for (size_t b = 0; b < blocks.size(); ++b) {
        Threadblock& block = outline_.ranks[r].threadblocks.emplace_back();
        block.channel = blocks[b].channel;
        if (blocks[b].send >= 0) block.send_peer = Rank(blocks[b].send);
        if (blocks[b].recv >= 0) block.recv_peer = Rank(blocks[b].recv);
        if (block.send_peer) connections[{r, *block.send_peer, block.channel}] = true;
        if (block.recv_peer) connections[{*block.recv_peer, r, block.channel}] = true;
        for (const FileStep& step : blocks[b].steps) {
          Instruction i;
          i.op = step.op;
          i.count = step.count;
          i.src.buffer = i.dst.buffer = BufferKind::kOutput;
          widest_ = std::max(widest_, step.count);
          i.dep_first = static_cast<int32_t>(outline_.dependencies.size());
          for (const auto& [on_block, on_step] : step.more_waits) {
            outline_.dependencies.push_back({on_block, on_step});
            ++i.dep_count;
          }
          if (step.wait_block >= 0) {
            const ProgramSite site{r, static_cast<int32_t>(b),
                                   static_cast<int32_t>(block.instructions.size())};
            XCCL_ASSIGN_OR_RETURN(const int32_t until, Until(site, step));
            outline_.dependencies.push_back({step.wait_block, until});
            ++i.dep_count;
          }
          block.instructions.push_back(i);
        }
      }
    }
    for (const auto& [key, unused] : connections) {
      const auto& [src, dst, channel] = key;
      if (src == dst)
        return Bad("rank {} sends to itself on channel {}; expected another rank", src.value, channel);
      outline_.connections.push_back({src, dst, channel, {}});
    }
    return OkStatus();
  }

  StatusOr<std::vector<int32_t>> ProveStructure() const {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kCustom;
    spec.custom_name = "msccl";
    spec.ranks = AllRanks(outline_.ranks.size());
    spec.custom_weights.assign(static_cast<size_t>(widest_), 1);
    for (const Rank r : spec.ranks)
      for (int32_t p = 0; p < widest_; ++p) spec.post.push_back({r, PartId(p), {r}});
    XCCL_ASSIGN_OR_RETURN(const Collective stand_in, Collective::Create(std::move(spec)));
    Program proved = outline_;
    XCCL_ASSIGN_OR_RETURN(const Topology links, LinksOf(proved));
    for (const Violation& violation : VerifyProgram(proved, stand_in, links))
      if (violation.rule <= "P5") return Bad("{}", ToString(violation));
    const ProgramIndex index(outline_);
    return TopologicalOrder(outline_, index, ProgramEdges::kAll);
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
    for (Rank r(0); r.value < outline_.ranks.size(); ++r.value) {
      Memory& memory = memory_.emplace_back();
      for (const ChunkId c : SlotChunks(outline_, collective_, r, BufferKind::kInput))
        memory.input_chunks.push_back(c.value);
      for (const ChunkId c : SlotChunks(outline_, collective_, r, BufferKind::kOutput))
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
    complete_ = SetOf(collective_.ranks());
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
    if (cell < memory.out) return {BufferKind::kOutput, cell};
    return {BufferKind::kScratch, value.key};
  }
  // Where the program writes it; a cell beyond the output is scratch.
  Operand WriteTo(Memory& memory, int32_t cell, Value& value) const {
    value.raw = false;
    if (cell < memory.out) return {BufferKind::kOutput, cell};
    const int32_t place = PlaceOf(value.chunk);
    const auto [at, added] =
        memory.keys.try_emplace({cell, place}, static_cast<int32_t>(memory.key_of.size()));
    if (added) memory.key_of.push_back({cell, place, value.chunk});
    value.key = at->second;
    return {BufferKind::kScratch, value.key};
  }

  Status Add(const ProgramSite& site, Value& to, const Value& value) {
    if (to.chunk != value.chunk) return BadStep(site, "adds chunk {} to chunk {}", value.chunk, to.chunk);
    std::vector<uint64_t> bits = sets_[static_cast<size_t>(to.set)];
    const std::vector<uint64_t>& more = sets_[static_cast<size_t>(value.set)];
    for (size_t w = 0; w < bits.size(); ++w) {
      if ((bits[w] & more[w]) != 0)
        return BadStep(site, "adds a contribution to chunk {} twice: those of ranks {} to those of {}",
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
      return BadStep(site, "has chunk {} of its {}, which ends before", slot, ToString(operand.buffer));
    if (reads && memory.cells[static_cast<size_t>(*cell)].chunk < 0)
      return BadStep(site, "reads chunk {} of its {}, which nothing has written", slot,
                     ToString(operand.buffer));
    return *cell;
  }

  Status Run(const ProgramIndex& index, int32_t node) {
    const ProgramSite site = index.Site(node);
    const FileStep& step = StepAt(site);
    Memory& memory = memory_[site.rank.index()];
    Made& made = made_[static_cast<size_t>(node)].emplace_back();
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
        std::vector<Value>& flight = flight_[static_cast<size_t>(index.RecvConnection(block))];
        size_t& head = heads_[index.RecvConnection(block)];
        const Value received = flight[head++];
        adds = ReadsSource(step.op);
        if (adds) XCCL_RETURN_IF_ERROR(Add(site, value, received));
        if (!adds) value = received;
      }
      if (WritesDestination(step.op)) {
        XCCL_ASSIGN_OR_RETURN(const int32_t cell, ReadCell(site, step.dst, k, step.op == Opcode::kReduce));
        if (cell >= memory.out && cell < memory.out + memory.in && file_.in_place && file_.out_of_place)
          return BadStep(
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
      if (Sends(step.op)) flight_[static_cast<size_t>(index.SendConnection(block))].push_back(value);
    }
    ReadCopies(memory, made);
    if (!copies.src.empty())
      made_[static_cast<size_t>(node)].insert(made_[static_cast<size_t>(node)].begin(), copies);
    return OkStatus();
  }

  // A message of own input and of output, side by side in place, is all from output: the rank copies its own
  // there in any case. Sums differ, for their own input is scaled when it is first read.
  void ReadCopies(const Memory& memory, Made& made) const {
    if (collective_.Reduces() || !Sends(made.op)) return;
    const auto own = [](const Operand& operand) { return operand.buffer == BufferKind::kInput; };
    const auto owns = std::ranges::count_if(made.src, own);
    if (owns == 0 || owns == std::ssize(made.src)) return;
    for (Operand& operand : made.src)
      if (own(operand)) operand = {BufferKind::kOutput, operand.slot + memory.shift};
    made.after_copies = true;
  }

  // Also finds what only in place needs no copy.
  Status CheckOutputs() {
    copies_.resize(memory_.size());
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
        Made& copy = copies_[r];
        copy.op = Opcode::kCopy;
        copy.src.push_back(ReadFrom(memory, slot, value, memory.shift));
        copy.dst.push_back({BufferKind::kOutput, slot});
        copy.first.push_back(collective_.Reduces());
        copy.final.push_back(false);
      }
    }
    return OkStatus();
  }

  // Scratch slots in order of the file's; by diagonals where one holds several places of a part.
  std::vector<int32_t> LayOutScratch(Memory& memory, RankProgram& rank) const {
    std::vector<int32_t> order(memory.key_of.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int32_t>(k);
    std::map<int32_t, int32_t> places;
    bool several = false;
    for (const auto& [cell, place, chunk] : memory.key_of) several |= ++places[cell] > 1;
    std::ranges::sort(order, {}, [&](int32_t k) {
      const auto& [cell, place, chunk] = memory.key_of[static_cast<size_t>(k)];
      return std::pair(several ? cell - place : cell, place);
    });
    std::vector<int32_t> slot_of(order.size());
    for (size_t s = 0; s < order.size(); ++s) {
      slot_of[static_cast<size_t>(order[s])] = static_cast<int32_t>(s);
      rank.scratch.push_back(ChunkId(memory.key_of[static_cast<size_t>(order[s])][2]));
    }
    return slot_of;
  }

  // Appends runs whose operands are consecutive and whose flags are equal. Returns how many there are.
  static int32_t AddRuns(const Made& made, const std::vector<int32_t>& slot_of, Threadblock& block) {
    const auto slot = [&](Operand operand) {
      if (operand.buffer == BufferKind::kScratch) operand.slot = slot_of[static_cast<size_t>(operand.slot)];
      return operand;
    };
    const size_t count = made.first.size();
    int32_t runs = 0;
    for (size_t k = 0; k < count || (k == 0 && made.op == Opcode::kNop); ++k) {
      Instruction next;
      next.op = made.op;
      if (count > 0) {
        next.count = 1;
        if (!made.src.empty()) next.src = slot(made.src[k]);
        if (!made.dst.empty()) next.dst = slot(made.dst[k]);
        next.first = made.first[k];
        next.final = made.final[k];
      }
      const auto follows = [](const Operand& a, const Operand& b, int32_t by) {
        return a.buffer == b.buffer && b.slot == a.slot + by;
      };
      if (runs > 0) {
        Instruction& last = block.instructions.back();
        if (last.first == next.first && last.final == next.final &&
            (made.src.empty() || follows(last.src, next.src, last.count)) &&
            (made.dst.empty() || follows(last.dst, next.dst, last.count))) {
          ++last.count;
          continue;
        }
      }
      block.instructions.push_back(next);
      ++runs;
    }
    return runs;
  }

  Status WriteDown(const ProgramIndex& index) {
    program_ = outline_;
    program_.dependencies.clear();
    program_.protocol = file_.protocol;
    program_.in_place = file_.in_place;
    program_.segment_bytes =
        file_.segment_bytes >= 0 ? file_.segment_bytes : kPieces[static_cast<size_t>(file_.protocol)];
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      RankProgram& rank = program_.ranks[r];
      const std::vector<int32_t> slot_of = LayOutScratch(memory_[r.index()], rank);
      Threadblock copies;
      const int32_t num_copies =
          copies_[r.index()].src.empty() ? 0 : AddRuns(copies_[r.index()], slot_of, copies);
      std::vector<std::vector<int32_t>> last(rank.threadblocks.size());  // by step: its last instruction
      std::vector<std::vector<int32_t>> begin(rank.threadblocks.size());
      for (size_t b = 0; b < rank.threadblocks.size(); ++b) {
        Threadblock& block = rank.threadblocks[b];
        block.instructions.clear();
        const int32_t first = index.BlockFirst(index.RankFirstBlock(r) + static_cast<int32_t>(b));
        for (size_t s = 0; s < file_.ranks[r.index()].blocks[b].steps.size(); ++s) {
          begin[b].push_back(static_cast<int32_t>(block.instructions.size()));
          for (const Made& made : made_[static_cast<size_t>(first) + s]) {
            const int32_t runs = AddRuns(made, slot_of, block);
            if (runs > 1 && (Sends(made.op) || Receives(made.op)))
              return BadStep(
                  {r, static_cast<int32_t>(b), static_cast<int32_t>(s)},
                  "moves chunks that are not side by side in one buffer, or of which only some are "
                  "the rank's own input or complete sums; expected cnt=\"1\" messages there");
          }
          last[b].push_back(static_cast<int32_t>(block.instructions.size()) - 1);
        }
      }
      for (size_t b = 0; b < rank.threadblocks.size(); ++b)
        for (size_t s = 0; s < last[b].size(); ++s) {
          const int32_t node =
              index.BlockFirst(index.RankFirstBlock(r) + static_cast<int32_t>(b)) + static_cast<int32_t>(s);
          Instruction& i = rank.threadblocks[b].instructions[static_cast<size_t>(begin[b][s])];
          i.dep_first = static_cast<int32_t>(program_.dependencies.size());
          for (const Dependency& on : index.Dependencies(node)) {
            program_.dependencies.push_back(
                {on.threadblock, last[static_cast<size_t>(on.threadblock)][static_cast<size_t>(on.index)]});
            ++i.dep_count;
          }
          if (num_copies > 0 && made_[static_cast<size_t>(node)].back().after_copies) {
            program_.dependencies.push_back({static_cast<int32_t>(rank.threadblocks.size()), num_copies - 1});
            ++i.dep_count;
          }
        }
      if (num_copies > 0) rank.threadblocks.push_back(std::move(copies));
    }
    return OkStatus();
  }

  const File& file_;
  const ImportOptions& options_;
  const Collective& collective_;
  const bool in_place_;  // and not out of place
  Program outline_, program_;
  int32_t widest_ = 1, complete_ = -1;
  std::vector<Memory> memory_;
  std::map<std::vector<uint64_t>, int32_t> set_ids_;
  std::vector<std::vector<uint64_t>> sets_;
  std::vector<std::vector<Value>> flight_;  // by connection: all that was sent
  std::map<int32_t, size_t> heads_;         // by connection: how much of it is received
  std::vector<std::vector<Made>> made_;     // by step
  std::vector<Made> copies_;                // by rank
};

}  // namespace

StatusOr<LoweredProgram> msccl::ProveFile(const File& file, const ImportOptions& options) {
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(spec.kind, KindOf(file, options));
  const auto ranks = static_cast<int32_t>(file.ranks.size());
  spec.ranks = AllRanks(ranks);
  if (IsRooted(spec.kind)) spec.root = options.root;
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Collective::Create(std::move(spec)));
  const int32_t parts = whole.num_parts() == 1 ? 1 : ranks;
  if (file.chunks_per_loop % parts != 0)
    return InvalidInput(fmt::format("{}: nchunksperloop=\"{}\"; expected a multiple of {} ranks for {}",
                                    options.file, file.chunks_per_loop, parts, whole.name()));
  const Collective collective = whole.WithChunks(file.chunks_per_loop / parts);
  XCCL_ASSIGN_OR_RETURN(Program program, Importer(file, options, collective).Import());
  Program proved = program;
  XCCL_ASSIGN_OR_RETURN(const Topology links, LinksOf(proved));
  if (const std::vector<Violation> wrong = VerifyProgram(proved, collective, links); !wrong.empty())
    return InvalidInput(fmt::format("{}: {}", options.file, ToString(wrong.front())));
  return LoweredProgram{collective, std::move(program)};
}

}  // namespace xccl
