#include "runtime/cpu/backends.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/cpu/shared_region.h"
#include "runtime/cpu/shared_transport.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

// The regions of communicators in one process. The k-th connect of every rank yields the k-th region, which
// the first to come makes. Shared by the ranks' back ends, which end in any order.
class ThreadRegions {
 public:
  struct Region {
    SharedRegion region;
    std::vector<DirectSource> directs;
  };
  StatusOr<Region*> Get(size_t k, const Wiring& wiring) {
    const std::lock_guard lock(mutex_);
    if (k == regions_.size()) {
      XCCL_ASSIGN_OR_RETURN(SharedRegion region, SharedRegion::Create(wiring, Sharing::kThreads));
      regions_.push_back({std::move(region), SharedTransport::MakeDirects(wiring)});
    }
    if (k > regions_.size() || regions_[k].region.wiring() != wiring)
      return InvalidInput("ranks load different plan books; expected the same in the same order");
    return &regions_[k];
  }

 private:
  std::mutex mutex_;
  std::deque<Region> regions_;  // never moved
};

StatusOr<SharedRegion> OpenWhenReady(const Wiring& wiring, const std::string& name, Rank rank,
                                     std::chrono::nanoseconds time_limit) {
  const Clock::time_point deadline = Clock::now() + time_limit;
  while (true) {
    StatusOr<SharedRegion> region = SharedRegion::Open(wiring, name);
    if (region.ok() || region.status().code() != StatusCode::kLimit) return region;
    if (Clock::now() > deadline)
      return LimitReached(fmt::format(
          "rank {}: {}; expected rank 0 to make it within {} ms", rank.value, region.status().message(),
          std::chrono::duration_cast<std::chrono::milliseconds>(time_limit).count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct NamedRegions {
  std::deque<SharedRegion> regions;
};

StatusOr<std::unique_ptr<Transport>> ConnectNamed(NamedRegions& all, const std::string& prefix, Rank rank,
                                                  std::chrono::nanoseconds time_limit, const Wiring& wiring) {
  const std::string name = fmt::format("/{}.{}", prefix, all.regions.size());
  if (rank == Rank(0)) {
    SharedRegion::Unlink(name);  // of a run that was killed
    XCCL_ASSIGN_OR_RETURN(SharedRegion region, SharedRegion::Create(wiring, Sharing::kNamed, name));
    all.regions.push_back(std::move(region));
  } else {
    XCCL_ASSIGN_OR_RETURN(SharedRegion region, OpenWhenReady(wiring, name, rank, time_limit));
    all.regions.push_back(std::move(region));
  }
  auto transport = std::make_unique<SharedTransport>(all.regions.back(), rank, nullptr);
  const Status met = transport->Barrier(time_limit);
  if (rank == Rank(0)) SharedRegion::Unlink(name);
  XCCL_RETURN_IF_ERROR(met);
  transport->WatchPeers();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace

std::vector<Backend> ThreadBackends(int32_t ranks) {
  auto regions = std::make_shared<ThreadRegions>();
  std::vector<Backend> backends;
  for (int32_t r = 0; r < ranks; ++r) {
    Backend backend;
    backend.one_address_space = true;
    backend.connect =
        [regions, r, next = size_t{0}](const Wiring& wiring) mutable -> StatusOr<std::unique_ptr<Transport>> {
      XCCL_ASSIGN_OR_RETURN(ThreadRegions::Region* const region, regions->Get(next, wiring));
      ++next;
      return std::unique_ptr<Transport>(
          std::make_unique<SharedTransport>(region->region, Rank(r), &region->directs));
    };
    backends.push_back(std::move(backend));
  }
  return backends;
}

Backend SharedMemoryBackend(const std::string& name, Rank rank, std::chrono::nanoseconds time_limit) {
  Backend backend;
  // Shared only because std::function must be copyable.
  auto regions = std::make_shared<NamedRegions>();
  backend.connect = [=](const Wiring& wiring) {
    return ConnectNamed(*regions, name, rank, time_limit, wiring);
  };
  return backend;
}

}  // namespace xccl
