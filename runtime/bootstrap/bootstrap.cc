// All-gather by Bruck's algorithm: in round k a rank sends all blobs that it has, at most 2^k, to the rank
// 2^k before it, and receives as many from the rank 2^k after it. The barrier is the same without blobs.
#include "runtime/bootstrap/bootstrap.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/exceptions.h"
#include "base/strings.h"
#include "base/threads.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/mesh.h"
#include "runtime/bootstrap/pmi.h"
#include "runtime/bootstrap/rendezvous.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/bootstrap/watcher.h"

namespace xccl {
namespace {

using bootstrap::Address;
using bootstrap::After;
using bootstrap::Clock;
using std::chrono::nanoseconds;

constexpr size_t kMostBlob = size_t{16} << 20, kMostInAll = size_t{64} << 20;
constexpr size_t kMostOfAHost = 4096;  // its identity, its name and its address
// A rendezvous that has failed keeps its port a little to tell late ranks.
constexpr nanoseconds kPortIsFree = bootstrap::kLongestLinger + std::chrono::seconds(1);

// In which another job's rendezvous, at the port of this one, says so.
constexpr nanoseconds kClaim = std::chrono::seconds(1);

// A rendezvous that a thread of this process serves while its own rank joins.
class Service {
 public:
  Service() = default;
  ~Service() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Errors: kSystem where another process has the port, and keeps it longer than a rendezvous that ends.
  Status Start(const Placement& placement, const BootstrapOptions& options,
               const std::vector<Address>& addresses);
  bool started() const { return thread_.joinable(); }

 private:
  std::unique_ptr<bootstrap::Lobby> lobby_;
  bootstrap::Serving serving_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

Status Service::Start(const Placement& placement, const BootstrapOptions& options,
                      const std::vector<Address>& addresses) {
  const Clock::time_point until = After(std::min<nanoseconds>(options.time_limit, kPortIsFree));
  bool in_use = false;
  StatusOr<std::unique_ptr<bootstrap::Lobby>> lobby = bootstrap::Lobby::Open(addresses, &in_use);
  while (!lobby.ok() && in_use && Clock::now() < until) {
    if (placement.rank.value == 0) {
      const Clock::time_point answer = std::min(until, After(kClaim));
      const std::optional<Status> told = bootstrap::Claim(placement, addresses, options, answer);
      if (told && !told->ok()) return *told;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lobby = bootstrap::Lobby::Open(addresses, &in_use);
  }
  if (!lobby.ok() && in_use)
    return SystemError(
        fmt::format("rendezvous {}: {}, by another process; expected the port to be free for this one; hint: "
                    "XCCL_ADDRESS=HOST:PORT with another port",
                    placement.rendezvous, lobby.status().message()));
  if (!lobby.ok()) return Annotate(lobby.status(), "rendezvous " + placement.rendezvous);
  lobby_ = *std::move(lobby);
  serving_.name = "rendezvous " + placement.rendezvous;
  serving_.secret = placement.token_seed;
  serving_.until = After(options.time_limit);
  serving_.limit = options.time_limit;
  serving_.stop = &stop_;
  XCCL_ASSIGN_OR_RETURN(thread_, StartThread([this] {
                          try {
                            (void)bootstrap::Serve(*lobby_, serving_);  // this rank is told, as all are
                          } catch (const std::exception&) {
                            // Out of memory. Who waits sees that the rendezvous has ended.
                          }
                          lobby_.reset();
                        }));
  return OkStatus();
}

// Every endpoint of a list with commas is on the loopback, also as other hosts would read it.
bool OnlyLoopback(const std::string& endpoints) {
  return std::ranges::all_of(Split(endpoints, ','), [](const std::string& text) {
    const StatusOr<bootstrap::Endpoint> one = bootstrap::ParseEndpoint(text);
    if (!one.ok()) return false;
    const StatusOr<Address> numeric = bootstrap::NumericAddress(one->host, one->port);
    return numeric.ok() ? numeric->IsLoopback() : one->host == "localhost";
  });
}

// Rank 0 serves on its own host; where the address is another host's, that host's local rank 0. Only rank 0
// serves more than the first of several addresses: bridges have the same address on every host. A host may
// know its own name as the name of its loopback; ranks of other hosts then come to its other addresses.
std::vector<Address> ServedAddresses(const Placement& placement, const std::vector<Address>& addresses) {
  const bool first = placement.rank.value == 0;
  std::vector<Address> served;
  if (placement.served || (!first && placement.local_rank != 0)) return served;
  const auto add = [&](Address address, uint16_t port) {
    address.set_port(port);
    const auto same = [&](const Address& one) { return one.ToString() == address.ToString(); };
    if (std::ranges::none_of(served, same)) served.push_back(address);
  };
  const bool alone = OnlyLoopback(placement.rendezvous);
  for (const Address& address : addresses) {
    if (bootstrap::IsOwn(address)) {
      // Endpoints whose port differs from the first one's are not served.
      if (served.empty() || served[0].port() == address.port()) add(address, address.port());
      if (address.IsLoopback() && !alone)
        for (const bootstrap::Interface& interface : bootstrap::Interfaces())
          add(interface.address, address.port());
    }
    if (!first) break;
  }
  return served;
}

Status Check(const Placement& placement, const BootstrapOptions& options) {
  if (placement.ranks < 1 || placement.rank.value < 0 || placement.rank.value >= placement.ranks)
    return UsageError(fmt::format("rank {} of {}: expected a rank from 0 to size - 1", placement.rank.value,
                                  placement.ranks));
  if (options.time_limit <= nanoseconds::zero() || options.silence_limit <= nanoseconds::zero())
    return UsageError("bootstrap: a time limit of zero or less; expected more");
  return OkStatus();
}

struct Joined {
  bootstrap::Welcome welcome;
  std::string address;
  std::vector<bootstrap::Connected> partners;
  bootstrap::Directory directory;  // without the ranks
};

// A token that anybody may know must not be shown to other hosts, and not to a rendezvous on them.
Status CheckSecret(const Placement& placement) {
  if (!placement.guessable || OnlyLoopback(placement.rendezvous)) return OkStatus();
  return InvalidInput(
      fmt::format("rendezvous {}: no token, and other hosts reach this address; expected XCCL_TOKEN or "
                  "XCCL_TOKEN_FILE, the same on all ranks; hint: openssl rand -hex 16",
                  placement.rendezvous));
}

StatusOr<Joined> JoinAlone(const std::string& names) {
  Joined joined;
  XCCL_ASSIGN_OR_RETURN(const std::vector<bootstrap::Interface> interfaces, bootstrap::Interfaces(names));
  joined.welcome.job = bootstrap::RandomJob();
  joined.address = interfaces.empty() ? "127.0.0.1" : interfaces[0].address.Host();
  return joined;
}

// served: the addresses at which this process serves the rendezvous; none: another does.
StatusOr<Joined> MeetAt(const Placement& placement, const std::vector<Address>& addresses,
                        const std::vector<Address>& served, const BootstrapOptions& options,
                        Clock::time_point until) {
  XCCL_RETURN_IF_ERROR(CheckSecret(placement));
  XCCL_RETURN_IF_ERROR(bootstrap::AllowOpenFiles(128));
  Service service;
  if (!served.empty()) XCCL_RETURN_IF_ERROR(service.Start(placement, options, served));
  XCCL_ASSIGN_OR_RETURN(bootstrap::Meeting meeting,
                        bootstrap::Meet(placement, addresses, options, service.started(), until));
  Joined joined;
  XCCL_ASSIGN_OR_RETURN(joined.partners,
                        bootstrap::ConnectPartners(placement, meeting, bootstrap::ConnectingUntil(until)));
  joined.directory.door = std::move(meeting.door);
  joined.directory.key = bootstrap::KeyOfGroup(placement, meeting.welcome);
  joined.welcome = std::move(meeting.welcome);
  joined.address = std::move(meeting.address);
  return joined;
}

StatusOr<Joined> JoinOthers(const Placement& given, const BootstrapOptions& options) {
  const Clock::time_point until = After(options.time_limit);
  bootstrap::PmiPlacement by_pmi{given, {}};
  if (given.rendezvous.empty() && given.pmi_file) {
    XCCL_ASSIGN_OR_RETURN(by_pmi, bootstrap::PlacementByPmi(given, options));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<Address> addresses,
                        bootstrap::Resolve(by_pmi.placement.rendezvous, until));
  const std::vector<Address> served = ServedAddresses(by_pmi.placement, addresses);
  StatusOr<Joined> joined = MeetAt(by_pmi.placement, addresses, served, options, until);
  // The rendezvous would not learn of this host's own trouble. It knows of peers and time limits.
  if (joined.status().code() == StatusCode::kSystem && served.empty())
    bootstrap::Excuse(by_pmi.placement, addresses, options, joined.status());
  return joined;
}

}  // namespace

struct Bootstrap::State {
  Rank rank;
  int32_t ranks = 1;
  std::string job, address;
  std::vector<int32_t> hosts;
  std::vector<std::string> host_names;
  int32_t local_rank = 0, local_ranks = 1;
  std::mutex call;  // one AllGather or Barrier at a time
  std::unique_ptr<bootstrap::Watcher> watcher;

  Status LearnHosts(const std::string& host_id, bootstrap::Directory directory, nanoseconds limit);
  StatusOr<std::vector<std::string>> Gather(std::string_view mine, nanoseconds limit);
  Status Rounds(std::string_view what, nanoseconds limit, std::vector<std::string>* blobs);
  static Status Unpack(std::string_view bytes, int32_t from, size_t count, std::vector<std::string>& blobs,
                       size_t& total);
  Status Why(Status status, std::string_view what, int32_t missing, nanoseconds limit) const;
};

// Hosts come in the order of their lowest ranks.
Status Bootstrap::State::LearnHosts(const std::string& host_id, bootstrap::Directory directory,
                                    nanoseconds limit) {
  const std::string mine = bootstrap::Packer()
                               .PutText(bootstrap::HostIdentity(host_id))
                               .PutText(bootstrap::HostName())
                               .Put<int32_t>(getpid())
                               .PutText(address)
                               .Put<uint16_t>(directory.door ? directory.door->port() : 0)
                               .Take();
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, Gather(mine, limit));
  std::map<std::string, int32_t, std::less<>> numbers;
  for (const std::string& blob : all) {
    bootstrap::Unpacker reader(blob);
    const std::string identity(reader.GetText());
    bootstrap::Partner& who = directory.ranks.emplace_back();
    who.rank = static_cast<int32_t>(hosts.size());
    who.host = Cleaned(reader.GetText());
    who.pid = reader.Get<int32_t>();
    who.address = Cleaned(reader.GetText());
    who.port = reader.Get<uint16_t>();
    if (!reader.ok() || !reader.AtEnd() || blob.size() > kMostOfAHost) {
      Status status = InvalidInput(fmt::format("rank {}: said {} bytes of its host that no rank of XCCL says",
                                               hosts.size(), blob.size()));
      watcher->Fail(status);
      return status;
    }
    const auto [at, made] = numbers.emplace(identity, static_cast<int32_t>(numbers.size()));
    if (made) host_names.push_back(who.host);
    hosts.push_back(at->second);
  }
  watcher->Open(std::move(directory));
  const auto own = hosts.begin() + rank.value;
  local_rank = static_cast<int32_t>(std::count(hosts.begin(), own, *own));
  local_ranks = static_cast<int32_t>(std::count(hosts.begin(), hosts.end(), *own));
  return OkStatus();
}

// The text of an error that the watcher found, which names ranks by number.
Status Bootstrap::State::Why(Status status, std::string_view what, int32_t missing, nanoseconds limit) const {
  if (!status.message().empty()) return status;
  const auto at = static_cast<size_t>(missing);
  const std::string host =
      at < hosts.size() ? fmt::format(" (host {})", host_names[static_cast<size_t>(hosts[at])]) : "";
  const std::string text =
      status.code() == StatusCode::kPeerEnded
          ? fmt::format("{}: rank {} has left the group{}; expected it to take part", what, missing, host)
          : fmt::format("{}: rank {} did not take part within {}{}", what, missing, bootstrap::Seconds(limit),
                        host);
  return Status(status.code(), text);
}

Status Bootstrap::State::Unpack(std::string_view bytes, int32_t from, size_t count,
                                std::vector<std::string>& blobs, size_t& total) {
  bootstrap::Unpacker reader(bytes);
  for (size_t i = 0; i < count; ++i) {
    blobs.emplace_back(reader.GetText());
    total += blobs.back().size();
  }
  if (!reader.ok() || !reader.AtEnd())
    return InvalidInput(
        fmt::format("rank {}: sent blobs of another form; expected AllGather on all ranks", from));
  if (total > kMostInAll)
    return InvalidInput(fmt::format("AllGather: the blobs of all ranks have more than {} bytes", kMostInAll));
  return OkStatus();
}

Status Bootstrap::State::Rounds(std::string_view what, nanoseconds limit, std::vector<std::string>* blobs) {
  const std::lock_guard lock(call);
  if (const std::optional<Status> failure = watcher->Failure()) return *failure;
  const Clock::time_point until = After(limit);
  const uint64_t number = watcher->BeginCall();
  size_t total = blobs != nullptr ? blobs->front().size() : 0;
  uint32_t round = 0;
  for (int64_t away = 1; away < ranks; away *= 2, ++round) {
    const auto count = static_cast<size_t>(std::min<int64_t>(away, ranks - away));
    bootstrap::Packer mine;
    if (blobs != nullptr)
      for (size_t i = 0; i < count; ++i) mine.PutText((*blobs)[i]);
    watcher->Send(static_cast<int32_t>((rank.value + ranks - away) % ranks), number, round, mine.Take());
    int32_t missing = 0;
    const auto from = static_cast<int32_t>((rank.value + away) % ranks);
    StatusOr<std::string> theirs = watcher->Receive(from, number, round, until, &missing);
    Status status = theirs.ok() ? OkStatus() : Why(theirs.status(), what, missing, limit);
    if (status.ok() && blobs != nullptr) status = Unpack(*theirs, from, count, *blobs, total);
    if (status.ok() && blobs == nullptr && !theirs->empty())
      status =
          InvalidInput(fmt::format("rank {}: sent blobs to a barrier; expected Barrier on all ranks", from));
    if (status.ok()) continue;
    watcher->Fail(status);
    return *watcher->Failure();
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> Bootstrap::State::Gather(std::string_view mine, nanoseconds limit) {
  if (mine.size() > kMostBlob) {
    const Status status = InvalidInput(fmt::format("AllGather: rank {} gives {} bytes; expected at most {}",
                                                   rank.value, mine.size(), kMostBlob));
    watcher->Fail(status);
    return status;
  }
  std::vector<std::string> blobs{std::string(mine)};
  XCCL_RETURN_IF_ERROR(Rounds("AllGather", limit, &blobs));
  std::rotate(blobs.begin(), blobs.end() - rank.value, blobs.end());
  return blobs;
}

StatusOr<std::unique_ptr<Bootstrap>> Bootstrap::Join(const Placement& placement,
                                                     const BootstrapOptions& options) try {
  XCCL_RETURN_IF_ERROR(Check(placement, options));
  const std::string& names = options.interface.empty() ? placement.interface : options.interface;
  StatusOr<Joined> joined = placement.ranks == 1 ? JoinAlone(names) : JoinOthers(placement, options);
  if (!joined.ok()) return NameVariables(joined.status(), placement);
  auto state = std::make_unique<State>();
  state->rank = placement.rank;
  state->ranks = placement.ranks;
  state->job = std::move(joined->welcome.job);
  state->address = std::move(joined->address);
  state->watcher = std::make_unique<bootstrap::Watcher>(placement.rank.value, placement.ranks,
                                                        std::move(joined->partners), options.silence_limit);
  XCCL_RETURN_IF_ERROR(state->watcher->Start());
  XCCL_RETURN_IF_ERROR(
      state->LearnHosts(placement.host_id, std::move(joined->directory), options.time_limit));
  return std::unique_ptr<Bootstrap>(new Bootstrap(std::move(state)));
} catch (const std::exception& error) {
  return Annotate(StatusOf(error), "bootstrap");
}

Bootstrap::Bootstrap(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bootstrap::~Bootstrap() = default;

Rank Bootstrap::rank() const { return state_->rank; }
int32_t Bootstrap::ranks() const { return state_->ranks; }
const std::string& Bootstrap::job() const { return state_->job; }
const std::string& Bootstrap::address() const { return state_->address; }
const std::vector<int32_t>& Bootstrap::hosts() const { return state_->hosts; }
const std::vector<std::string>& Bootstrap::host_names() const { return state_->host_names; }
int32_t Bootstrap::local_rank() const { return state_->local_rank; }
int32_t Bootstrap::local_ranks() const { return state_->local_ranks; }

StatusOr<std::vector<std::string>> Bootstrap::AllGather(std::string_view mine, nanoseconds limit) try {
  return state_->Gather(mine, limit);
} catch (const std::exception& error) {
  const Status status = Annotate(StatusOf(error), fmt::format("AllGather: rank {}", rank().value));
  Fail(status);
  return status;
}

Status Bootstrap::Barrier(nanoseconds limit) try {
  return state_->Rounds("Barrier", limit, nullptr);
} catch (const std::exception& error) {
  Status status = Annotate(StatusOf(error), fmt::format("Barrier: rank {}", rank().value));
  Fail(status);
  return status;
}

void Bootstrap::Post(std::string_view key, std::string_view text) { state_->watcher->Post(key, text); }
std::optional<std::string> Bootstrap::AwaitNote(std::string_view key, nanoseconds limit) {
  return state_->watcher->AwaitNote(key, After(limit));
}

Status Bootstrap::Link(Rank other) try {
  return state_->watcher->Link(other.value);
} catch (const std::exception& error) {
  return Annotate(StatusOf(error), fmt::format("rank {}", rank().value));
}
bool Bootstrap::IsLinked(Rank other) const { return state_->watcher->IsLinked(other.value); }

void Bootstrap::Fail(const Status& reason) { state_->watcher->Fail(reason); }
std::optional<Status> Bootstrap::Failure() const { return state_->watcher->Failure(); }
void Bootstrap::OnFailure(std::function<void(const Status&)> callback) {
  state_->watcher->OnFailure(std::move(callback));
}
std::vector<Bootstrap::LeftRank> Bootstrap::Left() const {
  std::vector<LeftRank> all;
  for (const bootstrap::LeftRank& left : state_->watcher->Left()) all.push_back({Rank(left.rank), left.call});
  return all;
}
bool Bootstrap::HasLeft(Rank rank) const { return state_->watcher->HasLeft(rank.value); }
void Bootstrap::NoteCall(uint64_t call) { state_->watcher->NoteCall(call); }
void Bootstrap::NoteProgress() { state_->watcher->NoteProgress(); }
uint64_t Bootstrap::Progress() const { return state_->watcher->Progress(); }

}  // namespace xccl
