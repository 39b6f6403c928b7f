// Aggregation trees over switches, as SHARP has them: leaves are the ranks, inner nodes the switches, each of
// which passes one sum on for all that it gets from below; the result goes down the same way, copied where
// the tree branches. The root of a share of the buffer is a rank: the sum comes down to it from the switch
// where its tree ends, and it sends the result up to be multicast. Roots take turns, and trees avoid links
// that earlier ones use, so that all spines and rails carry a share. Where switches do not join all ranks
// (rails that meet inside the hosts alone) GPUs join trees: what comes down one tree goes up the next.
//
// Source: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP): A Hardware Architecture for
// Efficient Data Reduction", COMHPC 2016.
#include "synth/switches/in_network.h"

#include "synth/switches/switch_trees.h"

namespace xccl {

Engine InNetworkEngine() {
  return SwitchTreesEngine(
      {"in-network", "trees whose switches multicast and add up on the way (SHARP); not exact", 4, false});
}

}  // namespace xccl
