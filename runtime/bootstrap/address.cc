#include "runtime/bootstrap/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/strings.h"
#include "base/threads.h"
#include "base/units.h"

namespace xccl::bootstrap {
namespace {

const sockaddr_in& V4(const sockaddr_storage& s) { return reinterpret_cast<const sockaddr_in&>(s); }
const sockaddr_in6& V6(const sockaddr_storage& s) { return reinterpret_cast<const sockaddr_in6&>(s); }

Address FromRaw(const sockaddr* raw) {
  Address address;
  std::memcpy(&address.storage, raw, raw->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return address;
}

bool IsLinkLocal(const Address& address) {
  if (address.family() == AF_INET) return (ntohl(V4(address.storage).sin_addr.s_addr) >> 16) == 0xa9fe;
  return IN6_IS_ADDR_LINKLOCAL(&V6(address.storage).sin6_addr) != 0;
}

// Bridges of containers and virtual machines: other hosts have the same addresses behind the same names.
bool IsVirtual(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kStarts = {"docker", "virbr", "br-",    "veth",
                                                              "cni",    "lxc",   "podman", "flannel"};
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return name.substr(0, start.size()) == start; });
}

int Worth(const Interface& interface) {  // less is better
  return (interface.loopback          ? 4
          : IsVirtual(interface.name) ? 2
                                      : 0) +
         (interface.address.family() == AF_INET6 ? 1 : 0);
}

bool Selected(std::string_view name, std::string_view names) {
  const bool all_but = names.substr(0, 1) == "^";
  if (all_but) names.remove_prefix(1);
  const bool exact = names.substr(0, 1) == "=";
  if (exact) names.remove_prefix(1);
  bool named = false;
  for (const std::string& item : Split(names, ','))
    named |= !item.empty() && (exact ? name == item : name.substr(0, item.size()) == item);
  return named != all_but;
}

// Numbers where `flags` says so, else names.
StatusOr<std::vector<Address>> LookUp(const Endpoint& endpoint, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0)
    return InvalidInput(
        fmt::format("{}: the name of a host that cannot be looked up ({}); hint: "
                    "XCCL_ADDRESS=IP:PORT",
                    endpoint.host, gai_strerror(error)));
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next)
    if (at->ai_family == AF_INET || at->ai_family == AF_INET6) addresses.push_back(FromRaw(at->ai_addr));
  freeaddrinfo(found);
  return addresses;
}

// The resolver knows no time limit, so each name has a thread, which is left behind when the time is over.
class LookUps {
 public:
  using Result = StatusOr<std::vector<Address>>;
  using Clock = std::chrono::steady_clock;

  void Start(const Endpoint& endpoint) {
    StatusOr<std::vector<Address>> numeric = LookUp(endpoint, AI_NUMERICHOST);
    const std::lock_guard adding(state_->mutex);
    const size_t which = state_->results.size();
    state_->results.emplace_back();
    if (numeric.ok()) {
      state_->results[which] = std::move(numeric);
      return;
    }
    StatusOr<std::thread> thread = StartThread([state = state_, endpoint, which] {
      Result found = LookUp(endpoint, 0);
      const std::lock_guard lock(state->mutex);
      state->results[which] = std::move(found);
      state->changed.notify_all();
    });
    if (thread.ok())
      thread->detach();
    else
      state_->results[which] = thread.status();
  }

  // By name; none where it is still looked up.
  std::vector<std::optional<Result>> Take(Clock::time_point until) {
    std::unique_lock lock(state_->mutex);
    const auto any = [&](const auto& which) { return std::ranges::any_of(state_->results, which); };
    const auto waits = [](const std::optional<Result>& one) { return !one; };
    const auto known = [](const std::optional<Result>& one) { return one && one->ok(); };
    while (any(waits) && !any(known) && Clock::now() < until) WaitUntil(lock, until);
    const Clock::time_point others = std::min(until, Clock::now() + std::chrono::seconds(1));
    while (any(waits) && Clock::now() < others) WaitUntil(lock, others);
    return state_->results;
  }

 private:
  struct State {
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    std::vector<std::optional<Result>> results;
  };
  void WaitUntil(std::unique_lock<std::mutex>& lock, Clock::time_point until) {
    // Some libraries overflow at the last moment of a clock.
    state_->changed.wait_until(lock, std::min(until, Clock::now() + std::chrono::hours(1)));
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

uint16_t Address::port() const {
  return ntohs(family() == AF_INET ? V4(storage).sin_port : V6(storage).sin6_port);
}

void Address::set_port(uint16_t port) {
  if (family() == AF_INET)
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
}

socklen_t Address::size() const { return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

bool Address::IsLoopback() const {
  if (family() == AF_INET) return (ntohl(V4(storage).sin_addr.s_addr) >> 24) == 127;
  const in6_addr& ip = V6(storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ip) || (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[12] == 127);
}

bool Address::IsAny() const {
  if (family() == AF_INET) return V4(storage).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&V6(storage).sin6_addr) != 0 || Host() == "0.0.0.0";
}

std::string Address::Host() const {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &V4(storage).sin_addr, text.data(), text.size());
  } else if (IN6_IS_ADDR_V4MAPPED(&V6(storage).sin6_addr)) {
    inet_ntop(AF_INET, &V6(storage).sin6_addr.s6_addr[12], text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, &V6(storage).sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::string Address::ToString() const {
  const std::string host = Host();
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port())
                                             : fmt::format("[{}]:{}", host, port());
}

Address AddressV4(uint32_t host_order, uint16_t port) {
  Address address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(host_order);
  v4.sin_port = htons(port);
  return address;
}

StatusOr<Address> NumericAddress(std::string_view ip, uint16_t port) {
  const std::string text(ip);
  Address address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else {
    address.storage = {};
    if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) != 1)
      return InvalidInput(fmt::format("{}: no IP address", Shortened(ip)));
    v6.sin6_family = AF_INET6;
  }
  address.set_port(port);
  return address;
}

StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  std::string_view port;
  const size_t colon = text.rfind(':');
  if (text.substr(0, 1) == "[") {
    const size_t end = text.find(']');
    if (end == std::string_view::npos || (end + 1 != text.size() && text[end + 1] != ':'))
      return InvalidInput(fmt::format("{}: expected [ADDRESS]:PORT", Shortened(text)));
    endpoint.host = text.substr(1, end - 1);
    if (end + 1 != text.size()) port = text.substr(end + 2);
  } else if (colon == std::string_view::npos || text.find(':') != colon) {
    endpoint.host = text;  // a name, an IPv4 or a bare IPv6 address
  } else {
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty())
      return InvalidInput(fmt::format("{}: expected a port after the colon", Shortened(text)));
  }
  if (endpoint.host.empty()) return InvalidInput(fmt::format("'{}': expected HOST:PORT", Shortened(text)));
  if (!port.empty()) {
    StatusOr<int64_t> number = ParseInteger(port, 1, 65535);
    if (!number.ok()) return Annotate(number.status(), Shortened(text));
    endpoint.port = static_cast<uint16_t>(*number);
  }
  return endpoint;
}

StatusOr<std::vector<Address>> Resolve(std::string_view endpoints,
                                       std::chrono::steady_clock::time_point until) {
  const std::vector<std::string> texts = Split(endpoints, ',');
  std::vector<Endpoint> parsed;
  for (const std::string& text : texts) {
    XCCL_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    if (endpoint.port == 0)
      return InvalidInput(fmt::format("{}: no port; expected HOST:PORT", Shortened(text)));
    parsed.push_back(endpoint);
  }
  LookUps names;
  for (const Endpoint& endpoint : parsed) names.Start(endpoint);
  const auto results = names.Take(until);
  std::vector<Address> all;
  Status unknown;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] && results[i]->ok()) all.insert(all.end(), (*results[i])->begin(), (*results[i])->end());
    if (!unknown.ok()) continue;
    if (!results[i])
      unknown = LimitReached(fmt::format(
          "{}: the name of a host that was not looked up within the time limit; hint: XCCL_ADDRESS=IP:PORT",
          parsed[i].host));
    else if (!results[i]->ok())
      unknown = results[i]->status();
  }
  if (all.empty() && !unknown.ok()) return unknown;
  return all;
}

std::vector<Interface> Interfaces() {
  std::vector<Interface> interfaces;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return interfaces;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    if (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6) continue;
    Interface interface { at->ifa_name, FromRaw(at->ifa_addr), (at->ifa_flags & IFF_LOOPBACK) != 0 };
    if (!IsLinkLocal(interface.address)) interfaces.push_back(std::move(interface));
  }
  freeifaddrs(first);
  std::stable_sort(interfaces.begin(), interfaces.end(),
                   [](const Interface& a, const Interface& b) { return Worth(a) < Worth(b); });
  return interfaces;
}

StatusOr<std::vector<Interface>> Interfaces(std::string_view names) {
  std::vector<Interface> all = Interfaces();
  if (names.empty()) return all;
  std::vector<std::string> known;
  std::vector<Interface> selected;
  for (Interface& interface : all) {
    if (std::find(known.begin(), known.end(), interface.name) == known.end()) known.push_back(interface.name);
    if (Selected(interface.name, names)) selected.push_back(std::move(interface));
  }
  if (selected.empty())
    return InvalidInput(
        fmt::format("XCCL_INTERFACE={}: no interface with an address has such a name; this host "
                    "has {}",
                    Shortened(names), Join(known, ", ")));
  return selected;
}

bool IsOwn(const Address& address) {
  if (address.IsLoopback()) return true;
  const std::string host = address.Host();
  const std::vector<Interface> interfaces = Interfaces();
  return std::any_of(interfaces.begin(), interfaces.end(),
                     [&](const Interface& interface) { return interface.address.Host() == host; });
}

}  // namespace xccl::bootstrap
