#include "runtime/rdma/ofi/rail.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "runtime/rdma/ofi/signal.h"

namespace xccl::ofi {
namespace {

constexpr uint32_t kVersion = FI_VERSION(1, 14);
// In order of preference where none is named: a cloud's own network, then TCP. For TCP, libfabric 1.16
// and 1.17 have net and 1.18 puts it into tcp: an eight-byte message takes two thirds of the time over
// ofi_rxm.
constexpr const char* kProviders[] = {"efa", "net", "tcp", "tcp;ofi_rxm"};

constexpr uint32_t kNetWithEvents = FI_VERSION(117, 0);  // libfabric 1.17: OpenEvents

Status Failed(const Library& library, const std::string& what, int64_t code) {
  return SystemError(fmt::format("{}: {}", what, library.ErrorText(static_cast<int>(-code))));
}

std::string AddressOf(const fi_info& info) {
  char text[INET6_ADDRSTRLEN] = "";
  if (info.src_addr == nullptr) return "";
  if (info.addr_format == FI_SOCKADDR_IN)
    inet_ntop(AF_INET, &static_cast<const sockaddr_in*>(info.src_addr)->sin_addr, text, sizeof text);
  if (info.addr_format == FI_SOCKADDR_IN6)
    inet_ntop(AF_INET6, &static_cast<const sockaddr_in6*>(info.src_addr)->sin6_addr, text, sizeof text);
  return text;
}

bool IsLocal(const std::string& address) {
  return address == "::1" || address.starts_with("127.") || address.starts_with("fe80:");
}

Info HintsFor(const Library& library, const char* provider) {
  Info hints(library.DuplicateInfo(nullptr), FreeInfo{library.FreeInfo});
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->fabric_attr->prov_name = strdup(provider);  // FreeInfo frees it
  return hints;
}

// The devices that a provider finds, each once: the device of this rank's own address first, then devices
// with addresses of its family.
std::vector<Info> Candidates(const Library& library, const char* provider, const std::string& own) {
  const Info hints = HintsFor(library, provider);
  std::vector<Info> candidates;
  std::set<std::string> names;
  const bool v6 = own.find(':') != std::string::npos;
  for (const char* from : {own.c_str(), static_cast<const char*>(nullptr)}) {
    fi_info* found = nullptr;
    const uint64_t source = from == nullptr ? 0 : FI_SOURCE;
    if (library.GetInfo(kVersion, from, nullptr, source, hints.get(), &found) != 0) continue;
    const Info all(found, FreeInfo{library.FreeInfo});
    for (const fi_info* one = found; one != nullptr; one = one->next) {
      const std::string address = AddressOf(*one);
      if (from == nullptr && IsLocal(address)) continue;
      if (!address.empty() && (address.find(':') != std::string::npos) != v6) continue;
      if (!names.insert(one->domain_attr->name).second) continue;
      candidates.emplace_back(library.DuplicateInfo(one), FreeInfo{library.FreeInfo});
    }
  }
  return candidates;
}

template <typename Fid>
Status Bind(const Library& library, fid_ep& endpoint, Fid& to, uint64_t flags, const std::string& name) {
  const int code = fi_ep_bind(&endpoint, &to.fid, flags);
  return code == 0 ? OkStatus() : Failed(library, name + ": bind", code);
}

// Provider net of libfabric 1.17: for a file to wait on, a completion queue takes a thread that reads all
// sockets beside this rank and rings for each completion. An event queue's file is readable when a socket is,
// without a thread.
Status OpenEvents(const Library& library, Rail& rail) {
  fi_eq_attr wanted = {};
  wanted.wait_obj = FI_WAIT_FD;
  fid_eq* events = nullptr;
  if (const int code = fi_eq_open(rail.fabric.get(), &wanted, &events, nullptr); code != 0)
    return Failed(library, rail.name + ": event queue", code);
  rail.events.reset(events);
  return OkStatus();
}

Status OpenCompletions(const Library& library, size_t depth, Rail& rail) {
  fi_cq_attr wanted = {};
  wanted.format = FI_CQ_FORMAT_DATA;
  wanted.size = depth;
  wanted.wait_obj = rail.events == nullptr ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* completions = nullptr;
  if (const int code = fi_cq_open(rail.domain.get(), &wanted, &completions, nullptr); code != 0)
    return Failed(library, fmt::format("{}: completion queue of {}", rail.name, depth), code);
  rail.completions.reset(completions);
  fid& waits = rail.events == nullptr ? completions->fid : rail.events->fid;
  if (const int code = fi_control(&waits, FI_GETWAIT, &rail.file); code != 0)
    return Failed(library, rail.name + ": file to wait on", code);
  return OkStatus();
}

Status NameEndpoint(Rail& rail) {
  rail.address.assign(256, '\0');
  size_t bytes = rail.address.size();
  if (fi_getname(&rail.endpoint->fid, rail.address.data(), &bytes) != 0 || bytes > rail.address.size())
    return SystemError(rail.name + ": the endpoint has no address");
  rail.address.resize(bytes);
  return OkStatus();
}

Status OpenDevice(const Library& library, fi_info& info, Rail& rail) {
  fid_fabric* fabric = nullptr;
  if (const int code = library.Fabric(info.fabric_attr, &fabric, nullptr); code != 0)
    return Failed(library, rail.name + ": fabric", code);
  rail.fabric.reset(fabric);
  if (std::string_view(info.fabric_attr->prov_name) == "net" &&
      info.fabric_attr->prov_version >= kNetWithEvents)
    XCCL_RETURN_IF_ERROR(OpenEvents(library, rail));
  fid_domain* domain = nullptr;
  if (const int code = fi_domain(fabric, &info, &domain, nullptr); code != 0)
    return Failed(library, rail.name + ": domain", code);
  rail.domain.reset(domain);
  fi_av_attr wanted = {};
  wanted.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  if (const int code = fi_av_open(domain, &wanted, &addresses, nullptr); code != 0)
    return Failed(library, rail.name + ": address vector", code);
  rail.addresses.reset(addresses);
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Info>> FindDevices(const Library& library, const NetworkOptions& options,
                                        int32_t rails) {
  if (options.provider == "sockets")
    return SystemError(
        "libfabric: provider sockets: it is no longer kept, and runs over it stall; expected efa, net or "
        "tcp");
  std::vector<Info> candidates;
  std::string found;
  for (const char* provider : kProviders) {
    if (!options.provider.empty() && options.provider != provider) continue;
    if (candidates.empty()) candidates = Candidates(library, provider, options.address);
  }
  if (candidates.empty() && !options.provider.empty())
    candidates = Candidates(library, options.provider.c_str(), options.address);
  for (const Info& one : candidates)
    found += (found.empty() ? "" : ", ") + std::string(one->domain_attr->name);
  if (candidates.empty())
    return SystemError(fmt::format("libfabric: no device of provider {} with the address {}",
                                   options.provider.empty() ? "efa, net or tcp" : options.provider,
                                   options.address));
  std::vector<Info> devices;
  for (int32_t rail = 0; rail < rails; ++rail) {
    size_t chosen = static_cast<size_t>(rail) % candidates.size();
    if (!options.devices.empty()) {
      const std::string& name = options.devices[static_cast<size_t>(rail) % options.devices.size()];
      const auto at =
          std::ranges::find_if(candidates, [&](const Info& one) { return name == one->domain_attr->name; });
      if (at == candidates.end())
        return SystemError(fmt::format("network device {}: not found; found {}", name, found));
      chosen = static_cast<size_t>(at - candidates.begin());
    }
    devices.emplace_back(library.DuplicateInfo(candidates[chosen].get()), FreeInfo{library.FreeInfo});
  }
  return devices;
}

StatusOr<Rail> OpenRail(const Library& library, const fi_info& info, size_t depth) {
  const Info own(library.DuplicateInfo(&info), FreeInfo{library.FreeInfo});
  Rail rail;
  rail.name = fmt::format("{} on {}", info.fabric_attr->prov_name, info.domain_attr->name);
  own->tx_attr->size = std::min(own->tx_attr->size, depth);
  XCCL_RETURN_IF_ERROR(OpenDevice(library, *own, rail));
  XCCL_RETURN_IF_ERROR(OpenCompletions(library, depth, rail));
  rail.virtual_base = (info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  rail.key_bytes = info.domain_attr->mr_key_size;
  rail.data_bytes = info.domain_attr->cq_data_size;
  if (rail.data_bytes < kLeastDataBytes)
    return SystemError(fmt::format("{}: writes carry {} bytes of data; expected at least {}", rail.name,
                                   rail.data_bytes, kLeastDataBytes));
  fid_ep* endpoint = nullptr;
  if (const int code = fi_endpoint(rail.domain.get(), own.get(), &endpoint, nullptr); code != 0)
    return Failed(library, rail.name + ": endpoint", code);
  rail.endpoint.reset(endpoint);
  XCCL_RETURN_IF_ERROR(Bind(library, *endpoint, *rail.addresses, 0, rail.name));
  XCCL_RETURN_IF_ERROR(Bind(library, *endpoint, *rail.completions, FI_TRANSMIT | FI_RECV, rail.name));
  if (const int code = fi_enable(endpoint); code != 0) return Failed(library, rail.name + ": enable", code);
  XCCL_RETURN_IF_ERROR(NameEndpoint(rail));
  return rail;
}

StatusOr<fid_mr*> Register(const Library& library, std::span<std::byte> slots, Rail& rail) {
  constexpr int kMostTries = 100;  // short keys may meet
  fid_mr* registered = nullptr;
  int code = -FI_ENOKEY;
  for (int i = 0; i < kMostTries && code == -FI_ENOKEY; ++i)
    code = fi_mr_reg(rail.domain.get(), slots.data(), slots.size(), FI_WRITE | FI_REMOTE_WRITE, 0,
                     LowBytes(SystemRandom(), rail.key_bytes), 0, &registered, nullptr);
  if (code != 0)
    return Failed(library, fmt::format("{}: registering {} bytes of slots", rail.name, slots.size()), code);
  rail.memory.emplace_back(registered);
  return registered;
}

}  // namespace xccl::ofi
