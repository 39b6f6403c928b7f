// Functions of requests and results that all engines share.
#include "synth/common/synthesizer.h"

namespace xccl {

StatusOr<Bound> BoundOf(const SynthesisRequest& request) {
  if (request.bound != nullptr) return *request.bound;
  return LowerBound(*request.topology, *request.collective, request.size_bytes, request.model,
                    BoundEffort::kFast);
}

Synthesis NothingToMove(std::string_view engine, const SynthesisRequest& request) {
  Collective cut = request.collective->WithChunks(request.limits.chunks.value_or(1));
  Schedule nothing;
  nothing.num_chunks = cut.num_chunks();
  return {.collective = std::move(cut),
          .schedule = std::move(nothing),
          .exact = true,
          .engine = std::string(engine),
          .note = ""};
}

}  // namespace xccl
