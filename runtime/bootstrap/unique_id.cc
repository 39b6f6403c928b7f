// Form, in bytes: "XCID", version, numbers of IPv4 and of IPv6 addresses, one of zero, the port in two, two
// of zero, the token in 16, five IPv4 addresses, five IPv6 addresses.
#include "runtime/bootstrap/unique_id.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/exceptions.h"
#include "base/threads.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/rendezvous.h"

namespace xccl {
namespace {

constexpr size_t kMostOfAFamily = 5;
struct Form {
  char magic[4] = {'X', 'C', 'I', 'D'};
  uint8_t version = 1, v4 = 0, v6 = 0, zero = 0;
  uint16_t port = 0, zeros = 0;
  std::array<char, 16> token = {};
  std::array<std::array<uint8_t, 4>, kMostOfAFamily> v4s = {};
  std::array<std::array<uint8_t, 16>, kMostOfAFamily> v6s = {};
};
static_assert(sizeof(Form) == sizeof(UniqueId));

// False: there is no room for it.
bool Add(const bootstrap::Address& address, Form& form) {
  if (address.family() == AF_INET && form.v4 < kMostOfAFamily) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    std::memcpy(form.v4s[form.v4++].data(), &v4.sin_addr, 4);
  } else if (address.family() == AF_INET6 && form.v6 < kMostOfAFamily) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    std::memcpy(form.v6s[form.v6++].data(), &v6.sin6_addr, 16);
  } else {
    return false;
  }
  return true;
}

std::vector<bootstrap::Address> Fitting(std::vector<bootstrap::Address> addresses) {
  Form form;
  std::erase_if(addresses, [&](const bootstrap::Address& address) { return !Add(address, form); });
  return addresses;
}

std::string Endpoint(int family, const void* ip, uint16_t port) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  inet_ntop(family, ip, text.data(), text.size());
  return family == AF_INET ? fmt::format("{}:{}", text.data(), port)
                           : fmt::format("[{}]:{}", text.data(), port);
}

std::string Seed(const Form& form) {
  return "unique id " + bootstrap::Hex({form.token.data(), form.token.size()});
}

// All addresses, those of IPv4 first; the loopback only where there is no other.
std::string Endpoints(const Form& form) {
  std::string all;
  for (size_t i = 0; i < form.v4; ++i)
    all += fmt::format("{}{}", all.empty() ? "" : ",", Endpoint(AF_INET, form.v4s[i].data(), form.port));
  for (size_t i = 0; i < form.v6; ++i)
    all += fmt::format("{}{}", all.empty() ? "" : ",", Endpoint(AF_INET6, form.v6s[i].data(), form.port));
  return all;
}

struct IdServer {
  std::unique_ptr<bootstrap::Lobby> lobby;
  bootstrap::Serving serving;
  std::atomic<bool> stop{false};
  std::weak_ptr<void> users;  // guarded by the servers' mutex
};

struct IdServers {
  std::mutex mutex;  // guards what follows
  std::map<UniqueId, std::shared_ptr<IdServer>> by_id;
};

// It is never freed, since threads use it until the process ends.
IdServers& TheServers() {
  static IdServers& servers = *new IdServers;
  return servers;
}

void ServeId(const std::shared_ptr<IdServer>& server, const UniqueId& id) {
  try {
    (void)bootstrap::Serve(*server->lobby, server->serving);  // the ranks are told
  } catch (const std::exception&) {
    server->lobby->CloseDoor();  // out of memory: the ranks see that it has ended
  }
  IdServers& servers = TheServers();
  const std::lock_guard lock(servers.mutex);
  servers.by_id.erase(id);
}

}  // namespace

std::shared_ptr<void> UseUniqueId(const UniqueId& id) {
  IdServers& servers = TheServers();
  const std::lock_guard lock(servers.mutex);
  const auto found = servers.by_id.find(id);
  if (found == servers.by_id.end()) return nullptr;
  const std::shared_ptr<IdServer>& server = found->second;
  if (std::shared_ptr<void> users = server->users.lock()) return users;
  // The server knows its users, so they must not own it.
  std::shared_ptr<void> users(server.get(), [server = std::weak_ptr(server)](void*) {
    if (const std::shared_ptr<IdServer> serving = server.lock()) serving->stop = true;
  });
  server->users = users;
  return users;
}

StatusOr<UniqueId> MakeUniqueId(const BootstrapOptions& options, const std::string& met_at) try {
  XCCL_ASSIGN_OR_RETURN(std::vector<bootstrap::Interface> interfaces,
                        bootstrap::Interfaces(options.interface));
  std::vector<bootstrap::Address> addresses;
  const bool outside = !interfaces.empty() && !interfaces[0].loopback;
  for (const bootstrap::Interface& interface : interfaces)
    if (!outside || !interface.loopback) addresses.push_back(interface.address);
  if (interfaces.empty()) addresses.push_back(bootstrap::AddressV4(INADDR_LOOPBACK, 0));
  if (const StatusOr<bootstrap::Address> met = bootstrap::NumericAddress(met_at, 0); met.ok()) {
    const auto others = [&](const bootstrap::Address& one) { return one.family() != met->family(); };
    if (!std::ranges::all_of(addresses, others)) std::erase_if(addresses, others);
    std::stable_partition(addresses.begin(), addresses.end(),
                          [&](const bootstrap::Address& one) { return one.Host() == met->Host(); });
  }
  const auto server = std::make_shared<IdServer>();
  XCCL_ASSIGN_OR_RETURN(server->lobby, bootstrap::Lobby::Open(Fitting(addresses)));
  Form form;
  for (const bootstrap::Address& address : server->lobby->addresses()) Add(address, form);
  form.port = server->lobby->port();
  const bootstrap::Digest secret = bootstrap::RandomDigest();
  std::copy_n(secret.begin(), form.token.size(), form.token.begin());

  server->serving.name = "rendezvous " + Endpoints(form);
  server->serving.secret = Seed(form);
  server->serving.until = bootstrap::After(options.time_limit);
  server->serving.limit = options.time_limit;
  server->serving.stop = &server->stop;
  UniqueId id;
  std::memcpy(id.data(), &form, sizeof form);
  IdServers& servers = TheServers();
  const std::lock_guard lock(servers.mutex);
  const auto entry = servers.by_id.emplace(id, server).first;
  StatusOr<std::thread> thread = StartThread([server, id] { ServeId(server, id); });
  if (!thread.ok()) {
    servers.by_id.erase(entry);
    return thread.status();
  }
  thread->detach();
  return id;
} catch (const std::exception& error) {
  return StatusOf(error);
}

StatusOr<Placement> FromUniqueId(const UniqueId& id, Rank rank, int32_t ranks) {
  Form form;
  const Form empty;
  std::memcpy(&form, id.data(), sizeof form);
  if (std::memcmp(form.magic, empty.magic, sizeof form.magic) != 0 || form.version != empty.version ||
      form.v4 > kMostOfAFamily || form.v6 > kMostOfAFamily || form.v4 + form.v6 == 0 || form.port == 0)
    return UsageError("the unique id was not made by this version of XCCL");
  if (ranks < 1 || rank.value < 0 || rank.value >= ranks)
    return UsageError(fmt::format("rank {} of {}: expected a rank from 0 to size - 1", rank.value, ranks));
  Placement placement;
  placement.launcher = "unique-id";
  placement.rank = rank;
  placement.ranks = ranks;
  placement.job = fmt::format("unique-id-{}", form.port);
  placement.rendezvous = Endpoints(form);
  placement.token_seed = Seed(form);
  placement.served = true;
  return placement;
}

}  // namespace xccl
