// Expert calls on GPUs that are this host's memory: the kernels, drawn inputs, and comparisons with CPU
// ranks.
#pragma once

#include <cstddef>

#include "base/random.h"
#include "device/host.h"
#include "runtime/c_api/testing/expert_buffers.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

// From here on GPUs are the driver's, and kernels of experts and of collectives are its functions. `shape`:
// of a block of an expert kernel. The driver outlives the communicators.
void UseFakeGpus(cuda::FakeDriver& fake, device::HostShape shape);

// Buffers of one rank on a GPU and on the CPU get equal choices, weights and rows.
void DrawCall(const Buffers& gpu, const Buffers& cpu, Random& random);
void DrawRows(const Buffers& gpu, const Buffers& cpu, Random& random);

// Outputs of all ranks' experts, or of rows, whose sums round. Rows' outputs are at their numbers, and a
// row's number on a GPU is its place.
void DrawOutputs(const Buffers& gpu, const Buffers& cpu, xcclDataType_t type, bool of_rows, Random& random);

// A dispatch gave the rank the same rows, counts and entries.
void ExpectSameRows(const Buffers& gpu, const Buffers& cpu, size_t row_bytes, size_t scale_bytes);
// A combine gave `tokens` tokens the same bits.
void ExpectSameSums(const Buffers& gpu, const Buffers& cpu, size_t tokens, size_t row_bytes);

}  // namespace xccl::c_api
