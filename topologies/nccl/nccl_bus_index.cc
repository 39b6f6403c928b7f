#include "topologies/nccl/nccl_bus_index.h"

#include <cctype>

namespace xccl {

std::string BusKey(std::string_view busid) {
  std::string key;
  for (const unsigned char c : busid)
    if (c != ':' && c != '.' && (c != '0' || !key.empty())) key += static_cast<char>(std::tolower(c));
  return key;
}

BusIndex::BusIndex(const NcclSystem& system) {
  for (int32_t i = 0; i < system.size(); ++i) {
    const NcclItem& item = system.items[i];
    cpu_of_.push_back(item.parent < 0 ? i : cpu_of_[item.parent]);
    if (item.busid.empty()) continue;
    if (!item_.try_emplace({system.items[cpu_of_[i]].host_hash, BusKey(item.busid)}, i).second)
      repeated_.push_back(i);
  }
}

int32_t BusIndex::Find(const NcclSystem& system, int32_t from, std::string_view busid) const {
  const auto found = item_.find({system.items[cpu_of_[from]].host_hash, BusKey(busid)});
  return found == item_.end() ? -1 : found->second;
}

}  // namespace xccl
