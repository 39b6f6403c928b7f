// Machines that published figures were measured on and that no file or short form describes: unwound
// switches, grids of mixed speeds, boxes joined by two InfiniBand switches. It also takes everything that
// LoadTopology takes, and `graphs/NAME` for a file of the folder of graphs.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// Names, bandwidths in GiB/s with 500 ns a link where nothing else is said:
//   mixed-mesh:RxC:H:V      rows × columns; links along a row H, along a column V
//   unwound:N:D:B           a switch of N ports as N·D links i → i+1 … i+D of B ÷ D
//   a100-unwound:H          H boxes of 8: 42 between any two of a box, 25 ÷ (H−1) (whole) from GPU i to GPU i
//                           of every other box (2.5 us)
//   mi250-unwound           two MI250 boxes of graphs/mi250x1, GCD i joined to GCD i by 16 (1.3 us)
//   ndv2-one-nic:H:UNIT     H boxes of 8 V100 in GiB or GB; GPU 0 of one box sends to GPU 1 of the other by
//                           12.5 (1.3 us), for more than two boxes through one switch
//   dragonfly-direct        4 groups of 5 fully joined ranks (100), each pair of groups by one cable (50)
//   a100:H                  H boxes of 8 A100 in GB/s: NVSwitch 300 per GPU, a NIC of 25 per GPU; even NICs
//                           share one switch, odd ones another
//   rail:H                  the same with a switch for each of the 8 NICs
//   graphs/NAME             the file NAME.xml in `graphs_folder`
// Errors: as LoadTopology's.
StatusOr<Topology> LoadMachine(std::string_view name, const std::string& graphs_folder);

}  // namespace xccl
