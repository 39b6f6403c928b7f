#include "runtime/nccl/shim/shim.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/c_api/handles.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/nccl/shim/calls.h"
#include "runtime/nccl/shim/counted.h"
#include "runtime/nccl/shim/member.h"
#include "runtime/nccl/shim/say.h"
#include "runtime/nccl/shim/takeover.h"

namespace xccl::nccl_shim {
namespace {

// The shim's settings from the environment. Ranks whose environments differ hang, as with NCCL's own
// variables.
struct Setting {
  bool on = false, says_why = false;  // calls go to NCCL
  StatusOr<Coverage> coverage = OkStatus();
  const cuda::Driver* driver = nullptr;
  CallLogFile* log = nullptr;  // null: calls are not counted
};

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Setting ReadSetting() {
  Setting setting;
  setting.log = TheLog();  // before a communicator of ours
  const std::string_view book = Variable("XCCL_BOOK");
  if (book.empty() || Variable("XCCL_NCCL") == "0") return setting;
  const StatusOr<const cuda::Driver*> driver = c_api::TheGpus().driver();
  if (!driver.ok()) {
    Say(driver.status().message());
    return setting;
  }
  setting.driver = *driver;
  const std::string_view debug = Variable("XCCL_NCCL_DEBUG");
  setting.says_why = !debug.empty() && debug != "0";
  setting.coverage = Coverage::Read(std::string(book));
  setting.on = true;
  return setting;
}

struct Holder {
  std::mutex mutex;  // guards what follows
  std::shared_ptr<const Setting> setting;
};
Holder& TheHolder() {
  static Holder& holder = *new Holder;
  return holder;
}

std::shared_ptr<const Setting> TheSetting() {
  Holder& holder = TheHolder();
  const std::lock_guard lock(holder.mutex);
  if (holder.setting == nullptr) holder.setting = std::make_shared<const Setting>(ReadSetting());
  return holder.setting;
}

struct Deferred {
  std::shared_ptr<Member> member;
  NcclCall call;
};
struct Group {
  int depth = 0;
  std::vector<Deferred> calls;
};
thread_local Group group;

bool IsCaptured(const cuda::Gpu& gpu, void* stream) {
  const cuda::ScopedContext context(gpu);
  cuda::CaptureStatus capture = cuda::CaptureStatus::kNone;
  const cuda::Result result = gpu.driver().StreamIsCapturing(static_cast<cuda::Stream>(stream), &capture);
  return result != cuda::Result::kSuccess || capture != cuda::CaptureStatus::kNone;
}

// Null where a plan runs the call. Requires: the member's ranks have agreed.
const char* WhyNot(const Setting& setting, const Member& member, const NcclCall& call) {
  if (member.state != Member::State::kOurs) return "its communicator is NCCL's";
  return setting.coverage->WhyNot(call, member.ranks);
}

bool IsFailure(int result) { return result != kSuccess && result != kInProgress; }

// Requires: the program makes the call, and not NCCL.
int CallCounted(const Nccl& nccl, const Setting& setting, const NcclCall& call, NcclComm comm) {
  const int result = CallNccl(nccl, call, comm);
  if (setting.log != nullptr && !IsFailure(result)) CountNcclCall(nccl, call, comm, *setting.log);
  return result;
}

int RunByNccl(const Nccl& nccl, const Setting& setting, Member& member, const NcclCall& call,
              const char* why) {
  if (setting.says_why) SayFallback(member, call, why);
  return CallCounted(nccl, setting, call, member.nccl);
}

// All of them in one group of NCCL's, as the program asked for.
int RunByNccl(const Nccl& nccl, const Setting& setting, const std::vector<Deferred>& calls) {
  const InsideNccl inside;
  if (const int result = nccl.GroupStart(); result != kSuccess) return result;
  int failed = kSuccess;
  for (const Deferred& each : calls) {
    const int result =
        RunByNccl(nccl, setting, *each.member, each.call, WhyNot(setting, *each.member, each.call));
    if (IsFailure(result) && !IsFailure(failed)) failed = result;
  }
  const int ended = nccl.GroupEnd();
  return IsFailure(failed) ? failed : ended;
}

// The calls of a communicator's ranks in turn: the k-th of each before the next of any, since the first call
// of a type may have to wait for what runs. Communicators come in the order in which they are first called.
int RunOurs(const std::vector<Deferred>& calls) {
  struct Turn {
    size_t family = 0, nth = 0;
    const Deferred* call = nullptr;
  };
  std::vector<uint64_t> families;
  std::vector<std::pair<const Member*, size_t>> counts;
  std::vector<Turn> turns;
  for (const Deferred& each : calls) {
    auto family = std::ranges::find(families, each.member->family);
    if (family == families.end()) family = families.insert(families.end(), each.member->family);
    auto count = std::ranges::find(counts, each.member.get(), &std::pair<const Member*, size_t>::first);
    if (count == counts.end()) count = counts.insert(counts.end(), {each.member.get(), 0});
    turns.push_back({static_cast<size_t>(family - families.begin()), count->second++, &each});
  }
  std::ranges::stable_sort(turns, {}, [](const Turn& turn) { return std::pair(turn.family, turn.nth); });
  for (const Turn& turn : turns)
    if (const int result = CallOurs(*turn.call->member, turn.call->call); result != kSuccess) return result;
  return kSuccess;
}

int RunDeferred(const Nccl& nccl, const Setting& setting, std::vector<Deferred> calls) {
  std::vector<std::shared_ptr<Member>> undecided;
  for (const Deferred& each : calls)
    if (each.member->state == Member::State::kUndecided &&
        std::ranges::find(undecided, each.member) == undecided.end())
      undecided.push_back(each.member);
  if (!undecided.empty())
    if (const int result = TakeOver(nccl, setting.coverage, undecided); result != kSuccess) return result;
  std::vector<Deferred> nccls, ours;
  for (Deferred& each : calls)
    (WhyNot(setting, *each.member, each.call) == nullptr ? ours : nccls).push_back(std::move(each));
  int result = kSuccess;
  if (!nccls.empty()) result = RunByNccl(nccl, setting, nccls);
  if (IsFailure(result)) return result;
  const int run = RunOurs(ours);
  return run == kSuccess ? result : run;
}

// The member that a call may be run for; null where NCCL runs it whatever the book says.
std::shared_ptr<Member> MemberFor(const Nccl& nccl, const Setting& setting, const NcclCall& call,
                                  NcclComm comm) {
  if (!setting.on || comm == nullptr || InsideNccl::Here()) return nullptr;
  std::shared_ptr<Member> member;
  // NCCL itself says what is wrong with the communicator.
  if (FindMember(nccl, *setting.driver, comm, member) != kSuccess) return nullptr;
  if (member->ranks < 2 || !IsWellFormed(call, member->ranks)) return nullptr;
  return member;
}

int Failed(const Status& status) {
  Say(status.message());
  return kSystemError;
}

// Runs the body of an exported function with NCCL's functions; a failure to load NCCL, or an exception,
// becomes a result code.
template <typename Body>
int WithNccl(const Body& body) noexcept try {
  const StatusOr<Nccl>& nccl = TheNccl();
  return nccl.ok() ? body(*nccl) : Failed(nccl.status());
} catch (const std::exception& error) {
  return kSystemError;
}

int Lacks(const char* name) {
  return Failed(SystemError(std::string(name) + ": this NCCL has no such function"));
}

}  // namespace

int RunCollective(const NcclCall& call, NcclComm comm) {
  return WithNccl([&](const Nccl& nccl) {
    const std::shared_ptr<const Setting> setting = TheSetting();
    const std::shared_ptr<Member> member = MemberFor(nccl, *setting, call, comm);
    if (member == nullptr)
      return InsideNccl::Here() ? CallNccl(nccl, call, comm) : CallCounted(nccl, *setting, call, comm);
    const bool undecided = member->state == Member::State::kUndecided;
    if (undecided && IsCaptured(*member->gpu, call.stream))
      return RunByNccl(nccl, *setting, *member, call, "its communicator's first calls are captured");
    if (!undecided)
      if (const char* const why = WhyNot(*setting, *member, call); why != nullptr)
        return RunByNccl(nccl, *setting, *member, call, why);
    if (group.depth == 0) return RunDeferred(nccl, *setting, {{member, call}});
    group.calls.push_back({member, call});
    return kSuccess;
  });
}

int StartGroup() {
  return WithNccl([](const Nccl& nccl) {
    const InsideNccl inside;
    const int result = nccl.GroupStart();
    if (result == kSuccess) ++group.depth;
    return result;
  });
}

int EndGroup() {
  return WithNccl([](const Nccl& nccl) {
    if (group.depth > 0) --group.depth;
    std::vector<Deferred> calls;
    if (group.depth == 0) calls = std::exchange(group.calls, {});
    int result = kSuccess;
    {
      const InsideNccl inside;
      result = nccl.GroupEnd();
    }
    if (calls.empty() || IsFailure(result)) return result;
    const int run = RunDeferred(nccl, *TheSetting(), std::move(calls));
    return run == kSuccess ? result : run;
  });
}

int SimulateGroup(void* info) {
  return WithNccl([&](const Nccl& nccl) {
    if (nccl.GroupSimulateEnd == nullptr) return Lacks("ncclGroupSimulateEnd");
    if (group.depth > 0) --group.depth;
    std::vector<Deferred> calls;
    if (group.depth == 0) calls = std::exchange(group.calls, {});
    for (const Deferred& each : calls)
      if (const int result = CallNccl(nccl, each.call, each.member->nccl); IsFailure(result)) return result;
    const InsideNccl inside;
    return nccl.GroupSimulateEnd(info);
  });
}

int DestroyComm(NcclComm comm) {
  return WithNccl([&](const Nccl& nccl) {
    // It waits for what was launched.
    if (const std::shared_ptr<Member> member = DropMember(comm); member != nullptr)
      if (const xcclComm_t ours = member->Ours(); ours != nullptr) xcclCommDestroy(ours);
    EndCounting(comm);
    const InsideNccl inside;
    return nccl.CommDestroy(comm);
  });
}

int FinalizeComm(NcclComm comm) {
  return WithNccl([&](const Nccl& nccl) {
    if (const std::shared_ptr<Member> member = KnownMember(comm); member != nullptr)
      if (const xcclComm_t ours = member->Ours(); ours != nullptr) xcclCommSynchronize(ours);
    if (CallLogFile* const log = TheLog(); log != nullptr) log->Write();
    const InsideNccl inside;
    return nccl.CommFinalize(comm);
  });
}

int AbortComm(NcclComm comm) {
  return WithNccl([&](const Nccl& nccl) {
    if (const std::shared_ptr<Member> member = DropMember(comm); member != nullptr) member->Abort();
    EndCounting(comm);
    const InsideNccl inside;
    return nccl.CommAbort(comm);
  });
}

int RevokeComm(NcclComm comm, int flags) {
  return WithNccl([&](const Nccl& nccl) {
    if (nccl.CommRevoke == nullptr) return Lacks("ncclCommRevoke");
    if (const std::shared_ptr<Member> member = KnownMember(comm); member != nullptr) member->Abort();
    const InsideNccl inside;
    return nccl.CommRevoke(comm, flags);
  });
}

int ShrinkComm(NcclComm comm, int* exclude, int count, NcclComm* made, void* config, int flags) {
  return WithNccl([&](const Nccl& nccl) {
    if (nccl.CommShrink == nullptr) return Lacks("ncclCommShrink");
    if ((static_cast<unsigned>(flags) & kShrinkAbort) != 0)
      if (const std::shared_ptr<Member> member = KnownMember(comm); member != nullptr) member->Abort();
    const InsideNccl inside;
    return nccl.CommShrink(comm, exclude, count, made, config, flags);
  });
}

int AsyncErrorOf(NcclComm comm, int* error) {
  return WithNccl([&](const Nccl& nccl) {
    int result = kSuccess;
    {
      const InsideNccl inside;
      result = nccl.CommGetAsyncError(comm, error);
    }
    if (result != kSuccess || error == nullptr || *error != kSuccess) return result;
    const std::shared_ptr<Member> member = KnownMember(comm);
    const xcclComm_t ours = member == nullptr ? nullptr : member->Ours();
    xcclResult_t failure = xcclSuccess;
    if (ours != nullptr && xcclCommGetAsyncError(ours, &failure) == xcclSuccess) *error = failure;
    return result;
  });
}

void ForgetEnvironment() {
  Holder& holder = TheHolder();
  const std::lock_guard lock(holder.mutex);
  holder.setting = nullptr;
}

}  // namespace xccl::nccl_shim
