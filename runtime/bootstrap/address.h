// IP addresses: their texts, names, and those of this host's interfaces.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl::bootstrap {

// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage storage = {};

  int family() const { return storage.ss_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  socklen_t size() const;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool IsLoopback() const;
  bool IsAny() const;            // 0.0.0.0 or ::, which name no host
  std::string Host() const;      // "10.0.0.1", "fd00::1"; an IPv4 address in IPv6 form as IPv4
  std::string ToString() const;  // "10.0.0.1:4000", "[fd00::1]:4000"
};

Address AddressV4(uint32_t host_order, uint16_t port);
// Errors: kInvalidInput where `ip` is no numeric address.
StatusOr<Address> NumericAddress(std::string_view ip, uint16_t port);

// "host:port", "[v6]:port", several with commas; names are looked up, and each may have several addresses.
// All names are looked up side by side. Where there are several, a name that cannot be looked up, or not
// within a second after another name was, is left out. Errors: kInvalidInput naming what has no port, or the
// first that cannot be looked up where none can; kLimit where the first is still looked up at `until`.
StatusOr<std::vector<Address>> Resolve(
    std::string_view endpoints,
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
// Splits "host:port", "[v6]:port", "host" and "v6"; port 0 where there is none.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
};
StatusOr<Endpoint> ParseEndpoint(std::string_view text);

struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
};
// The addresses of interfaces that are up, the best first: bridges of containers and virtual machines come
// after other interfaces, IPv6 after IPv4, loopback last. Link-local addresses are left out.
std::vector<Interface> Interfaces();
// The interfaces that `names` selects: "eth,ib" by the starts of their names, "=eth1" by the whole name,
// "^docker,lo" all that do not start so; "": all. Errors: kInvalidInput "XCCL_INTERFACE=eth7: no interface
// ...; this host has eth0, lo".
StatusOr<std::vector<Interface>> Interfaces(std::string_view names);

// Is the host part of `address` one of this host's own?
bool IsOwn(const Address& address);

}  // namespace xccl::bootstrap
