// Random fabrics of InfiniBand, and what the tools of InfiniBand print of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "topologies/fabric/fabric.h"
#include "topologies/fabric/ib_rates.h"

namespace xccl::testing {

// A fabric with what its devices answer to the tools. The ports of a card with two ports are two adapters.
struct IbSample {
  struct Device {
    std::string name;  // as the tools print it
    uint64_t guid = 0;
    uint64_t system_guid = 0;
    int32_t model = 0;  // the device's identifier
    int32_t lid = 0;
  };
  struct Rates {
    IbRate now, full;
  };
  Fabric fabric;
  std::vector<Device> switches;  // by index in the fabric
  std::vector<Device> cards;     // by card
  std::vector<int32_t> card_of;  // by adapter
  std::vector<int32_t> port_of;  // by adapter
  std::vector<int32_t> lids;     // by adapter
  std::vector<Rates> rates;      // by cable
};

IbSample RandomIbSample(Random& random);

// These writers set, in the sample's fabric, what its reader can know of it: the lines of cables, the ports
// that are down, and the identifiers that the form prints.
enum class IbForm { kRecords, kRecordsWithAll, kPortList, kLinks, kLinksInLines };
std::string WriteIb(IbForm form, IbSample& sample, Random& random);

// Checks what every reader of a fabric guarantees: ends and lines exist, each port has one cable, and a
// degraded cable is slower than it could be. `lines`: of the text.
void CheckFabric(const Fabric& fabric, int32_t lines);

// The fabric in one order of devices, cables and ends, without warnings, for comparisons.
Fabric Sorted(Fabric fabric);

}  // namespace xccl::testing
