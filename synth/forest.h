// forest: throughput-optimal packing of spanning trees into any machine, the shallowest trees first, for
// allgather(v), reduce_scatter(v), broadcast and reduce. docs/synthesis.md explains it.
#pragma once

#include <memory>

#include "synth/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeForest();

}  // namespace xccl
