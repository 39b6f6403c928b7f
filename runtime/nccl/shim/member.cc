#include "runtime/nccl/shim/member.h"

#include <chrono>
#include <exception>
#include <future>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/nccl/shim/say.h"

namespace xccl::nccl_shim {
namespace {

struct Table {
  std::shared_mutex mutex;  // guards what follows
  std::unordered_map<NcclComm, std::shared_ptr<Member>> members;
};

// It is never freed: programs use NCCL until their very end.
Table& All() {
  static Table& table = *new Table;
  return table;
}

}  // namespace

xcclComm_t Member::Ours() {
  const std::lock_guard lock(mutex);
  return ours;
}

void Member::GiveUp() {
  std::unique_lock lock(mutex);
  state = State::kNccls;
  const xcclComm_t ended = std::exchange(ours, nullptr);
  lock.unlock();
  if (ended != nullptr) xcclCommAbort(ended);
}

void Member::Abort() {
  {
    const std::lock_guard lock(mutex);
    aborted = true;
  }
  GiveUp();
}

int FindMember(const Nccl& nccl, const cuda::Driver& driver, NcclComm comm, std::shared_ptr<Member>& member) {
  member = KnownMember(comm);
  if (member != nullptr) return kSuccess;
  auto made = std::make_shared<Member>();
  made->nccl = comm;
  int device = 0;
  const InsideNccl inside;
  if (const int result = nccl.CommCount(comm, &made->ranks); result != kSuccess) return result;
  if (const int result = nccl.CommUserRank(comm, &made->rank); result != kSuccess) return result;
  if (const int result = nccl.CommCuDevice(comm, &device); result != kSuccess) return result;
  StatusOr<std::shared_ptr<const cuda::Gpu>> gpu = cuda::Gpu::Open(driver, device);
  if (!gpu.ok()) {
    Say(gpu.status().message());
    return kSystemError;
  }
  made->gpu = *std::move(gpu);
  // Nobody waits for a communicator of one rank.
  if (made->ranks < 2) made->state = Member::State::kNccls;
  Table& all = All();
  const std::lock_guard lock(all.mutex);
  member = all.members.emplace(comm, std::move(made)).first->second;
  return kSuccess;
}

std::shared_ptr<Member> KnownMember(NcclComm comm) {
  Table& all = All();
  const std::shared_lock lock(all.mutex);
  const auto found = all.members.find(comm);
  return found == all.members.end() ? nullptr : found->second;
}

std::shared_ptr<Member> DropMember(NcclComm comm) {
  Table& all = All();
  const std::lock_guard lock(all.mutex);
  const auto found = all.members.find(comm);
  if (found == all.members.end()) return nullptr;
  std::shared_ptr<Member> dropped = std::move(found->second);
  all.members.erase(found);
  return dropped;
}

void DestroyAll() noexcept try {
  std::vector<xcclComm_t> left;
  Table& all = All();
  std::unique_lock lock(all.mutex);
  for (const auto& [comm, member] : all.members)
    if (const xcclComm_t ours = member->Ours(); ours != nullptr) left.push_back(ours);
  lock.unlock();
  if (left.empty()) return;
  std::promise<void> done;
  const std::future<void> destroyed = done.get_future();
  std::thread([left, done = std::move(done)]() mutable {
    for (const xcclComm_t ours : left) xcclCommDestroy(ours);
    done.set_value();
  }).detach();
  destroyed.wait_for(std::chrono::seconds(1));
} catch (const std::exception&) {  // no thread: the others see that this process ends
}

}  // namespace xccl::nccl_shim
