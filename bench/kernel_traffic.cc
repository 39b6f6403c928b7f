#include "bench/kernel_traffic.h"

#include "ir/kernel/kernel_sizes.h"

namespace xccl {

int64_t KernelTraffic(const KernelForm& form, const CollectiveSizes& sizes, Protocol protocol, bool direct) {
  direct = direct && protocol == Protocol::kSimple;
  int64_t traffic = 0;
  for (const KernelRank& rank : form.ranks) {
    for (const KernelBlock& block : rank.blocks) {
      for (const KernelInstruction& i : block.instructions) {
        const Opcode op = i.what.op;
        if (op == Opcode::kNop) continue;
        const bool lends_put = direct && IsPut(i.receive), lends_get = direct && IsGet(i.send);
        const bool in_slot = i.from && !lends_put && !(direct && IsGet(i.receive));
        const bool to_slot = i.to && !lends_get && !(direct && IsPut(i.send));
        const bool stores =
            WritesDestination(op) && !(lends_put && (op == Opcode::kRecv || op == Opcode::kRecvCopySend));
        const bool sends = i.to && !lends_get;
        if (!stores && !sends) continue;
        const int64_t accesses = (ReadsSource(op) ? 1 : 0) + (op == Opcode::kReduce ? 1 : 0) +
                                 (i.from && !in_slot ? 1 : 0) + (stores ? 1 : 0) +
                                 (sends && !to_slot ? 1 : 0);
        for (const KernelRun& run : i.runs) {
          const int64_t bytes = RunBytes(run, sizes);
          const int64_t wire = protocol == Protocol::kSimple ? bytes : SlotBytes(protocol, bytes);
          traffic += accesses * bytes + ((in_slot ? 1 : 0) + (to_slot ? 1 : 0)) * wire;
        }
      }
    }
  }
  return traffic;
}

}  // namespace xccl
