#include "runtime/nccl/shim/takeover.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "runtime/cuda/driver.h"
#include "runtime/nccl/shim/say.h"

namespace xccl::nccl_shim {
namespace {

// The record that a rank sends to the others. Its size is equal in every release.
struct Record {
  std::array<char, 8> magic = {'x', 'c', 'c', 'l', 's', 'h', 'm', '1'};
  uint64_t process = 0;  // ProcessNumber()
  uint64_t number = 0;   // rank 0's: of this communicator in its process
  int32_t device = 0;
  int32_t good = 0;      // this rank has come so far
  xcclUniqueId id = {};  // rank 0's
  std::array<char, 96> unused = {};
};
static_assert(sizeof(Record) == 256);

// One rank among those that this thread drives, and what all ranks of its communicator have said.
struct Seat {
  std::shared_ptr<Member> member;
  cuda::OwnedStream stream;
  Record mine;
  std::vector<Record> all;
  std::string why_not;  // "": nothing has failed

  size_t Place() const { return static_cast<size_t>(member->rank); }
  cuda::DevicePointer PlaceOf(size_t rank) const { return member->records.get() + rank * sizeof(Record); }
  bool AllGood() const {
    return std::ranges::all_of(all, [](const Record& record) { return record.good == 1; });
  }
};

Status Prepare(Seat& seat) {
  const std::shared_ptr<const cuda::Gpu>& gpu = seat.member->gpu;
  seat.all.resize(static_cast<size_t>(seat.member->ranks));
  XCCL_ASSIGN_OR_RETURN(seat.stream, cuda::CreateStream(gpu));
  const cuda::ScopedContext context(*gpu);
  cuda::DevicePointer memory = 0;
  XCCL_RETURN_IF_ERROR(
      gpu->Check(gpu->driver().MemAlloc(&memory, seat.all.size() * sizeof(Record)), "cuMemAlloc"));
  seat.member->records = {gpu, memory};
  return OkStatus();
}

Status Put(const Seat& seat) {
  const cuda::Gpu& gpu = *seat.member->gpu;
  const cuda::ScopedContext context(gpu);
  return gpu.Check(
      gpu.driver().MemcpyHtoDAsync(seat.PlaceOf(seat.Place()), &seat.mine, sizeof(Record), seat.stream.get()),
      "cuMemcpyHtoDAsync");
}

Status Get(Seat& seat) {
  const cuda::Gpu& gpu = *seat.member->gpu;
  const cuda::ScopedContext context(gpu);
  XCCL_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().MemcpyDtoHAsync(seat.all.data(), seat.member->records.get(),
                                             seat.all.size() * sizeof(Record), seat.stream.get()),
                "cuMemcpyDtoHAsync"));
  return cuda::Synchronize(seat.stream);
}

// Communicators that do not block answer later.
int WaitFor(const Nccl& nccl, Member& member) {
  while (true) {
    int result = kSuccess;
    {
      const std::lock_guard lock(member.mutex);
      if (member.aborted) return kInvalidUsage;
      if (const int asked = nccl.CommGetAsyncError(member.nccl, &result); asked != kSuccess) return asked;
    }
    if (result != kInProgress) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int Failed(const Status& status) {
  Say(status.message());
  return kSystemError;
}

// Every rank of each communicator gets what every other says.
int Tell(const Nccl& nccl, std::vector<Seat>& seats) {
  const InsideNccl inside;
  for (Seat& seat : seats) {
    seat.mine.good = seat.why_not.empty() ? 1 : 0;
    if (const Status put = Put(seat); !put.ok()) return Failed(put);
    if (const int result = WaitFor(nccl, *seat.member); result != kSuccess) return result;
  }
  if (const int result = nccl.GroupStart(); result != kSuccess) return result;
  int result = kSuccess;
  for (const Seat& seat : seats)
    if (result == kSuccess || result == kInProgress)
      result = nccl.AllGather(cuda::PointerTo<void>(seat.PlaceOf(seat.Place())),
                              cuda::PointerTo<void>(seat.member->records.get()), sizeof(Record), kUint8,
                              seat.member->nccl, seat.stream.get());
  const int ended = nccl.GroupEnd();
  if (result != kSuccess && result != kInProgress) return result;
  if (ended != kSuccess && ended != kInProgress) return ended;
  for (Seat& seat : seats) {
    if (const int waited = WaitFor(nccl, *seat.member); waited != kSuccess) return waited;
    if (const Status got = Get(seat); !got.ok()) return Failed(got);
  }
  return kSuccess;
}

// Where all ranks of a communicator are in one process, the first to come makes it for all.
xcclResult_t MakeInProcess(const Seat& seat, xcclComm_t* made) {
  struct Waiting {
    std::vector<xcclComm_t> comms;
    size_t left = 0;
  };
  static std::mutex mutex;
  static std::map<uint64_t, Waiting> waiting;
  const std::lock_guard lock(mutex);
  Waiting& family = waiting[seat.all[0].number];
  if (family.comms.empty()) {
    std::vector<int> devices;
    for (const Record& record : seat.all) devices.push_back(record.device);
    std::vector<xcclComm_t> comms(devices.size());
    const xcclResult_t result =
        xcclCommInitAll(comms.data(), static_cast<int>(devices.size()), devices.data());
    if (result != xcclSuccess) return result;
    family = {std::move(comms), devices.size()};
  }
  *made = family.comms[seat.Place()];
  if (--family.left == 0) waiting.erase(seat.all[0].number);
  return xcclSuccess;
}

xcclResult_t MakeAmongProcesses(const Seat& seat, xcclComm_t* made) {
  const xcclResult_t result = xcclCommInitRank(made, seat.member->ranks, seat.all[0].id, seat.member->rank);
  return result == xcclSuccess ? xcclCommUseCuda(*made, seat.mine.device) : result;
}

enum class Place : uint8_t { kOneProcess, kProcesses, kMixed };
Place PlaceOf(const Seat& seat) {
  std::map<uint64_t, size_t> processes;
  for (const Record& record : seat.all) ++processes[record.process];
  if (processes.size() == 1) return Place::kOneProcess;
  return processes.size() == seat.all.size() ? Place::kProcesses : Place::kMixed;
}

// Notes a failure of the C API, whose text is the calling thread's.
void Note(Seat& seat, xcclResult_t result) {
  if (result != xcclSuccess) seat.why_not = xcclGetLastError(nullptr);
}

void Make(Seat& seat) {
  xcclComm_t made = nullptr;
  Note(seat,
       PlaceOf(seat) == Place::kOneProcess ? MakeInProcess(seat, &made) : MakeAmongProcesses(seat, &made));
  const std::lock_guard lock(seat.member->mutex);
  seat.member->ours = made;
  seat.member->family = seat.all[0].process ^ seat.all[0].number;
}

void SayOnce(const Seat& seat, const Coverage& coverage) {
  static std::atomic<bool> said = false;
  if (seat.member->rank != 0 || said.exchange(true)) return;
  Say(fmt::format("{} serves {} of {} ranks; NCCL the rest", coverage.directory(),
                  fmt::join(coverage.Collectives(seat.member->ranks), ", "), seat.member->ranks));
}

// Why the first rank that could not go on could not: each says its own reason, since records have no room.
void SayWhyNot(const Seat& seat) {
  const auto bad = std::ranges::find_if(seat.all, [](const Record& record) { return record.good != 1; });
  if (!seat.why_not.empty())
    Say(fmt::format("rank {} of {}: NCCL runs this communicator: {}", seat.member->rank, seat.member->ranks,
                    seat.why_not));
  else if (seat.member->rank == 0)
    Say(fmt::format("NCCL runs a communicator of {} ranks: see what rank {} says", seat.member->ranks,
                    bad - seat.all.begin()));
}

// Keeps the seats that all ranks want to go on with.
void DropOthers(std::vector<Seat>& seats) {
  for (Seat& seat : seats)
    if (!seat.AllGood()) {
      SayWhyNot(seat);
      seat.member->GiveUp();
    }
  std::erase_if(seats, [](const Seat& seat) { return !seat.AllGood(); });
}

int Agree(const Nccl& nccl, const StatusOr<Coverage>& coverage, std::vector<Seat>& seats) {
  static std::atomic<uint64_t> communicators = 0;
  for (Seat& seat : seats) {
    seat.mine.process = ProcessNumber();
    seat.mine.number = ++communicators;
    seat.mine.device = seat.member->gpu->properties().ordinal;
    if (!coverage.ok()) seat.why_not = coverage.status().message();
  }
  if (const int result = Tell(nccl, seats); result != kSuccess) return result;
  DropOthers(seats);
  for (Seat& seat : seats) {
    if (seat.all[0].magic != Record().magic)
      seat.why_not = "rank 0 has another release of the shim";
    else if (coverage->Collectives(seat.member->ranks).empty())
      seat.why_not = fmt::format("{} has no plan for {} ranks", coverage->directory(), seat.member->ranks);
    else if (PlaceOf(seat) == Place::kMixed)
      seat.why_not = "some of its processes have several ranks; expected one each, or one process";
    else if (PlaceOf(seat) == Place::kProcesses && seat.member->rank == 0)
      Note(seat, xcclGetUniqueId(&seat.mine.id));
  }
  if (const int result = Tell(nccl, seats); result != kSuccess) return result;
  DropOthers(seats);
  // A thread that is in several communicators comes to them in one order on all ranks.
  std::ranges::stable_sort(seats, {}, [](const Seat& seat) {
    return std::string_view(seat.all[0].id.internal, sizeof(xcclUniqueId));
  });
  for (Seat& seat : seats) Make(seat);
  if (const int result = Tell(nccl, seats); result != kSuccess) return result;
  DropOthers(seats);
  for (Seat& seat : seats)
    if (const xcclComm_t ours = seat.member->Ours(); ours != nullptr)
      Note(seat, xcclCommLoadPlanBook(ours, coverage->directory().c_str()));
    else
      seat.why_not = "it was aborted";
  if (const int result = Tell(nccl, seats); result != kSuccess) return result;
  DropOthers(seats);
  static std::once_flag at_exit;
  if (!seats.empty()) std::call_once(at_exit, [] { static_cast<void>(std::atexit(DestroyAll)); });
  for (Seat& seat : seats) {
    seat.member->state = Member::State::kOurs;
    SayOnce(seat, *coverage);
  }
  return kSuccess;
}

}  // namespace

int TakeOver(const Nccl& nccl, const StatusOr<Coverage>& coverage,
             std::span<const std::shared_ptr<Member>> members) {
  std::vector<Seat> seats(members.size());
  int result = kSuccess;
  for (size_t i = 0; i < seats.size() && result == kSuccess; ++i) {
    seats[i].member = members[i];
    const cuda::CaptureRelaxed relaxed(*members[i]->gpu);
    if (const Status prepared = Prepare(seats[i]); !prepared.ok()) result = Failed(prepared);
  }
  if (result == kSuccess && !seats.empty()) {
    const cuda::CaptureRelaxed relaxed(*members[0]->gpu);
    result = Agree(nccl, coverage, seats);
  }
  if (result != kSuccess)
    for (const std::shared_ptr<Member>& member : members)
      if (member->state == Member::State::kUndecided) member->GiveUp();
  return result;
}

}  // namespace xccl::nccl_shim
