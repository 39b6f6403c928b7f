#include "runtime/rdma/verbs/rail.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

namespace xccl::verbs {
namespace {

// Without relaxed ordering: a counter must not overtake the message before it.
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

// The list of devices, freed at the end. Devices that are open stay usable.
class DeviceList {
 public:
  explicit DeviceList(const Library& library) : library_(library), list_(library.GetDeviceList(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) library_.FreeDeviceList(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  std::span<ibv_device*> all() const { return {list_, list_ == nullptr ? 0 : static_cast<size_t>(count_)}; }

 private:
  const Library& library_;
  int count_ = 0;
  ibv_device** const list_;
};

// mlx5_2 before mlx5_10.
bool NameBefore(const ibv_device* a, const ibv_device* b) {
  const auto key = [](const ibv_device* device) {
    const std::string_view name = device->name;
    const size_t digits = name.size() - (name.find_last_not_of("0123456789") + 1);
    return std::tuple(name.substr(0, name.size() - digits), digits, name);
  };
  return key(a) < key(b);
}

std::string TypeOfGid(const ibv_device& device, uint8_t port, int index) {
  std::ifstream file(fmt::format("{}/ports/{}/gid_attrs/types/{}", device.ibdev_path, port, index));
  std::string line;
  std::getline(file, line);
  return line;
}

bool IsLinkLocal(const GidBytes& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

// An IP address as RoCE writes it: IPv4 mapped to IPv6.
std::optional<GidBytes> GidOf(const std::string& address) {
  GidBytes gid = {};
  if (inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
  gid[10] = gid[11] = 0xff;
  if (inet_pton(AF_INET, address.c_str(), gid.data() + 12) == 1) return gid;
  return std::nullopt;
}

// The addresses of a RoCE port. Where one is this rank's own, it is the only one: others know the rank by it.
std::vector<Gid> GidsOf(const Library& library, const Rail& rail, const std::string& own) {
  std::vector<Gid> gids;
  const std::optional<GidBytes> own_gid = GidOf(own);
  for (int index = 0; index < std::min(rail.attributes.gid_tbl_len, 256); ++index) {
    ibv_gid read = {};
    if (library.QueryGid(rail.context.get(), rail.port, index, &read) != 0) continue;
    Gid gid{.bytes = {}, .index = static_cast<uint8_t>(index)};
    std::memcpy(gid.bytes.data(), read.raw, gid.bytes.size());
    if (gid.bytes == GidBytes{} || IsLinkLocal(gid.bytes)) continue;
    if (TypeOfGid(*rail.context->device, rail.port, index) != "RoCE v2") continue;
    if (own_gid == gid.bytes) return {gid};
    gids.push_back(gid);
  }
  return gids;
}

// Opens the device if it can carry reliable connections; else says why not.
StatusOr<Rail> Open(const Library& library, ibv_device& device, const std::string& own_address) {
  Rail rail;
  rail.name = device.name;
  if (device.transport_type != IBV_TRANSPORT_IB)
    return SystemError(rail.name + ": no reliable queue pairs; expected InfiniBand or RoCE");
  rail.context = Owned<ibv_context>(library.OpenDevice(&device), {library.CloseDevice});
  if (rail.context == nullptr) return Failed(rail.name + ": opening", errno);
  if (const int code = library.QueryDevice(rail.context.get(), &rail.limits); code != 0)
    return Failed(rail.name + ": limits", code);
  for (uint8_t port = 1; port <= rail.limits.phys_port_cnt && rail.port == 0; ++port) {
    rail.attributes = {};
    if (const int code = library.QueryPort(rail.context.get(), port, &rail.attributes); code != 0)
      return Failed(fmt::format("{}: port {}", rail.name, port), code);
    if (rail.attributes.state == IBV_PORT_ACTIVE) rail.port = port;
  }
  if (rail.port == 0) return SystemError(rail.name + ": no active port");
  if (rail.ethernet()) rail.gids = GidsOf(library, rail, own_address);
  if (rail.ethernet() && rail.gids.empty())
    return SystemError(
        fmt::format("{}: port {} has no RoCE v2 address but link-local ones; hint: give its "
                    "interface an IP address",
                    rail.name, rail.port));
  rail.domain = Owned<ibv_pd>(library.AllocPd(rail.context.get()), {library.DeallocPd});
  if (rail.domain == nullptr) return Failed(rail.name + ": protection domain", errno);
  return rail;
}

// Equal addresses count as strangers: two hosts that both have one cannot reach each other by it.
int CommonBits(const GidBytes& a, const GidBytes& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (const auto differ = static_cast<uint8_t>(a[i] ^ b[i]); differ != 0)
      return static_cast<int>(8 * i) + std::countl_zero(differ);
  return 0;
}

}  // namespace

Status Failed(const std::string& what, int code) {
  return SystemError(fmt::format("{}: {}", what, std::generic_category().message(code)));
}

StatusOr<std::vector<Rail>> OpenRails(const Library& library, const NetworkOptions& options, int32_t wanted) {
  const DeviceList list(library);
  std::vector<ibv_device*> devices(list.all().begin(), list.all().end());
  std::ranges::sort(devices, NameBefore);
  std::vector<Rail> rails;
  std::string known, refused;
  for (const ibv_device* device : devices) known += (known.empty() ? "" : ", ") + std::string(device->name);
  for (const std::string& name : options.devices) {
    if (rails.size() == static_cast<size_t>(wanted)) break;
    const auto at = std::ranges::find_if(devices, [&](const ibv_device* one) { return name == one->name; });
    if (at == devices.end())
      return SystemError(known.empty() ? name + ": no such device; this machine has none"
                                       : fmt::format("{}: no such device; expected one of {}", name, known));
    XCCL_ASSIGN_OR_RETURN(Rail rail, Open(library, **at, options.address));
    rails.push_back(std::move(rail));
  }
  if (!options.devices.empty()) return rails;
  for (ibv_device* device : devices) {
    if (rails.size() == static_cast<size_t>(wanted)) break;
    StatusOr<Rail> rail = Open(library, *device, options.address);
    if (rail.ok()) {
      rails.push_back(*std::move(rail));
    } else {
      refused += "; " + rail.status().message();
    }
  }
  if (rails.empty())
    return SystemError("verbs: no device with an active port" +
                       (refused.empty() ? "; this machine has no device" : refused));
  return rails;
}

Status RegisterSlots(const Library& library, const NetworkMemory& memory, Rail& rail) {
  const auto slots = static_cast<size_t>(memory.layout.SlotsBytes());
  if (memory.dmabuf < 0) {
    rail.slots =
        Owned<ibv_mr>(library.RegMr(rail.domain.get(), memory.slots, slots, kAccess), {library.DeregMr});
  } else if (library.RegDmabufMr != nullptr) {
    rail.slots =
        Owned<ibv_mr>(library.RegDmabufMr(rail.domain.get(), 0, slots,
                                          reinterpret_cast<uint64_t>(memory.slots), memory.dmabuf, kAccess),
                      {library.DeregMr});
  } else {
    return SystemError(rail.name + ": this libibverbs.so.1 has no ibv_reg_dmabuf_mr; expected rdma-core 34");
  }
  if (rail.slots == nullptr) {
    const int code = errno;
    const bool locked = memory.dmabuf < 0 && (code == ENOMEM || code == EAGAIN);
    Status failed = Failed(fmt::format("{}: registering {} bytes of slots", rail.name, slots), code);
    return locked ? SystemError(failed.message() + "; hint: ulimit -l unlimited") : failed;
  }
  return OkStatus();
}

Status RegisterCells(const Library& library, const NetworkMemory& memory, Rail& rail) {
  const auto cells = static_cast<size_t>(memory.layout.CellsBytes());
  rail.cells =
      Owned<ibv_mr>(library.RegMr(rail.domain.get(), memory.cells, cells, kAccess), {library.DeregMr});
  if (rail.cells == nullptr)
    return Failed(fmt::format("{}: registering {} bytes of cells", rail.name, cells), errno);
  return OkStatus();
}

StatusOr<ibv_cq*> AddQueue(const Library& library, uint32_t entries, Rail& rail) {
  if (rail.channel == nullptr) {
    rail.channel =
        Owned<ibv_comp_channel>(library.CreateCompChannel(rail.context.get()), {library.DestroyCompChannel});
    if (rail.channel == nullptr) return Failed(rail.name + ": completion channel", errno);
    const int flags = fcntl(rail.channel->fd, F_GETFL);
    if (flags < 0 || fcntl(rail.channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
      return Failed(rail.name + ": completion channel", errno);
  }
  Owned<ibv_cq> queue(
      library.CreateCq(rail.context.get(), static_cast<int>(entries), nullptr, rail.channel.get(), 0),
      {library.DestroyCq});
  if (queue == nullptr)
    return Failed(fmt::format("{}: completion queue of {} entries", rail.name, entries), errno);
  rail.queues.push_back(std::move(queue));
  return rail.queues.back().get();
}

GidPair ClosestGids(const std::vector<GidBytes>& mine, const std::vector<GidBytes>& theirs) {
  const auto rank = [&](const GidPair& pair) {
    const GidBytes &a = mine[pair.mine], &b = theirs[pair.theirs];
    // Both ends order the two alike.
    return std::tuple(-CommonBits(a, b), std::min(a, b), std::max(a, b));
  };
  GidPair best;
  for (size_t m = 0; m < mine.size(); ++m)
    for (size_t t = 0; t < theirs.size(); ++t)
      if (rank({m, t}) < rank(best)) best = {m, t};
  return best;
}

}  // namespace xccl::verbs
