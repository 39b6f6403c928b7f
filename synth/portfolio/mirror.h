// The mirror image of a plan: a broadcast played backwards on the machine with every link reversed is a
// reduce, an allgather a reduce_scatter, a gather a scatter. Searches that differ find one easier than the
// other, so each may have the other's plan.
#pragma once

#include <optional>

#include "synth/common/synthesizer.h"

namespace xccl {

// The mirror image of a collective; absent for kinds without one.
std::optional<Collective> MirrorOf(const Collective& collective);

// `image` is a plan of MirrorOf(collective) on `reversed`, ReverseTopology(topology); the result is its
// mirror image, in which links serve what waits in the opposite order of a simulation at this size. Absent
// where chunks do not move in trees, or switches multicast or add.
std::optional<Synthesis> Mirrored(const Synthesis& image, const Topology& reversed, const Topology& topology,
                                  const Collective& collective, int64_t size_bytes);

}  // namespace xccl
