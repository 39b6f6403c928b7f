#include "runtime/cpu/backends.h"

#include <memory>
#include <utility>

#include "runtime/transport/shared_region.h"

namespace xccl {
std::vector<Backend> ThreadBackends(int32_t ranks) {
  auto regions = std::make_shared<SharedInTurn<SharedRegion>>();
  std::vector<Backend> backends;
  for (int32_t r = 0; r < ranks; ++r) {
    Backend backend;
    backend.one_address_space = true;
    backend.connect =
        [regions, r, next = size_t{0}](const Wiring& wiring) mutable -> StatusOr<std::unique_ptr<Endpoint>> {
      const auto make = [&] { return SharedRegion::Create(wiring, Sharing::kThreads); };
      const auto fits = [&](const SharedRegion& made) { return made.wiring() == wiring; };
      XCCL_ASSIGN_OR_RETURN(const SharedRegion* region, regions->Get(next, make, fits));
      ++next;
      return std::unique_ptr<Endpoint>(std::make_unique<Endpoint>(*region, Rank(r)));
    };
    backends.push_back(std::move(backend));
  }
  return backends;
}

Backend ProcessBackend(LaunchedGroup& group) {
  Backend backend;
  backend.connect = [&group](const Wiring& wiring) { return group.Connect(wiring); };
  return backend;
}

}  // namespace xccl
