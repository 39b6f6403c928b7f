#include "runtime/cuda/proxy.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>
#include <utility>

#include "base/threads.h"

namespace xccl::cuda {
namespace {

// How long the proxy looks again at once when it has nothing to do, and how long it then sleeps each time.
constexpr int32_t kEagerLooks = 200;
constexpr auto kSleep = std::chrono::microseconds(50);

uint64_t LoadWord(const uint64_t& word, std::memory_order order) {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word)).load(order);
}

// Connections of all ranks: an instance's are channels of their own.
Wiring WiringOf(const Program& program, std::span<const Rails> rails, const ArenaShape& shape) {
  Wiring wiring;
  wiring.ranks = program.ranks.size();
  wiring.slots = shape.slots;
  wiring.slot_bytes = shape.slot_bytes;
  for (size_t c = 0; c < program.connections.size(); ++c) {
    const Connection& one = program.connections[c];
    for (int32_t i = 0; i < shape.instances; ++i) {
      wiring.connections.push_back({one.src, one.dst, one.channel * shape.instances + i});
      if (!rails.empty()) wiring.rails.push_back(rails[c]);
    }
  }
  return wiring;
}

}  // namespace

device::Fifo Proxy::Line::fifo() const {
  device::Fifo fifo;
  fifo.entries = PointerTo<device::FifoEntry>(entries_.device());
  fifo.mask = mask_;
  return fifo;
}

const device::FifoEntry& Proxy::Line::Next() const {
  return reinterpret_cast<const device::FifoEntry*>(entries_.host())[popped_ & mask_];
}

bool Proxy::Line::Drained() const {
  return LoadWord(Next().turn, std::memory_order_acquire) != popped_ + 1 && transport_->Flushed();
}

StatusOr<bool> Proxy::Line::Serve() {
  bool moved = false;
  while (LoadWord(Next().turn, std::memory_order_acquire) == popped_ + 1) {
    const device::FifoWord word = device::DecodeFifoWord(LoadWord(Next().what, std::memory_order_relaxed));
    ++popped_;
    moved = true;
    const int32_t connection = connection_of_[static_cast<size_t>(word.index)];
    if (word.taken) {
      transport_->Take(connection, false);
    } else {
      transport_->Put(connection, word.bytes);
    }
  }
  XCCL_ASSIGN_OR_RETURN(const bool changed, transport_->Progress());
  if (changed && slots_.needs_flush()) XCCL_RETURN_IF_ERROR(ShowWhatArrived());
  return moved || changed;
}

Status Proxy::Line::ShowWhatArrived() {
  const auto* const arrived = reinterpret_cast<const ConnectionCell*>(arrived_.data());
  auto* const shown = reinterpret_cast<ConnectionCell*>(cells_.host());
  bool messages = false;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (layout_.connections[i].sends) {
      shown[i].tail.store(arrived[i].tail.load(std::memory_order_acquire), std::memory_order_release);
    } else {
      const uint64_t head = arrived[i].head.load(std::memory_order_acquire);
      messages = messages || head != seen_[i];
      seen_[i] = head;
    }
  }
  if (!messages) return OkStatus();
  XCCL_RETURN_IF_ERROR(slots_.Flush());
  for (size_t i = 0; i < seen_.size(); ++i)
    if (!layout_.connections[i].sends) shown[i].head.store(seen_[i], std::memory_order_release);
  return OkStatus();
}

Proxy::Proxy(OtherHosts hosts) : hosts_(std::move(hosts)) {}

Proxy::~Proxy() {
  {
    const std::lock_guard lock(mutex_);
    XCCL_CHECK(lines_.empty());
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

StatusOr<Proxy::Line*> Proxy::Connect(const std::shared_ptr<const Gpu>& gpu, const Program& program,
                                      std::span<const Rails> rails, const ArenaShape& shape,
                                      const ArenaLayout& layout, Rank rank,
                                      std::function<void(const Status& reason)> abort) {
  auto line = std::make_unique<Line>();
  line->abort_ = std::move(abort);
  NetworkMemory memory;
  memory.layout = NetworkLayoutOf(WiringOf(program, rails, shape), hosts_.host_of, shape.slots, rank);
  XCCL_CHECK(std::ssize(memory.layout.connections) == layout.cells);
  line->connection_of_.assign(layout.ends.size(), -1);
  for (size_t e = 0; e < layout.ends.size(); ++e)
    if (const std::optional<int32_t>& cell = layout.ends[e].cell)
      line->connection_of_[e] = memory.layout.connections[static_cast<size_t>(*cell)].connection;
  // At least one: a rank without such connections takes part in connecting.
  const auto bytes = [](int64_t wanted) { return static_cast<size_t>(std::max<int64_t>(wanted, 1)); };
  const uint64_t entries = std::bit_ceil(bytes(int64_t{layout.cells} * shape.slots));
  line->mask_ = entries - 1;
  XCCL_RETURN_IF_ERROR(hosts_.agree_on_network());
  XCCL_ASSIGN_OR_RETURN(line->slots_, NetworkSlots::Create(gpu, memory, hosts_.reaches));
  XCCL_ASSIGN_OR_RETURN(line->cells_, PinnedMemory::Create(gpu, bytes(memory.layout.CellsBytes())));
  XCCL_ASSIGN_OR_RETURN(line->entries_, PinnedMemory::Create(gpu, entries * sizeof(device::FifoEntry)));
  line->layout_ = memory.layout;
  memory.cells = reinterpret_cast<ConnectionCell*>(line->cells_.host());
  for (int32_t c = 0; c < layout.cells; ++c) new (memory.cells + c) ConnectionCell();
  if (line->slots_.needs_flush()) {
    XCCL_ASSIGN_OR_RETURN(line->arrived_, HostMemory::Create(memory.layout.CellsBytes()));
    line->seen_.assign(memory.layout.connections.size(), 0);
    memory.cells = reinterpret_cast<ConnectionCell*>(line->arrived_.data());
    for (int32_t c = 0; c < layout.cells; ++c) new (memory.cells + c) ConnectionCell();
  }
  XCCL_ASSIGN_OR_RETURN(line->transport_, hosts_.connect(memory));
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    XCCL_ASSIGN_OR_RETURN(thread_, StartThread([this] { Run(); }));
  }
  lines_.push_back(std::move(line));
  return lines_.back().get();
}

void Proxy::Disconnect(Line* line, std::chrono::nanoseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto drained = [&] {
    const std::lock_guard lock(mutex_);
    return line->failed_ || line->Drained();
  };
  while (!hosts_.failure() && !drained() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kSleep);
  // Its transport stays until the others have taken all; the other lines go on.
  std::unique_ptr<Line> ended;
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(lines_, line, &std::unique_ptr<Line>::get);
  ended = std::move(*at);
  lines_.erase(at);
}

// True: something moved.
bool Proxy::ServeAll() {
  bool moved = false;
  const std::optional<Status> failure = hosts_.failure();
  for (const std::unique_ptr<Line>& line : lines_) {
    if (line->failed_) continue;
    const StatusOr<bool> served = failure ? StatusOr<bool>(*failure) : line->Serve();
    if (served.ok()) {
      moved = moved || *served;
      continue;
    }
    line->failed_ = true;
    if (!failure) hosts_.Tell(served.status(), line->layout_.rank);
    line->abort_(hosts_.failure().value_or(served.status()));
  }
  if (moved) hosts_.note_progress();
  return moved;
}

void Proxy::Run() {
  for (int32_t looks = 0;; ++looks) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      if (ServeAll()) looks = 0;
    }
    if (looks < kEagerLooks) {
      std::this_thread::yield();
    } else {
      looks = kEagerLooks;
      std::this_thread::sleep_for(kSleep);
    }
  }
}

}  // namespace xccl::cuda
