// Does in host memory what a runtime does for a GPU.
#include "tests/testing/host_machine.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

#include "base/random.h"
#include "ir/kernel/kernel_sizes.h"
#include "ir/sizes.h"
#include "runtime/kernel_table.h"

namespace xccl::testing {
namespace {

constexpr int64_t kAlign = 128;

// Zeroed memory, aligned to a cache line.
class Memory {
 public:
  explicit Memory(int64_t bytes) : data_(static_cast<char*>(std::aligned_alloc(kAlign, Rounded(bytes)))) {
    std::memset(data_, 0, Rounded(bytes));
  }
  ~Memory() { std::free(data_); }
  Memory(Memory&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory& operator=(Memory&&) = delete;
  char* data() const { return data_; }

 private:
  static size_t Rounded(int64_t bytes) {
    return static_cast<size_t>((bytes + 2 * kAlign - 1) / kAlign * kAlign);
  }
  char* data_;
};

// A multicast address range of a switch, which has no memory itself, and the copies that it stands for.
struct Multicast {
  int64_t bytes = 0;
  std::vector<char*> copies;
};
// The multicast ranges of all machines.
std::map<const char*, Multicast>& Multicasts() {
  static std::map<const char*, Multicast> all;
  return all;
}
std::atomic<int64_t> switch_accesses = 0;
int32_t CopiesAt(const char* multicast, char** copies) {
  switch_accesses.fetch_add(1, std::memory_order_relaxed);
  auto at = Multicasts().upper_bound(multicast);
  XCCL_CHECK(at != Multicasts().begin());
  --at;
  XCCL_CHECK(multicast - at->first < at->second.bytes);
  int32_t count = 0;
  for (char* copy : at->second.copies) copies[count++] = copy + (multicast - at->first);
  return count;
}

// One rank's buffers in one launch.
struct UserBuffers {
  std::vector<std::byte> memory;
  int64_t input_at = 0, output_at = 0, input_bytes = 0, output_bytes = 0;
};

// Arbitrary bits for integers; for floating types numbers near one, some of them special.
void Fill(DataType type, bool whole, Random& random, std::byte* to) {
  const double value = whole ? static_cast<double>(1 + random.Below(2)) : random.Unit() * 4 - 2;
  const float narrow = static_cast<float>(value);
  switch (type) {
    case DataType::kFloat:
      std::memcpy(to, &narrow, 4);
      return;
    case DataType::kDouble:
      std::memcpy(to, &value, 8);
      return;
    case DataType::kHalf: {
      const uint16_t bits = FloatToHalf(narrow);
      std::memcpy(to, &bits, 2);
      return;
    }
    case DataType::kBfloat16: {
      const uint16_t bits = FloatToBfloat16(narrow);
      std::memcpy(to, &bits, 2);
      return;
    }
    case DataType::kFp8E4m3:
      *to = std::byte{FloatToE4m3(narrow)};
      return;
    case DataType::kFp8E5m2:
      *to = std::byte{FloatToE5m2(narrow)};
      return;
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64:
      for (int64_t b = 0; b < SizeOf(type); ++b) to[b] = std::byte(random.Below(256));
      return;
  }
}

}  // namespace

Buffers RandomInputs(const Program& program, const Collective& collective, const HostLaunch& launch) {
  const CollectiveSizes sizes(collective, launch.size_bytes, SizeOf(launch.type));
  Random random(7);
  Buffers inputs(static_cast<size_t>(program.ranks.size()));
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    const int64_t elements = LayoutOf(program, collective, sizes, Rank(r), BufferKind::kInput).elements;
    std::vector<std::byte>& input = inputs[static_cast<size_t>(r)];
    input.resize(static_cast<size_t>(elements * SizeOf(launch.type)));
    for (int64_t e = 0; e < elements; ++e)
      Fill(launch.type, launch.whole, random, input.data() + e * SizeOf(launch.type));
  }
  return inputs;
}

struct HostMachine::State {
  const Program& program;
  const Collective& collective;
  device::HostKernel kernel;
  const Protocol protocol;
  const int64_t slot_bytes;
  KernelForm form;
  std::vector<int32_t> table;  // for the interpreter kernel
  std::vector<Memory> memory;
  std::vector<std::vector<device::Connection>> connections;  // by rank
  std::vector<std::vector<device::BlockState>> blocks;
  std::vector<std::vector<device::GroupConnection>> groups;  // by rank
  std::vector<std::vector<device::GroupMember>> members;
  std::vector<const char*> multicasts;
  uint64_t one_space = 0;
  // By rank: the rows of GroupConnection::switch_delta. Window 0 is the rank's buffers.
  std::vector<std::vector<uint64_t>> switch_rows = {};

  ~State() {
    while (!multicasts.empty()) DropMulticast();
  }
  void DropMulticast() {
    const char* const at = multicasts.back();
    munmap(const_cast<char*>(at), static_cast<size_t>(Multicasts()[at].bytes));
    Multicasts().erase(at);
    multicasts.pop_back();
  }

  uint64_t* Counter(uint64_t value) {
    uint64_t* const word = reinterpret_cast<uint64_t*>(memory.emplace_back(kAlign).data());
    *word = value;
    return word;
  }

  // Slots look as if the message before the first had filled every line of LL. Zeros would be taken for the
  // message whose flag wraps to 0.
  void FillWithFlag(uint64_t first_step, char* slots) const {
    const auto flag = static_cast<uint32_t>(first_step);
    for (int64_t at = 0; at < program.slots * slot_bytes; at += sizeof flag)
      std::memcpy(slots + at, &flag, sizeof flag);
  }

  void Connect(uint64_t first_step) {
    connections.resize(static_cast<size_t>(program.ranks.size()));
    switch_rows.assign(connections.size(), std::vector<uint64_t>(2 * device::kWindows, device::kUnmapped));
    blocks.resize(connections.size());
    const int32_t instances = program.instances;
    for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
      connections[r.index()].resize(form.ranks[r].connections.size() * static_cast<size_t>(instances));
      blocks[r.index()].resize(static_cast<size_t>(form.blocks_per_rank * instances));
    }
    for (size_t c = 0; c < program.connections.size(); ++c) {
      const Rank src = program.connections[c].src, dst = program.connections[c].dst;
      for (int32_t i = 0; i < instances; ++i) {
        device::Connection end;
        end.slots = memory.emplace_back(program.slots * slot_bytes).data();
        FillWithFlag(first_step, end.slots);
        end.head = Counter(first_step);
        end.tail = Counter(first_step);
        end.window_delta = &one_space;
        end.slot_bytes = slot_bytes;
        auto* const to_src = reinterpret_cast<device::PeerEntry*>(memory.emplace_back(kAlign).data());
        auto* const to_dst = reinterpret_cast<device::PeerEntry*>(memory.emplace_back(kAlign).data());
        for (const Rank rank : {src, dst}) {
          end.steps = Counter(first_step);
          end.entry_here = rank == src ? to_src : to_dst;
          end.entry_there = rank == src ? to_dst : to_src;
          const std::vector<int32_t>& all = form.ranks[rank].connections;
          const auto k = std::ranges::lower_bound(all, static_cast<int32_t>(c)) - all.begin();
          connections[rank.index()][static_cast<size_t>(k * instances + i)] = end;
        }
      }
    }
  }

  // The slots of a group's members and of its root.
  char* MulticastOfSlots(const std::vector<device::GroupMember>& group, char* own) {
    Multicast made{program.slots * slot_bytes, {own}};
    for (const device::GroupMember& member : group) made.copies.push_back(member.slots);
    return MakeMulticast(std::move(made));
  }
  // Reserves address space; a plain access there faults.
  char* MakeMulticast(Multicast made) {
    void* const at = mmap(nullptr, static_cast<size_t>(made.bytes), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    XCCL_CHECK(at != MAP_FAILED);
    multicasts.push_back(static_cast<char*>(at));
    Multicasts()[multicasts.back()] = std::move(made);
    device::host_switch = CopiesAt;
    return static_cast<char*>(at);
  }

  void ConnectGroups(uint64_t first_step, bool with_switch) {
    const int32_t instances = program.instances;
    groups.resize(static_cast<size_t>(program.ranks.size()));
    for (Rank r(0); r.value < program.ranks.size(); ++r.value)
      groups[r.index()].resize(form.ranks[r].groups.size() * static_cast<size_t>(instances));
    for (size_t g = 0; g < program.groups.size(); ++g) {
      const Group& group = program.groups[g];
      const bool sends = group.kind == Group::Kind::kMulticast;
      const std::vector<int32_t>& own_groups = form.ranks[group.root].groups;
      const auto k = std::ranges::lower_bound(own_groups, static_cast<int32_t>(g)) - own_groups.begin();
      for (int32_t i = 0; i < instances; ++i) {
        std::vector<device::GroupMember>& of_group = members.emplace_back();
        for (Rank m : group.members) {
          const auto c = static_cast<int32_t>(FindBranch(program, group, m));
          const std::vector<int32_t>& all = form.ranks[group.root].connections;
          const auto at = std::ranges::lower_bound(all, c) - all.begin();
          const device::Connection& end =
              connections[group.root.index()][static_cast<size_t>(at * instances + i)];
          of_group.push_back({end.slots, end.head, end.tail, m.value, -1, end.entry_here, end.entry_there});
          if (!HasSwitch(group)) continue;
          const std::vector<int32_t>& of_member = form.ranks[m].connections;
          const auto there = std::ranges::lower_bound(of_member, c) - of_member.begin();
          connections[m.index()][static_cast<size_t>(there * instances + i)].window_delta =
              switch_rows[m.index()].data();
        }
        device::GroupConnection& made = groups[group.root.index()][static_cast<size_t>(k * instances + i)];
        made.members = of_group.data();
        made.count = static_cast<int32_t>(of_group.size());
        made.steps = Counter(first_step);
        made.slot_bytes = slot_bytes;
        if (!HasSwitch(group)) made.own_place = group.own;
        if (!with_switch || !HasSwitch(group)) continue;
        char* const own = memory.emplace_back(program.slots * slot_bytes).data();
        made.multicast = MulticastOfSlots(of_group, own);
        // The switch reaches buffers only if its group has all ranks, because it stores at all of them.
        if (std::ssize(group.members) + 1 == program.ranks.size())
          made.switch_delta = switch_rows[group.root.index()].data();
        if (!sends) made.own = own;
        if (!sends) made.holds = Counter(0);
      }
    }
  }

  // Lets the switch reach all ranks' buffers, until DropMulticast.
  void Register(std::vector<UserBuffers>& user) {
    Multicast made{std::numeric_limits<int64_t>::max(), {}};
    for (UserBuffers& own : user) {
      made.bytes = std::min(made.bytes, std::ssize(own.memory));
      made.copies.push_back(reinterpret_cast<char*>(own.memory.data()));
    }
    const std::vector<char*> begins = made.copies;
    const uint64_t at = reinterpret_cast<uint64_t>(MakeMulticast(std::move(made)));
    constexpr uint64_t kWindow = uint64_t{1} << 48;
    for (size_t r = 0; r < begins.size(); ++r) {
      switch_rows[r][0] = kWindow - reinterpret_cast<uint64_t>(begins[r]);
      switch_rows[r][device::kWindows] = at - kWindow;
    }
  }

  static bool IsInPlace(const HostLaunch& launch, Rank r) {
    return launch.in_place && (launch.apart >> r.value & 1) == 0;
  }
  UserBuffers BuffersOf(Rank r, const CollectiveSizes& sizes, const std::vector<std::byte>& input,
                        const HostLaunch& launch) const {
    const int64_t element = SizeOf(launch.type);
    const std::vector<int64_t> in = PartBegins(collective, sizes, r, BufferKind::kInput);
    const std::vector<int64_t> out = PartBegins(collective, sizes, r, BufferKind::kOutput);
    UserBuffers user;
    user.input_bytes = in.back() * element;
    user.output_bytes = out.back() * element;
    const int64_t skew = launch.scattered ? element : 0;
    user.input_at = kAlign + skew;
    user.output_at = (user.input_at + user.input_bytes) / kAlign * kAlign + kAlign + 2 * skew;
    if (const auto overlap = collective.InPlaceOf(r); IsInPlace(launch, r) && overlap) {
      const auto at = [](const std::vector<int64_t>& begins, int32_t part) {
        return begins[std::min(static_cast<size_t>(part), begins.size() - 1)];
      };
      user.input_at = kAlign + skew + at(out, overlap->input_at_output_part) * element;
      user.output_at = kAlign + skew + at(in, overlap->output_at_input_part) * element;
    }
    user.memory.assign(
        static_cast<size_t>(std::max(user.input_at + user.input_bytes, user.output_at + user.output_bytes) +
                            kAlign),
        std::byte{0xCB});
    std::ranges::copy(input, user.memory.begin() + user.input_at);
    return user;
  }
};

HostMachine::HostMachine(const Program& program, const Collective& collective,
                         const device::HostKernel* kernel, Protocol protocol, int64_t slot_bytes,
                         uint64_t first_step, bool with_switch)
    : state_(new State{program,
                       collective,
                       {},
                       protocol,
                       slot_bytes,
                       MakeKernelForm(program, collective, kernel != nullptr).value(),
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {}}) {
  if (kernel == nullptr) {
    state_->table = KernelTable(program, state_->form).value();
    state_->kernel = device::InterpreterOnHost(state_->table.data(), program.instances);
  } else {
    state_->kernel = *kernel;
  }
  state_->Connect(first_step);
  state_->ConnectGroups(first_step, with_switch);
}
HostMachine::~HostMachine() = default;

int64_t HostMachine::SlotBytesUsed() const {
  int64_t used = 0;
  for (const auto& of_rank : state_->connections)
    for (const device::Connection& end : of_rank)
      used += std::count_if(end.slots, end.slots + state_->program.slots * state_->slot_bytes,
                            [](char byte) { return byte != 0; });
  return used;
}

bool HostMachine::HoldsNeutral() const {
  for (const auto& of_rank : state_->groups)
    for (const device::GroupConnection& group : of_rank)
      if (group.holds != nullptr && *group.holds != 0) return true;
  return false;
}

int64_t HostMachine::SwitchAccesses() { return switch_accesses.load(); }

StatusOr<Buffers> HostMachine::Run(const Buffers& inputs, const HostLaunch& launch) {
  return RunRanks(inputs, launch, 0, state_->program.ranks.size());
}

StatusOr<Buffers> HostMachine::RunRanks(const Buffers& inputs, const HostLaunch& launch, int32_t first_rank,
                                        int32_t ranks) {
  State& s = *state_;
  const CollectiveSizes sizes(s.collective, launch.size_bytes, SizeOf(launch.type));
  XCCL_ASSIGN_OR_RETURN(const int32_t passes,
                        KernelPasses(s.program, s.form, sizes, s.slot_bytes, s.protocol));
  std::vector<UserBuffers> user;
  std::vector<std::vector<int64_t>> tables;
  std::vector<Memory> scratch;
  std::vector<device::RankArgs> rank_args;
  std::vector<device::RankBuffers> buffers;
  const int32_t window = launch.direct || launch.registered ? 0 : -1;
  for (int32_t k = 0; k < ranks; ++k) {
    const Rank r(first_rank + k);
    UserBuffers& own = user.emplace_back(s.BuffersOf(r, sizes, inputs[r.index()], launch));
    scratch.emplace_back(ScratchBytes(s.form, sizes, r));
    rank_args.push_back(
        {s.connections[r.index()].data(), s.blocks[r.index()].data(), s.groups[r.index()].data()});
    // The test chooses the address modulo 16, wherever the vector lies.
    char* const base = reinterpret_cast<char*>(own.memory.data());
    buffers.push_back({base + own.input_at, base + own.output_at, scratch.back().data(), nullptr, nullptr,
                       nullptr, window, window, window, State::IsInPlace(launch, r) ? 1 : 0});
    if (!s.form.tables) continue;
    const size_t first = tables.size();
    tables.push_back(PartBegins(s.collective, sizes, r, BufferKind::kInput));
    tables.push_back(PartBegins(s.collective, sizes, r, BufferKind::kOutput));
    tables.push_back(ScratchRunBegins(s.form, sizes, r));
    buffers.back().input_begin = tables[first].data();
    buffers.back().output_begin = tables[first + 1].data();
    buffers.back().scratch_begin = tables[first + 2].data();
  }
  std::vector<int64_t> parts;
  for (int32_t p = 0; p < s.collective.num_parts(); ++p) parts.push_back(sizes.PartElements(PartId(p)));
  device::ErrorRecord error;
  uint32_t stop = 0;
  device::LaunchArgs args;
  args.ranks = rank_args.data();
  args.buffers = buffers.data();
  args.part_elements = s.form.tables ? parts.data() : nullptr;
  args.elements = !s.form.tables && !parts.empty() ? parts[0] : 0;
  args.error = &error;
  args.stop = &stop;
  args.table = s.table.data();
  args.spin_limit_ns = launch.spin_limit_ns;
  args.jitter = launch.jitter;
  args.first_rank = first_rank;
  args.ranks_here = ranks;
  args.passes = passes;
  args.instances = s.program.instances;
  const bool registered = launch.registered && !s.multicasts.empty();
  if (registered) s.Register(user);
  args.direct = (launch.direct ? device::kDirectPeers : 0) | (registered ? device::kDirectSwitch : 0);
  device::RunOnHost(s.kernel, args, static_cast<device::Type>(launch.type),
                    static_cast<device::Operator>(launch.op), static_cast<device::Protocol>(s.protocol),
                    launch.shape);
  if (registered) s.DropMulticast();
  if (error.state != 0)
    return LimitReached(
        fmt::format("rank {}: threadblock {}, instruction {}, pass {}: wait {} for {}, expected {}, saw {}",
                    error.rank, error.threadblock, error.instruction, error.pass,
                    static_cast<int32_t>(error.wait), error.peer, error.expected, error.seen));
  Buffers outputs(inputs.size());
  for (int32_t k = 0; k < ranks; ++k) {
    const UserBuffers& own = user[static_cast<size_t>(k)];
    const auto begin = own.memory.begin() + own.output_at;
    outputs[static_cast<size_t>(first_rank + k)].assign(begin, begin + own.output_bytes);
    for (size_t b = 0; b < own.memory.size(); ++b) {
      const int64_t at = static_cast<int64_t>(b);
      const bool inside = (at >= own.input_at && at < own.input_at + own.input_bytes) ||
                          (at >= own.output_at && at < own.output_at + own.output_bytes);
      if (!inside && own.memory[b] != std::byte{0xCB})
        return BugError(
            fmt::format("rank {}: byte {} outside of its buffers was written", first_rank + k, at));
    }
  }
  return outputs;
}

}  // namespace xccl::testing
