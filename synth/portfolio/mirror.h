// The mirror image of a plan: the plan is played backwards on the machine with every link reversed. A
// broadcast becomes a reduce, an allgather a reduce_scatter, and a gather a scatter, and the other way round.
// A search may find one of the two easier than the other, so the portfolio tries both.
#pragma once

#include <optional>

#include "synth/common/synthesizer.h"

namespace xccl {

// Returns the mirror image of a collective, or nullopt for kinds without one.
std::optional<Collective> MirrorOf(const Collective& collective);

// Returns the mirror image of `image`, a plan of MirrorOf(collective) on `reversed`, which is `topology` with
// every link reversed. Links serve messages in the reverse of their order of arrival in a simulation of
// `image` at this size, or in the reverse order of its steps if InOrderOfArrival returns nullopt
// (synth/common/justify.h). Returns nullopt if the chunks do not move in trees, or if switches multicast or
// add.
std::optional<Synthesis> Mirrored(const Synthesis& image, const Topology& reversed, const Topology& topology,
                                  const Collective& collective, int64_t size_bytes);

}  // namespace xccl
