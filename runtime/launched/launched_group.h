// Ranks that are processes, on one host or on several: connects this process's rank with all others. Ranks of
// one host share memory; the others are reached over a network.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/endpoint.h"
#include "runtime/host/exchange.h"
#include "runtime/transport/network.h"
#include "runtime/transport/wiring.h"

namespace xccl {

enum class NetworkKind : uint8_t { kAuto, kVerbs, kOfi };
std::string_view ToString(NetworkKind kind);
std::optional<NetworkKind> ParseNetworkKind(std::string_view name);

struct LaunchedGroupOptions {
  NetworkKind network = NetworkKind::kAuto;  // verbs where all ranks have it, else ofi
  std::vector<std::string> devices = {};     // by rail; empty: found
  std::string provider = {};                 // libfabric's provider; empty: the best that is found
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // for connecting
  int32_t slots = 16;                // per connection between hosts, where the memory allows it
  int64_t memory_limit = 1LL << 30;  // for this rank's slots of connections between hosts
};

// Thread-safe, save the functions that connect: one thread calls them at a time.
class LaunchedGroup final : public EndpointGroup {
 public:
  LaunchedGroup(std::unique_ptr<Bootstrap> bootstrap, LaunchedGroupOptions options);
  ~LaunchedGroup() override;

  Bootstrap& bootstrap() { return *bootstrap_; }
  // This rank's end of new connections. All ranks call it with the same wirings in the same order. The group
  // outlives the endpoint. Errors: those of any rank, on all ranks.
  StatusOr<std::unique_ptr<Endpoint>> Connect(const Wiring& wiring);
  // As Connect, but the group keeps the endpoint: the wiring that was asked for last is not connected again.
  StatusOr<Endpoint*> EndpointOf(const Wiring& wiring);
  // The network that all ranks have. All ranks call it together the first time; it then answers at once.
  StatusOr<NetworkKind> AgreeOnNetwork();
  // True if that network's device can reach the slots of `memory`, which are a GPU's.
  bool ReachesSlots(const NetworkMemory& memory);
  // Connects this rank's slots and cells with the slots and cells of ranks on other hosts, over the network
  // that all ranks have. All ranks call it, with layouts of one wiring.
  StatusOr<std::unique_ptr<Transport>> ConnectNetwork(const NetworkMemory& memory);
  // Fails on all ranks unless all say the same: "rank 3 (host h1): another plan than rank 0 (host h0)".
  Status Agree(std::string_view what, std::string_view mine);
  // The network that connects hosts, for messages: "libfabric", "verbs"; empty: all ranks are on one host.
  std::string_view network() const;

  void NoteProgress() override { bootstrap_->NoteProgress(); }
  // This host's ranks are counted sooner in their region.
  uint64_t Progress() const override {
    return bootstrap_->host_names().size() > 1 ? bootstrap_->Progress() : 0;
  }
  void Fail(const Status& status) override { bootstrap_->Fail(Blame(status)); }
  void FailAsSaid(const Status& status) override { bootstrap_->Fail(status); }
  Status Barrier(std::chrono::nanoseconds limit) override { return bootstrap_->Barrier(limit); }
  void NoteCall(const CallSignature& call) override { bootstrap_->NoteCall(call.which); }
  std::vector<LeftRank> Left() const override;
  bool HasLeft(Rank rank) const override { return bootstrap_->HasLeft(rank); }

 private:
  struct Connected;

  StatusOr<std::unique_ptr<Endpoint>> ConnectAll(const Wiring& wiring);
  StatusOr<SharedRegion> ShareRegion(const Wiring& wiring);
  std::string RanksOf(int32_t host) const;
  NetworkOptions OptionsOfNetwork();
  Status Blame(const Status& status) const;
  StatusOr<std::unique_ptr<Transport>> ConnectHosts(const Wiring& wiring, Connected& connected,
                                                    std::vector<int32_t>& transport_of);

  std::unique_ptr<Bootstrap> bootstrap_;
  const LaunchedGroupOptions options_;
  std::optional<Exchange> exchange_;  // with the ranks of this host
  OwnedFile doorbell_;
  std::optional<NetworkKind> network_;
  struct Kept {
    Wiring wiring;
    std::unique_ptr<Endpoint> endpoint;
  };
  std::optional<Kept> kept_;
  std::mutex mutex_;                      // guards what follows
  std::set<const Connected*> connected_;  // live endpoints'
};

}  // namespace xccl
