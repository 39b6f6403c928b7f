// Plans alltoall on rings, tori and hypercubes of up to a million ranks: along one dimension after another.
// The plan is that of rank 0's data, which translations turn into that of all ranks. Not exact.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine TorusAlltoallEngine();

}  // namespace xccl
