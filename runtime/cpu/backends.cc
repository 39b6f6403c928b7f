#include "runtime/cpu/backends.h"

#include <fmt/core.h>

#include <deque>
#include <thread>
#include <utility>

#include "runtime/cpu/shared_region.h"
#include "runtime/cpu/shared_transport.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

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

using NamedRegions = std::deque<SharedRegion>;

StatusOr<std::unique_ptr<Transport>> ConnectNamed(NamedRegions& all, const std::string& prefix, Rank rank,
                                                  std::chrono::nanoseconds time_limit, const Wiring& wiring) {
  const std::string name = fmt::format("/{}.{}", prefix, all.size());
  if (rank == Rank(0)) {
    SharedRegion::Unlink(name);  // left by a run that was killed
    XCCL_ASSIGN_OR_RETURN(SharedRegion region, SharedRegion::Create(wiring, Sharing::kNamed, name));
    all.push_back(std::move(region));
  } else {
    XCCL_ASSIGN_OR_RETURN(SharedRegion region, OpenWhenReady(wiring, name, rank, time_limit));
    all.push_back(std::move(region));
  }
  auto transport = std::make_unique<SharedTransport>(all.back(), rank);
  const Status met = transport->Barrier(time_limit);
  if (rank == Rank(0)) SharedRegion::Unlink(name);
  XCCL_RETURN_IF_ERROR(met);
  transport->WatchPeers();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace

std::vector<Backend> ThreadBackends(int32_t ranks) {
  auto regions = std::make_shared<SharedInTurn<SharedRegion>>();
  std::vector<Backend> backends;
  for (int32_t r = 0; r < ranks; ++r) {
    Backend backend;
    backend.one_address_space = true;
    backend.connect =
        [regions, r, next = size_t{0}](const Wiring& wiring) mutable -> StatusOr<std::unique_ptr<Transport>> {
      const auto make = [&] { return SharedRegion::Create(wiring, Sharing::kThreads); };
      const auto fits = [&](const SharedRegion& made) { return made.wiring() == wiring; };
      XCCL_ASSIGN_OR_RETURN(const SharedRegion* region, regions->Get(next, make, fits));
      ++next;
      return std::unique_ptr<Transport>(std::make_unique<SharedTransport>(*region, Rank(r)));
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
