#include "runtime/launched/launched_group.h"

#include <fmt/core.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "runtime/host/parcel.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/rdma/verbs/transport.h"
#include "runtime/transport/parting.h"
#include "runtime/transport/shm/transport.h"

namespace xccl {
namespace {

// Slots of all connections with one peer: a queue pair of verbs has room for twice as many arrivals, and
// devices have 4,096 and more.
constexpr int64_t kMostWithPeer = 2048;

// Slots so few that the connections fit the memory.
StatusOr<int32_t> SlotsThatFit(const NetworkLayout& one_slot, int32_t least,
                               const LaunchedGroupOptions& options) {
  int64_t slots = std::max(least, options.slots);
  const int64_t each = std::max<int64_t>(1, one_slot.SlotsBytes());
  std::map<Rank, int64_t> with_peer;
  int64_t most = 1;
  for (const RemoteConnection& one : one_slot.connections) most = std::max(most, ++with_peer[one.peer]);
  slots = std::min({slots, options.memory_limit / each, int64_t{kMaxSlots}, kMostWithPeer / most});
  if (slots >= 1) return static_cast<int32_t>(slots);
  return InvalidInput(
      fmt::format("{} connections with other hosts, each with a slot of {} bytes, need {} bytes; "
                  "the limit is {}",
                  one_slot.connections.size(), one_slot.slot_bytes, each, options.memory_limit));
}

}  // namespace

// The memory of one endpoint of this process.
struct LaunchedGroup::Connected final : public EndpointMemory {
  Connected(LaunchedGroup& of, SharedRegion made) : group(of), region(std::move(made)) {
    const std::lock_guard lock(group.mutex_);
    group.connected_.insert(this);
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
  ~Connected() override {
    const std::lock_guard lock(group.mutex_);
    group.connected_.erase(this);
  }
  LaunchedGroup& group;
  const SharedRegion region;
  HostMemory slots, cells;
};

std::string_view ToString(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::kAuto:
      return "auto";
    case NetworkKind::kVerbs:
      return "verbs";
    case NetworkKind::kOfi:
      return "ofi";
  }
  return "";
}

std::optional<NetworkKind> ParseNetworkKind(std::string_view name) {
  for (const NetworkKind kind : {NetworkKind::kAuto, NetworkKind::kVerbs, NetworkKind::kOfi})
    if (ToString(kind) == name) return kind;
  return std::nullopt;
}

LaunchedGroup::LaunchedGroup(std::unique_ptr<Bootstrap> bootstrap, LaunchedGroupOptions options)
    : bootstrap_(std::move(bootstrap)), options_(std::move(options)) {
  bootstrap_->OnFailure([this](const Status& reason) {
    const std::lock_guard lock(mutex_);
    for (const Connected* each : connected_) each->region.Fail(reason);
  });
}

LaunchedGroup::~LaunchedGroup() {
  kept_.reset();
  bootstrap_.reset();  // ends its callback
}

Status LaunchedGroup::Agree(std::string_view what, std::string_view mine) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, bootstrap_->AllGather(mine, options_.time_limit));
  const auto name = [&](size_t rank) {
    return fmt::format("rank {} (host {})", rank,
                       bootstrap_->host_names()[static_cast<size_t>(bootstrap_->hosts()[rank])]);
  };
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) return InvalidInput(fmt::format("{}: another {} than {}", name(r), what, name(0)));
  return OkStatus();
}

std::vector<EndpointGroup::LeftRank> LaunchedGroup::Left() const {
  std::vector<LeftRank> all;
  for (const Bootstrap::LeftRank& left : bootstrap_->Left())
    all.push_back({left.rank, CallSignature{.what = 0, .which = left.call}});
  return all;
}

// A process that ends is missed by its host's ranks at once; the watcher, a moment later, knows which rank it
// was.
Status LaunchedGroup::Blame(const Status& status) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (status.code() == StatusCode::kPeerEnded && !bootstrap_->Failure() &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return bootstrap_->Failure().value_or(status);
}

StatusOr<std::unique_ptr<Endpoint>> LaunchedGroup::Connect(const Wiring& wiring) {
  StatusOr<std::unique_ptr<Endpoint>> made = ConnectAll(wiring);
  if (!made.ok()) made = Blame(made.status());
  // The others wait for this rank.
  if (!made.ok()) bootstrap_->Fail(Annotate(made.status(), fmt::format("rank {}", bootstrap_->rank().value)));
  return made;
}

StatusOr<Endpoint*> LaunchedGroup::EndpointOf(const Wiring& wiring) {
  if (!kept_ || kept_->wiring != wiring) {
    kept_.reset();
    XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Endpoint> endpoint, Connect(wiring));
    kept_ = Kept{wiring, std::move(endpoint)};
  }
  return kept_->endpoint.get();
}

// "0, 2, 5".
std::string LaunchedGroup::RanksOf(int32_t host) const {
  std::vector<std::string> ranks;
  for (size_t r = 0; r < bootstrap_->hosts().size(); ++r)
    if (bootstrap_->hosts()[r] == host) ranks.push_back(std::to_string(r));
  return Join(ranks, ", ");
}

StatusOr<SharedRegion> LaunchedGroup::ShareRegion(const Wiring& wiring) {
  const int32_t host = bootstrap_->hosts()[bootstrap_->rank().index()];
  if (!exchange_) {
    doorbell_ = OwnedFile(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!doorbell_.open()) return SystemError(fmt::format("eventfd: {}", std::strerror(errno)));
    StatusOr<Exchange> met = SocketExchange(
        fmt::format("xccl-{}-{}", bootstrap_->job(), host), bootstrap_->local_rank(),
        bootstrap_->local_ranks(), options_.time_limit, [this] { return bootstrap_->Failure().has_value(); });
    if (met.status().code() == StatusCode::kLimit)
      return LimitReached(fmt::format(
          "{}; expected ranks {} of host {}; hint: are they on one machine, or is "
          "XCCL_HOST_ID wrong?",
          met.status().message(), RanksOf(host), bootstrap_->host_names()[static_cast<size_t>(host)]));
    XCCL_ASSIGN_OR_RETURN(exchange_, std::move(met));
  }
  RegionLayout layout = WithinHost(wiring, bootstrap_->hosts(), host);
  Parcel mine;
  mine.files.emplace_back(dup(doorbell_.get()));
  if (exchange_->party == 0) {
    StatusOr<OwnedFile> file = SharedRegion::CreateFile(layout, exchange_->parties);
    if (file.ok()) {
      mine.files.push_back(*std::move(file));
    } else {
      mine.bytes = file.status().message();
    }
  }
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange_->all(std::move(mine)));
  if (all[0].files.size() != 2) return SystemError(all[0].bytes);
  const OwnedFile file = std::move(all[0].files[1]);
  std::vector<OwnedFile> doorbells(static_cast<size_t>(wiring.ranks));
  size_t party = 0;
  for (size_t r = 0; r < doorbells.size(); ++r)
    if (bootstrap_->hosts()[r] == host) doorbells[r] = std::move(all[party++].files.at(0));
  return SharedRegion::Map(std::move(layout), file, std::move(doorbells));
}

StatusOr<NetworkKind> LaunchedGroup::AgreeOnNetwork() {
  if (network_) return *network_;
  const Status verbs = verbs::Available();
  const Status ofi = ofi::Available();
  if (options_.network == NetworkKind::kVerbs && !verbs.ok()) return verbs;
  if (options_.network == NetworkKind::kOfi && !ofi.ok()) return ofi;
  std::string mine = options_.network == NetworkKind::kAuto ? (verbs.ok() ? "verbs" : "ofi")
                                                            : std::string(ToString(options_.network));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, bootstrap_->AllGather(mine, options_.time_limit));
  const bool all_verbs = std::ranges::all_of(all, [](const std::string& one) { return one == "verbs"; });
  if (!all_verbs && !ofi.ok()) return ofi;
  network_ = all_verbs ? NetworkKind::kVerbs : NetworkKind::kOfi;
  return *network_;
}

std::string_view LaunchedGroup::network() const {
  if (!network_) return "";
  return *network_ == NetworkKind::kVerbs ? "verbs" : "libfabric";
}

NetworkOptions LaunchedGroup::OptionsOfNetwork() {
  NetworkOptions network;
  network.devices = options_.devices;
  network.provider = options_.provider;
  network.address = bootstrap_->address();
  network.time_limit = options_.time_limit;
  network.all_gather = [this](std::string_view mine) {
    return bootstrap_->AllGather(mine, options_.time_limit);
  };
  return network;
}

bool LaunchedGroup::ReachesSlots(const NetworkMemory& memory) {
  return network_ == NetworkKind::kVerbs && verbs::Reaches(memory, OptionsOfNetwork()).ok();
}

StatusOr<std::unique_ptr<Transport>> LaunchedGroup::ConnectHosts(const Wiring& wiring, Connected& connected,
                                                                 std::vector<int32_t>& transport_of) {
  const auto layout = [&](int32_t slots) {
    return NetworkLayoutOf(wiring, bootstrap_->hosts(), slots, bootstrap_->rank());
  };
  // The number of slots is the same on all ranks: that of the rank with the most connections.
  XCCL_ASSIGN_OR_RETURN(int32_t slots, SlotsThatFit(layout(1), wiring.slots, options_));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        bootstrap_->AllGather(std::to_string(slots), options_.time_limit));
  for (size_t r = 0; r < all.size(); ++r) {
    const StatusOr<int64_t> theirs = ParseInteger(all[r], 1, kMaxSlots);
    if (!theirs.ok())
      return InvalidInput(
          fmt::format("rank {}: says '{}' of its slots; expected 1 to {}", r, Cleaned(all[r]), kMaxSlots));
    slots = std::min(slots, static_cast<int32_t>(*theirs));
  }
  NetworkMemory memory{.layout = layout(slots)};
  XCCL_ASSIGN_OR_RETURN(connected.slots, HostMemory::Create(memory.layout.SlotsBytes()));
  XCCL_ASSIGN_OR_RETURN(connected.cells, HostMemory::Create(memory.layout.CellsBytes()));
  memory.slots = connected.slots.data();
  memory.cells = reinterpret_cast<ConnectionCell*>(connected.cells.data());
  for (const RemoteConnection& one : memory.layout.connections)
    transport_of[static_cast<size_t>(one.connection)] = 1;
  return ConnectNetwork(memory);
}

StatusOr<std::unique_ptr<Transport>> LaunchedGroup::ConnectNetwork(const NetworkMemory& memory) {
  XCCL_ASSIGN_OR_RETURN(const NetworkKind kind, AgreeOnNetwork());
  const NetworkOptions network = OptionsOfNetwork();
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Transport> made, kind == NetworkKind::kVerbs
                                                             ? verbs::Connect(memory, network)
                                                             : ofi::Connect(memory, network));
  const PartingRules rules{.failed = [this] { return bootstrap_->Failure().has_value(); },
                           .has_left = [this](Rank rank) { return bootstrap_->HasLeft(rank); },
                           .time_limit = options_.time_limit};
  return PartWhenTaken(std::move(made), memory, rules);
}

StatusOr<std::unique_ptr<Endpoint>> LaunchedGroup::ConnectAll(const Wiring& wiring) {
  XCCL_RETURN_IF_ERROR(Agree(
      "number of ranks or connections in its plans",
      fmt::format("{} {} {} {}", wiring.ranks, wiring.connections.size(), wiring.slots, wiring.slot_bytes)));
  XCCL_ASSIGN_OR_RETURN(SharedRegion region, ShareRegion(wiring));
  auto made = std::make_unique<Connected>(*this, std::move(region));
  // Until the line above nobody told the region.
  if (const std::optional<Status> failure = bootstrap_->Failure()) made->region.Fail(*failure);
  Endpoint::Parts parts;
  parts.transport_of.assign(wiring.connections.size(), 0);
  std::unique_ptr<Transport> network;
  if (bootstrap_->host_names().size() > 1) {
    XCCL_ASSIGN_OR_RETURN(network, ConnectHosts(wiring, *made, parts.transport_of));
  }
  parts.region = &made->region;
  parts.group = this;
  parts.memory = std::move(made);
  parts.transports.push_back(std::make_unique<shm::ShmTransport>(*parts.region));
  if (network != nullptr) parts.transports.push_back(std::move(network));
  return std::make_unique<Endpoint>(std::move(parts), bootstrap_->rank());
}

}  // namespace xccl
