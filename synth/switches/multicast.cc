// NVLink SHARP, where one switch, or one of several side by side, joins all ranks. allgather and broadcast:
// every rank stores what it has once, and the switch delivers it to all. reduce_scatter and reduce: a rank
// asks for its part, and the switch adds up what all others have on the way. allreduce: each rank does the
// second and then the first with its share of the buffer, so that a port carries every byte once each way: S
// ÷ bandwidth, where sending and receiving alone takes 2 (n - 1) ÷ n times as long. Parallel switches take a
// share each.
//
// Sources: Klenk, Jiang, Thorson, Dennison, "An In-Network Architecture for Accelerating Shared-Memory
// Multiprocessor Collectives", ISCA 2020; NCCL's algorithm NVLS.
#include "synth/switches/multicast.h"

#include "synth/switches/switch_trees.h"

namespace xccl {

Engine MulticastEngine() {
  return SwitchTreesEngine(
      {"multicast", "one switch that joins all ranks multicasts and adds up (NVLS); not exact", 1, true});
}

}  // namespace xccl
