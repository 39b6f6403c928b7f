// Every rank opens its devices and tells all ranks, for each, the device's address and the key and base of
// its slots. Connections then know where to write.
#include <fmt/core.h>
#include <rdma/fi_cm.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/host/parcel.h"
#include "runtime/transport/ofi/ofi_transport.h"
#include "runtime/transport/ofi/transport.h"

namespace xccl::ofi {
namespace {

// A device of a rank, as the others know it.
struct RemoteRail {
  std::string address;
  uint64_t key = 0, base = 0;
};

StatusOr<std::string> Describe(const std::vector<Rail>& rails, const NetworkMemory& memory) {
  Parcel parcel;
  AppendNumber(parcel, rails.size());
  for (const Rail& rail : rails) {
    std::string address(256, '\0');
    size_t bytes = address.size();
    if (fi_getname(&rail.endpoint->fid, address.data(), &bytes) != 0 || bytes > address.size())
      return SystemError(rail.name + ": the endpoint has no address");
    address.resize(bytes);
    AppendText(parcel, address);
    AppendNumber(parcel, rail.memory == nullptr ? 0 : fi_mr_key(rail.memory.get()));
    AppendNumber(parcel, rail.virtual_base ? reinterpret_cast<uint64_t>(memory.slots) : 0);
  }
  return parcel.bytes;
}

std::vector<RemoteRail> ReadRails(const std::string& blob) {
  ParcelReader reader({.bytes = blob, .files = {}});
  std::vector<RemoteRail> rails;
  const uint64_t count = reader.Number();
  for (uint64_t i = 0; i < count && !reader.broken(); ++i) {
    RemoteRail rail{.address = reader.Text(), .key = 0, .base = 0};
    rail.key = reader.Number();
    rail.base = reader.Number();
    rails.push_back(std::move(rail));
  }
  return rails;
}

size_t DepthOf(const NetworkLayout& layout) {
  // Each connection's own operations, and the peer's that arrive.
  return layout.connections.size() * static_cast<size_t>(layout.num_slots) * 2 + 64;
}

}  // namespace

Status Available() { return LoadLibrary().status(); }

StatusOr<std::unique_ptr<Transport>> Connect(const NetworkMemory& memory, const NetworkOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
  const NetworkLayout& layout = memory.layout;
  int32_t rails = 0;
  for (const RemoteConnection& one : layout.connections) rails = std::max(rails, one.rail + 1);
  auto transport = std::make_unique<OfiTransport>(*library, memory);
  if (rails > 0) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<Info> devices, FindDevices(*library, options, rails));
    for (const Info& device : devices) {
      XCCL_ASSIGN_OR_RETURN(Rail rail, OpenRail(*library, *device, memory, DepthOf(layout)));
      transport->AddFile(rail.file);
      transport->rails().push_back(std::move(rail));
    }
  }
  XCCL_ASSIGN_OR_RETURN(const std::string mine, Describe(transport->rails(), memory));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, options.all_gather(mine));
  std::map<std::tuple<int32_t, Rank, int32_t>, fi_addr_t> known;
  for (const RemoteConnection& one : layout.connections) {
    const std::vector<RemoteRail> theirs = ReadRails(all[one.peer.index()]);
    if (static_cast<size_t>(one.peer_rail) >= theirs.size())
      return InvalidInput(
          fmt::format("rank {}: {} network devices; expected more than {}: ranks do not agree "
                      "on plans",
                      one.peer.value, theirs.size(), one.peer_rail));
    const RemoteRail& to = theirs[static_cast<size_t>(one.peer_rail)];
    Rail& rail = transport->rails()[static_cast<size_t>(one.rail)];
    const auto [at, is_new] = known.try_emplace({one.rail, one.peer, one.peer_rail}, FI_ADDR_UNSPEC);
    if (is_new && fi_av_insert(rail.addresses.get(), to.address.data(), 1, &at->second, 0, nullptr) != 1)
      return SystemError(fmt::format("{}: the address of rank {} is refused", rail.name, one.peer.value));
    OfiConnection made;
    made.at = one;
    made.rail = &rail;
    made.peer = at->second;
    made.peer_key = to.key;
    made.peer_base = to.base;
    transport->Add(std::move(made));
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace xccl::ofi
