// Visits the instructions of each rank in order of place. Every slot remembers its last writer and the
// readers since that write. An instruction waits for the last writer of the slots that it reads, and for the
// last writer and the readers of the slots that it writes. With pacing, a link remembers its last sender, for
// which the next sender waits.
#include "ir/lower/dependencies.h"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

#include "ir/analysis/slot_line.h"

namespace xccl::lowering {
namespace {

// An instruction of the rank whose instructions are visited.
struct Site {
  int32_t place;
  int32_t threadblock;
  int32_t index;
};

class RankAccesses {
 public:
  RankAccesses(const Program& program, const Collective& collective, Rank rank,
               std::vector<int32_t> first_links)
      : line_(program, collective, rank, true),
        first_links_(std::move(first_links)),
        slots_(line_.size()),
        blocks_(program.ranks[rank].threadblocks.size()),
        known_(blocks_ * blocks_, -1) {
    const auto links = std::max_element(first_links_.begin(), first_links_.end());
    last_send_.resize(links == first_links_.end() ? 0 : static_cast<size_t>(*links + 1));
  }

  void Visit(const Site& site, const Instruction& instruction, std::vector<Dependency>& waits) {
    waits.clear();
    if (IsIdle(instruction)) return;
    const auto each = [&](const Operand& operand, auto action) {
      for (int32_t i = 0; i < instruction.count; ++i)
        action(slots_[line_.SlotOf(operand) + static_cast<size_t>(i)]);
    };
    // The opcode kReduce reads its destination, too. The write below covers this.
    if (ReadsSource(instruction.op))
      each(instruction.src, [&](Slot& slot) { Wait(site, slot.writer, waits); });
    if (WritesDestination(instruction.op)) {
      each(instruction.dst, [&](Slot& slot) {
        Wait(site, slot.writer, waits);
        for (const Dependency& reader : slot.readers) Wait(site, reader, waits);
      });
    }
    const Dependency self{site.threadblock, site.index};
    if (!first_links_.empty() && Sends(instruction.op)) {
      std::optional<Dependency>& last = last_send_[static_cast<size_t>(first_links_[site.threadblock])];
      Wait(site, last, waits);
      last = self;
    }
    if (ReadsSource(instruction.op)) each(instruction.src, [&](Slot& slot) { slot.readers.push_back(self); });
    if (WritesDestination(instruction.op)) {
      each(instruction.dst, [&](Slot& slot) {
        slot.writer = self;
        slot.readers.clear();
      });
    }
    Reduce(waits);
  }

 private:
  struct Slot {
    std::optional<Dependency> writer;
    std::vector<Dependency> readers;  // since the last write
  };

  // Returns whether the instruction is a copy onto itself, as a copy from input to output may be in place.
  // Such a copy waits for nothing, and nothing waits for it.
  bool IsIdle(const Instruction& instruction) const {
    return instruction.op == Opcode::kCopy && !instruction.first &&
           line_.SlotOf(instruction.src) == line_.SlotOf(instruction.dst);
  }

  void Wait(const Site& site, const std::optional<Dependency>& on, std::vector<Dependency>& waits) {
    if (!on || on->threadblock == site.threadblock) return;
    int32_t& known =
        known_[static_cast<size_t>(site.threadblock) * blocks_ + static_cast<size_t>(on->threadblock)];
    if (known >= on->index) return;
    known = on->index;
    waits.push_back(*on);
  }

  // Keeps one wait for each threadblock: the wait for its last instruction, since its earlier instructions
  // are then done.
  static void Reduce(std::vector<Dependency>& waits) {
    std::sort(waits.begin(), waits.end(), [](const Dependency& a, const Dependency& b) {
      return std::tuple(a.threadblock, -a.index) < std::tuple(b.threadblock, -b.index);
    });
    waits.erase(
        std::unique(waits.begin(), waits.end(),
                    [](const Dependency& a, const Dependency& b) { return a.threadblock == b.threadblock; }),
        waits.end());
  }

  const SlotLine line_;
  const std::vector<int32_t> first_links_;            // by threadblock, dense; empty: no pacing
  std::vector<std::optional<Dependency>> last_send_;  // by first link
  std::vector<Slot> slots_;
  const size_t blocks_;
  std::vector<int32_t> known_;  // [waiting threadblock][awaited threadblock]: the last instruction awaited
};

// Numbers the first links of a rank's connections. Returns, by threadblock, the number of the link on which
// it sends; a threadblock that does not send has number 0.
std::vector<int32_t> FirstLinks(const Program& program, Rank rank) {
  std::vector<LinkId> seen;
  std::vector<int32_t> numbers;
  for (const Threadblock& block : program.ranks[rank].threadblocks) {
    numbers.push_back(0);
    const std::span<const Rank> peers = SendPeers(program, block);
    if (peers.empty()) continue;  // all connections of a group begin with one link
    const std::optional<int32_t> c = FindConnection(program, rank, peers.front(), block.channel);
    const LinkId link = program.connections[static_cast<size_t>(*c)].path.front();
    const auto it = std::find(seen.begin(), seen.end(), link);
    numbers.back() = static_cast<int32_t>(it - seen.begin());
    if (it == seen.end()) seen.push_back(link);
  }
  return numbers;
}

}  // namespace

// Gathers the waits of a rank in order of place, and then stores them in order of threadblock.
void AddDependencies(const Places& places, const Collective& collective, bool pace, Program& program) {
  program.in_place =
      std::ranges::all_of(collective.ranks(), [&](Rank r) { return collective.InPlaceOf(r).has_value(); });
  std::vector<Site> sites;
  std::vector<Dependency> waits, gathered;
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    RankProgram& rank = program.ranks[r];
    if (rank.threadblocks.empty()) continue;
    sites.clear();
    gathered.clear();
    for (size_t tb = 0; tb < rank.threadblocks.size(); ++tb)
      for (size_t i = 0; i < rank.threadblocks[tb].instructions.size(); ++i)
        sites.push_back({places[r][tb][i], static_cast<int32_t>(tb), static_cast<int32_t>(i)});
    std::sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) {
      return std::tuple(a.place, a.threadblock, a.index) < std::tuple(b.place, b.threadblock, b.index);
    });
    RankAccesses accesses(program, collective, r, pace ? FirstLinks(program, r) : std::vector<int32_t>());
    for (const Site& site : sites) {
      Instruction& instruction = rank.threadblocks[static_cast<size_t>(site.threadblock)]
                                     .instructions[static_cast<size_t>(site.index)];
      accesses.Visit(site, instruction, waits);
      instruction.dep_first = static_cast<int32_t>(gathered.size());
      instruction.dep_count = static_cast<int32_t>(waits.size());
      gathered.insert(gathered.end(), waits.begin(), waits.end());
    }
    for (Threadblock& block : rank.threadblocks) {
      for (Instruction& instruction : block.instructions) {
        const auto begin = gathered.begin() + instruction.dep_first;
        instruction.dep_first = static_cast<int32_t>(program.dependencies.size());
        program.dependencies.insert(program.dependencies.end(), begin, begin + instruction.dep_count);
      }
    }
  }
}

}  // namespace xccl::lowering
