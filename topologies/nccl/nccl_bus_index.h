// Finds the items of a dump by their PCI bus ids. Only the files of this folder need this header.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topologies/nccl/nccl_tree.h"

namespace xccl {

// The key that NCCL compares bus ids by: their hexadecimal digits alone, in lower case, without leading
// zeros.
std::string BusKey(std::string_view busid);

// Items by bus id. Every host numbers its own buses.
class BusIndex {
 public:
  BusIndex() = default;
  explicit BusIndex(const NcclSystem& system);
  // The item of a bus id in the host of item `from`, the first if there are several; -1 if there is none.
  int32_t Find(const NcclSystem& system, int32_t from, std::string_view busid) const;
  // The items whose bus id an earlier item of their host has.
  const std::vector<int32_t>& repeated() const { return repeated_; }

 private:
  std::vector<int32_t> cpu_of_;                                  // by item
  std::map<std::pair<std::string, std::string>, int32_t> item_;  // by host_hash and key
  std::vector<int32_t> repeated_;
};

}  // namespace xccl
