// To connect: load the kernels, lay out and make the arenas, exchange their handles, map the peers', write
// the tables.
#include "runtime/experts/cuda/gpu_experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "ir/program.h"

namespace xccl::dispatch {

using cuda::DeviceMemory;
using cuda::PointerTo;

namespace {

constexpr auto kPollEvery = std::chrono::microseconds(20);
constexpr size_t kAbortAt = 0, kRecordsAt = 128, kRecordBytes = sizeof(device::ErrorRecord);

// Hands out parts of one range of memory.
class Parts {
 public:
  template <class T>
  T* Take(uint64_t base, int64_t count) {
    const int64_t begin = at_;
    at_ += (count * static_cast<int64_t>(sizeof(T)) + 127) / 128 * 128;
    return PointerTo<T>(base + static_cast<uint64_t>(begin));
  }
  size_t bytes() const { return static_cast<size_t>(at_); }

 private:
  int64_t at_ = 0;
};

// The tables of a handle at an address, and their size.
device::ExpertHandle TablesAt(uint64_t base, const ExpertPlan& plan, size_t& bytes) {
  const Sizes& sizes = plan.sizes;
  const int64_t places = PlacesOf(sizes), entries = MostEntriesOf(sizes), local = sizes.local_experts();
  const int64_t chunks = (places + device::kPlacesOfChunk - 1) / device::kPlacesOfChunk;
  Parts parts;
  device::ExpertHandle tables;
  tables.epoch = parts.Take<uint32_t>(base, 1);
  tables.stamps = parts.Take<uint32_t>(base, places);
  tables.headers = parts.Take<char>(base, places * HeaderBytes(sizes, Call::kDispatch));
  tables.entry_of = parts.Take<int32_t>(base, places * sizes.top_k);
  tables.counts = parts.Take<int32_t>(base, chunks * (local + 1));
  tables.rows = parts.Take<int32_t>(base, 1);
  tables.places = parts.Take<int32_t>(base, places);
  tables.rows_of_home = parts.Take<int32_t>(base, sizes.ranks);
  tables.rows_of_expert = parts.Take<int32_t>(base, local);
  tables.first_of_expert = parts.Take<int32_t>(base, local + 1);
  tables.row_of_entry = parts.Take<int32_t>(base, entries);
  tables.weight_of_entry = parts.Take<float>(base, entries);
  bytes = parts.bytes();
  return tables;
}

StatusOr<int32_t> WorkersOf(const std::string& name, const ExpertPlan& plan,
                            const GpuExpertOptions& options) {
  if (options.workers > 0) return options.workers;
  const auto roles = static_cast<int32_t>(plan.stage_of_depth.size()) + 1;
  const int32_t most = options.max_ctas.value_or(std::max(roles, kDefaultBlocks));
  if (most < roles)
    return InvalidInput(
        fmt::format("{}: {} CTAs on a rank; {} allows {}", name, roles, options.ctas_hint, most));
  return std::min(most / roles, ChooseWorkers(plan));
}

}  // namespace

Status GpuExperts::Check(const std::string& name, const ExpertPlan& plan, const GpuExpertOptions& options) {
  for (size_t depth = 1; depth < plan.stage_of_depth.size(); ++depth)
    if (plan.stage_of_depth[depth] <= plan.stage_of_depth[depth - 1])
      return InvalidInput(name + ": stages: expected them to rise with the depth of the sender");
  if (std::max(PlacesOf(plan.sizes) * plan.sizes.top_k, MostEntriesOf(plan.sizes)) >
      std::numeric_limits<int32_t>::max())
    return InvalidInput(
        fmt::format("{}: {} tokens on each of {} ranks; expected fewer, whose entries 31 bits "
                    "count; hint: plan --tokens",
                    name, plan.sizes.max_tokens, plan.sizes.ranks));
  for (size_t rank = 1; rank < options.host_of.size(); ++rank)
    if (options.host_of[rank] != options.host_of[0])
      return InvalidInput(fmt::format(
          "{}: ranks 0 and {} are on different hosts; expected one host: rows between hosts need "
          "a proxy that "
          "sends messages of dispatch, and collectives alone have one; hint: a communicator on the CPU",
          name, rank));
  return WorkersOf(name, plan, options).status();
}

StatusOr<std::unique_ptr<GpuExperts>> GpuExperts::Connect(std::string name, const ExpertPlan& plan,
                                                          const ExpertImages& images,
                                                          std::vector<LocalExpertRank> ranks,
                                                          Exchange exchange,
                                                          const GpuExpertOptions& options) {
  XCCL_CHECK(!ranks.empty() && !options.types.empty());
  std::unique_ptr<GpuExperts> made(new GpuExperts(std::move(name), plan, std::move(exchange), options));
  XCCL_RETURN_IF_ERROR(Check(made->name_, plan, options));
  for (LocalExpertRank& local : ranks) {
    made->gpus_.emplace(local.gpu->id(), local.gpu);
    made->ranks_.push_back({.local = std::move(local), .arena = {}, .tables = {}});
  }
  XCCL_ASSIGN_OR_RETURN(made->shape_.workers, WorkersOf(made->name_, plan, options));
  made->shape_.back_bytes =
      options.back_bytes > 0 ? (options.back_bytes + 15) / 16 * 16 : 2 * plan.sizes.row_bytes;
  XCCL_RETURN_IF_ERROR(made->LoadKernels(images));
  XCCL_RETURN_IF_ERROR(made->MakeArenas());
  XCCL_RETURN_IF_ERROR(made->MapPeers());
  if (options.share == nullptr) return made;
  made->launched_ = std::vector<std::atomic<bool>>(made->ranks_.size());
  for (RankState& state : made->ranks_) {
    XCCL_ASSIGN_OR_RETURN(state.done, CreateEvent(state.local.gpu, /*timed=*/false));
  }
  return made;
}

GpuExperts::~GpuExperts() {
  if (launched_.empty()) return;
  Abort();
  for (const RankState& state : ranks_) {
    static_cast<void>(Await(state).ok());
    options_.share->orders.Forget(state.done.get());
  }
}

int32_t GpuExperts::dispatch_blocks() const {
  return shape_.workers * (static_cast<int32_t>(plan_.stage_of_depth.size()) + 1);
}

Status GpuExperts::LoadKernels(const ExpertImages& images) {
  if (options_.share == nullptr)
    reservation_ = std::make_unique<cuda::Reservation>(cuda::Residency::OfProcess(), options_.ctas_hint);
  cuda::Reservation& reservation = options_.share == nullptr ? *reservation_ : options_.share->reservation;
  for (const auto& [id, gpu] : gpus_) {
    for (const DataType type : options_.types) {
      if (type != DataType::kFloat && type != DataType::kHalf && type != DataType::kBfloat16)
        return InvalidInput(
            fmt::format("{}: {} rows; expected float, half or bfloat16", name_, ToString(type)));
      XCCL_ASSIGN_OR_RETURN(const std::string image, images(type, gpu->properties().arch));
      XCCL_ASSIGN_OR_RETURN(cuda::Kernel kernel, cuda::Kernel::Load(gpu, image, name_));
      kernels_.emplace(std::pair(id, type), std::move(kernel));
    }
    const auto here = std::ranges::count_if(
        ranks_, [id = id](const RankState& state) { return state.local.gpu->id() == id; });
    const auto blocks = dispatch_blocks() * static_cast<int32_t>(here);
    XCCL_RETURN_IF_ERROR(reservation.Raise(id, gpu->properties().multiprocessors,
                                           kernels_.at({id, options_.types[0]}).MultiprocessorsFor(blocks),
                                           blocks, name_));
  }
  return OkStatus();
}

Status GpuExperts::MakeArenas() {
  layouts_ = LayOut(plan_, shape_);
  std::vector<std::shared_ptr<const cuda::Gpu>> gpus;
  for (const auto& [id, gpu] : gpus_) gpus.push_back(gpu);
  for (RankState& state : ranks_) {
    const int64_t bytes = layouts_.of_rank[state.local.rank].bytes;
    if (bytes > options_.memory_limit)
      return InvalidInput(fmt::format("{}: rank {}: slots need {} bytes; the limit is {} bytes; hint: {}",
                                      name_, state.local.rank, bytes, options_.memory_limit,
                                      options_.memory_hint));
    const cuda::Sharing sharing =
        exchange_.parties == 1 ? cuda::Sharing::kNone : cuda::BestSharing(state.local.gpu->properties());
    if (sharing == cuda::Sharing::kLegacy)
      return InvalidInput(fmt::format(
          "{}: device {} shares memory between processes by legacy IPC; expected file descriptors: "
          "peers may use a rank's slots after its process has given them back",
          name_, state.local.gpu->id()));
    XCCL_ASSIGN_OR_RETURN(state.arena,
                          DeviceMemory::Create(state.local.gpu, static_cast<size_t>(bytes), sharing, gpus,
                                               fmt::format("{}: rank {}", name_, state.local.rank)));
  }
  XCCL_ASSIGN_OR_RETURN(
      record_, cuda::PinnedMemory::Create(ranks_[0].local.gpu, kRecordsAt + ranks_.size() * kRecordBytes));
  return OkStatus();
}

// A parcel holds the shape, then this process's ranks, each with a description of its arena.
Status GpuExperts::MapPeers() {
  Parcel mine;
  AppendNumber(mine, static_cast<uint64_t>(shape_.workers));
  AppendNumber(mine, static_cast<uint64_t>(shape_.back_bytes));
  for (const RankState& state : ranks_) {
    if (exchange_.parties == 1) break;
    XCCL_ASSIGN_OR_RETURN(Parcel arena, state.arena.Export());
    AppendNumber(mine, static_cast<uint64_t>(state.local.rank));
    AppendParcel(mine, std::move(arena));
  }
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange_.all(std::move(mine)));
  const auto ranks = static_cast<size_t>(plan_.sizes.ranks);
  std::map<int32_t, std::vector<uint64_t>> arenas;  // by device: as it sees them
  std::set<size_t> known;
  for (const auto& [id, gpu] : gpus_) arenas[id].resize(ranks);
  for (const RankState& state : ranks_) {
    known.insert(static_cast<size_t>(state.local.rank));
    for (auto& [id, addresses] : arenas) addresses[state.local.rank] = state.arena.address();
  }
  for (size_t p = 0; p < all.size(); ++p) {
    if (static_cast<int32_t>(p) == exchange_.party) continue;
    ParcelReader reader(std::move(all[p]));
    const GpuShape shape{.workers = static_cast<int32_t>(reader.Number()),
                         .back_bytes = static_cast<int64_t>(reader.Number())};
    if (!reader.broken() && shape != shape_)
      return InvalidInput(
          fmt::format("{}: process {} has {} threadblocks for each role, and rows of combine of {} bytes; "
                      "expected {} and "
                      "{}, as process {} has; hint: {}",
                      name_, p, shape.workers, shape.back_bytes, shape_.workers, shape_.back_bytes,
                      exchange_.party, options_.ctas_hint));
    while (!reader.AtEnd()) {
      const uint64_t rank = reader.Number();
      const Parcel arena = reader.One();
      if (reader.broken()) return InvalidInput(name_ + ": a process sent a broken description");
      if (rank >= ranks || !known.insert(rank).second)
        return InvalidInput(fmt::format("{}: rank {} is in two processes", name_, rank));
      for (auto& [id, addresses] : arenas) {
        StatusOr<DeviceMemory> memory = DeviceMemory::Import(gpus_.at(id), arena);
        if (!memory.ok()) return Annotate(memory.status(), fmt::format("{}: rank {}", name_, rank));
        addresses[rank] = memory->address();
        mapped_.push_back(*std::move(memory));
      }
    }
  }
  if (known.size() != ranks)
    return InvalidInput(fmt::format("{}: {} ranks; expected {}", name_, known.size(), ranks));
  XCCL_RETURN_IF_ERROR(WriteTables(arenas));
  // No rank launches before all have mapped.
  return exchange_.all({}).status();
}

Status GpuExperts::WriteTables(const std::map<int32_t, std::vector<uint64_t>>& arenas) {
  for (RankState& state : ranks_) {
    const auto tables_at = [&](uint64_t at) {
      return TablesOf(plan_, shape_, layouts_, state.local.rank, arenas.at(state.local.gpu->id()), at);
    };
    const size_t bytes = tables_at(0).size();
    XCCL_ASSIGN_OR_RETURN(
        state.tables, DeviceMemory::Create(state.local.gpu, bytes, cuda::Sharing::kNone, {},
                                           fmt::format("{}: tables of rank {}", name_, state.local.rank)));
    const std::string tables = tables_at(state.tables.address());
    XCCL_RETURN_IF_ERROR(RunAlone(
        state.local.gpu, "cuMemcpyHtoDAsync of tables", [&](const cuda::Driver& driver, cuda::Stream stream) {
          return driver.MemcpyHtoDAsync(state.tables.address(), tables.data(), tables.size(), stream);
        }));
  }
  return OkStatus();
}

GpuExperts::RankState* GpuExperts::Find(int32_t rank) {
  const auto at = std::ranges::find(ranks_, rank, [](const RankState& state) { return state.local.rank; });
  XCCL_CHECK(at != ranks_.end());
  return &*at;
}
const GpuExperts::RankState* GpuExperts::Find(int32_t rank) const {
  return const_cast<GpuExperts*>(this)->Find(rank);
}

StatusOr<GpuHandle> GpuExperts::MakeHandle(int32_t rank, bool host_counts) const {
  const std::shared_ptr<const cuda::Gpu>& gpu = Find(rank)->local.gpu;
  const cuda::CaptureRelaxed relaxed(*gpu);
  GpuHandle handle;
  size_t bytes = 0;
  TablesAt(0, plan_, bytes);
  XCCL_ASSIGN_OR_RETURN(handle.memory_,
                        DeviceMemory::Create(gpu, bytes, cuda::Sharing::kNone, {},
                                             fmt::format("{}: a handle of rank {}", name_, rank)));
  handle.tables_ = TablesAt(handle.memory_.address(), plan_, bytes);
  if (host_counts) {
    const auto words = static_cast<size_t>(plan_.sizes.local_experts()) + 2;
    XCCL_ASSIGN_OR_RETURN(handle.host_, cuda::PinnedMemory::Create(gpu, words * sizeof(uint32_t)));
    handle.tables_.host_counts = PointerTo<uint32_t>(handle.host_.device());
  }
  return handle;
}

Status GpuExperts::Launch(const RankState& state, device::ExpertArgs& args, DataType type,
                          cuda::Stream stream) {
  XCCL_RETURN_IF_ERROR(Recorded());
  const GpuLayout& layout = layouts_.of_rank[state.local.rank];
  args.launch.error =
      PointerTo<device::ErrorRecord>(record_.device() + kRecordsAt + IndexOf(state) * kRecordBytes);
  args.launch.abort = PointerTo<const uint32_t>(record_.device() + kAbortAt);
  args.launch.stop = PointerTo<uint32_t>(state.arena.address() + static_cast<uint64_t>(layout.stop));
  args.launch.spin_limit_ns = options_.time_limit.count();
  args.rank = PointerTo<const device::ExpertRank>(state.tables.address());
  const cuda::Kernel& kernel = kernels_.at({state.local.gpu->id(), type});
  if (options_.share != nullptr) return LaunchInOrder(state, kernel, args, stream);
  const cuda::ScopedContext context(*state.local.gpu);
  return Annotate(kernel.LaunchWith(&args, args.blocks, /*cooperative=*/false, stream), name_);
}

// A launch into a graph runs when the graph does: it waits for nothing here.
Status GpuExperts::LaunchInOrder(const RankState& state, const cuda::Kernel& kernel, device::ExpertArgs& args,
                                 cuda::Stream stream) {
  const Rank rank(state.local.rank);
  const cuda::Gpu& gpu = *state.local.gpu;
  cuda::LaunchOrders& orders = options_.share->orders;
  const std::lock_guard lock(orders.Turn(rank));
  const cuda::ScopedContext context(gpu);
  const cuda::Driver& driver = gpu.driver();
  cuda::CaptureStatus capture = cuda::CaptureStatus::kNone;
  XCCL_RETURN_IF_ERROR(gpu.Check(driver.StreamIsCapturing(stream, &capture), "cuStreamIsCapturing"));
  const bool captured = capture != cuda::CaptureStatus::kNone;
  if (!captured) XCCL_RETURN_IF_ERROR(orders.Follow(rank, gpu, stream, name_));
  XCCL_RETURN_IF_ERROR(Annotate(kernel.LaunchWith(&args, args.blocks, /*cooperative=*/false, stream), name_));
  if (captured) {
    orders.Captured(rank);
    return OkStatus();
  }
  XCCL_RETURN_IF_ERROR(gpu.Check(driver.EventRecord(state.done.get(), stream), "cuEventRecord"));
  launched_[IndexOf(state)] = true;
  orders.Launched(rank, gpu, stream, state.done.get());
  return OkStatus();
}

Status GpuExperts::CheckDispatch(int64_t row_bytes, int64_t scale_bytes) const {
  if (row_bytes % 16 != 0 || scale_bytes % 16 != 0 || row_bytes + scale_bytes > plan_.sizes.row_bytes)
    return InvalidInput(fmt::format(
        "{}: dispatch: rows of {} bytes with scales of {}; expected multiples of 16, together at most {}",
        name_, row_bytes, scale_bytes, plan_.sizes.row_bytes));
  return OkStatus();
}

Status GpuExperts::Dispatch(int32_t rank, const GpuHandle& handle, const GpuDispatch& buffers,
                            cuda::Stream stream) {
  XCCL_RETURN_IF_ERROR(CheckDispatch(buffers.row_bytes, buffers.scale_bytes));
  device::ExpertArgs args;
  args.handle = handle.tables_;
  const auto place = [](auto*& table, auto* given) {
    if (given != nullptr) table = given;
  };
  place(args.handle.rows, buffers.num_rows);
  place(args.handle.rows_of_home, buffers.rows_of_home);
  place(args.handle.rows_of_expert, buffers.rows_of_expert);
  place(args.handle.first_of_expert, buffers.first_of_expert);
  place(args.handle.row_of_entry, buffers.row_of_entry);
  place(args.handle.weight_of_entry, buffers.weight_of_entry);
  args.call = device::ExpertCall::kDispatch;
  args.blocks = dispatch_blocks();
  args.tokens = buffers.tokens;
  args.own_tokens = buffers.own_tokens;
  args.same_choices = buffers.same_choices ? 1 : 0;
  args.experts = buffers.experts;
  args.wide_experts = buffers.wide_experts ? 1 : 0;
  const int64_t most = MostEntriesOf(plan_.sizes);
  args.most_entries = static_cast<int32_t>(std::min(most, buffers.most_entries.value_or(most)));
  args.weights = buffers.weights;
  args.row_bytes = buffers.row_bytes;
  args.scale_bytes = buffers.scale_bytes;
  args.rows = buffers.rows;
  args.scales = buffers.scales;
  args.received = buffers.received;
  args.received_scales = buffers.received_scales;
  args.told = buffers.told;
  return Launch(*Find(rank), args, options_.types[0], stream);
}

Status GpuExperts::CheckCombine(DataType type, int64_t elements) const {
  if (std::ranges::find(options_.types, type) == options_.types.end())
    return InvalidInput(fmt::format("{}: combine: {} rows; expected one of the types that were connected",
                                    name_, ToString(type)));
  const int64_t bytes = elements * SizeOf(type);
  if (elements < 1 || bytes % 16 != 0 || bytes > shape_.back_bytes)
    return InvalidInput(fmt::format("{}: combine: rows of {} bytes; expected a multiple of 16, at most {}",
                                    name_, bytes, shape_.back_bytes));
  return OkStatus();
}

Status GpuExperts::Combine(int32_t rank, const GpuHandle& handle, const GpuCombine& buffers,
                           cuda::Stream stream) {
  XCCL_RETURN_IF_ERROR(CheckCombine(buffers.type, buffers.elements));
  device::ExpertArgs args;
  args.handle = handle.tables_;
  args.call = device::ExpertCall::kCombine;
  args.blocks = shape_.workers;
  args.outputs_are = buffers.outputs_are;
  args.outputs = buffers.outputs;
  args.result = buffers.result;
  args.back_row_bytes = buffers.elements * SizeOf(buffers.type);
  return Launch(*Find(rank), args, buffers.type, stream);
}

void GpuExperts::Abort(const Status& reason) {
  auto* word = reinterpret_cast<uint32_t*>(record_.host() + kAbortAt);
  std::atomic_ref<uint32_t>(*word).store(1, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  if (aborted_.ok()) aborted_ = reason;
}

// A rank that gives up makes the others leave, so this ends.
Status GpuExperts::Await(const RankState& state) {
  if (!launched_[IndexOf(state)]) return OkStatus();
  const cuda::Gpu& gpu = *state.local.gpu;
  const cuda::CaptureRelaxed relaxed(gpu);
  const cuda::ScopedContext context(gpu);
  while (true) {
    const cuda::Result result = gpu.driver().EventQuery(state.done.get());
    if (result != cuda::Result::kNotReady) return gpu.Check(result, name_ + ": a kernel failed");
    if (const Status failure = Failure(); !failure.ok()) Abort(failure);
    std::this_thread::sleep_for(kPollEvery);
  }
}

Status GpuExperts::Synchronize(int32_t rank) {
  XCCL_RETURN_IF_ERROR(Await(*Find(rank)));
  return Failure();
}

// A rank that leaves since others failed says so, too: that is not the reason.
Status GpuExperts::Recorded() const {
  Status failure, left;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    auto* record = reinterpret_cast<device::ErrorRecord*>(record_.host() + kRecordsAt + i * kRecordBytes);
    if (std::atomic_ref<uint32_t>(record->state).load(std::memory_order_acquire) != 2) continue;
    if (record->wait == device::Wait::kNone) return InvalidInput(Describe(*record));
    (record->wait == device::Wait::kAborted ? left : failure) = LimitReached(Describe(*record));
  }
  if (!failure.ok()) return failure;
  const std::lock_guard lock(mutex_);
  return aborted_.ok() ? left : aborted_;
}

Status GpuExperts::Failure() const {
  XCCL_RETURN_IF_ERROR(Recorded());
  XCCL_RETURN_IF_ERROR(exchange_.check());
  if (launched_.empty()) return OkStatus();
  // Asking for an event's state would end another thread's capture.
  const cuda::CaptureRelaxed relaxed(*ranks_[0].local.gpu);
  for (const RankState& state : ranks_) {
    if (!launched_[IndexOf(state)]) continue;
    const cuda::Gpu& gpu = *state.local.gpu;
    const cuda::ScopedContext context(gpu);
    const cuda::Result result = gpu.driver().EventQuery(state.done.get());
    if (result != cuda::Result::kNotReady)
      XCCL_RETURN_IF_ERROR(gpu.Check(result, name_ + ": a kernel failed"));
  }
  return OkStatus();
}

std::string GpuExperts::Describe(const device::ErrorRecord& record) const {
  const std::string rank = fmt::format("{}: rank {}: ", name_, record.rank);
  std::string place = fmt::format("{}threadblock {}: ", rank, record.threadblock);
  const std::string waited =
      fmt::format("; nothing moved for {} s", std::chrono::duration<double>(options_.time_limit).count());
  switch (record.wait) {
    case device::Wait::kNone:  // the caller's input; any of the rank's threadblocks may be the first to see
                               // it
      if (record.peer == device::kEntries)
        return fmt::format("{}{} entries come; expected at most {}, for which there is room", rank,
                           static_cast<int64_t>(record.seen), record.expected);
      if (record.peer == device::kRows)
        return rank + "combine: the rows are null; expected an address, since rows came";
      if (record.peer == device::kTokens)
        return fmt::format("{}{} tokens; expected 0 to {}", rank, static_cast<int64_t>(record.seen),
                           record.expected);
      if (record.expected == device::kOnce)
        return fmt::format("{}token {}: expert {} twice; expected each at most once", rank, record.peer,
                           record.seen);
      return fmt::format("{}token {}: expert {}; expected -1 to {}", rank, record.peer,
                         static_cast<int64_t>(record.seen), record.expected);
    case device::Wait::kDependency:
      return fmt::format("{}threadblock {} did not come to barrier {}{}", place, record.peer, record.expected,
                         waited);
    case device::Wait::kMessage:
      return fmt::format("{}no message of rank {}{}", place, record.peer, waited);
    case device::Wait::kCredit:
      return fmt::format("{}rank {} frees no slot{}", place, record.peer, waited);
    case device::Wait::kEntry:
    case device::Wait::kDrain:
      return place + "gave up" + waited;
    case device::Wait::kAborted:
      return place + "aborted";
  }
  return place;
}

}  // namespace xccl::dispatch
