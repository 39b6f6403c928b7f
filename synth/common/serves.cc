// Also the functions of requests, results and rows of the table that synthesizer.h declares.
#include "synth/common/serves.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/strings.h"
#include "synth/common/step_limit.h"

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

Status CheckMembers(std::string_view engine, const SynthesisRequest& request) {
  for (Rank r : request.collective->ranks())
    if (r.value >= request.topology->num_ranks())
      return InvalidInput(fmt::format("{}: rank {}; ranks of {} are 0..{}", engine, r.value,
                                      request.topology->name(), request.topology->num_ranks() - 1));
  return OkStatus();
}

Status ServesKind(std::string_view engine, std::span<const CollectiveKind> served,
                  const SynthesisRequest& request) {
  if (std::ranges::find(served, request.collective->kind()) == served.end()) {
    std::vector<std::string> names;
    for (CollectiveKind k : served) names.emplace_back(ToString(k));
    return InvalidInput(fmt::format("{}: does not serve {}; it serves {}; hint: --engine=auto", engine,
                                    request.collective->name(), Join(names, ", ")));
  }
  XCCL_RETURN_IF_ERROR(CheckMembers(engine, request));
  if (request.limits.chunks && *request.limits.chunks < 1)
    return InvalidInput(fmt::format("{}: {} chunks; expected at least 1", engine, *request.limits.chunks));
  const int64_t chunks = int64_t{request.limits.chunks.value_or(1)} * request.collective->num_parts();
  if (chunks > std::numeric_limits<int32_t>::max() / 4)
    return InvalidInput(fmt::format("{}: {} chunks in all; at most 2^29 are supported", engine, chunks));
  return OkStatus();
}

std::string_view ToString(ExactOn exact) {
  switch (exact) {
    case ExactOn::kNothing:
      return "nothing";
    case ExactOn::kMetBound:
      return "plans that meet the bound";
    case ExactOn::kBandwidth:
      return "bandwidth";
    case ExactOn::kModel:
      return "steps and rounds";
  }
  return "?";
}

bool Engine::MayServe(CollectiveKind kind) const {
  return kinds.empty() || std::ranges::find(kinds, kind) != kinds.end();
}

Status Engine::Serves(const SynthesisRequest& request) const {
  return serves ? serves(request) : ServesKind(name, kinds, request);
}

StatusOr<Offer> Engine::Offered(const SynthesisRequest& request) const {
  XCCL_RETURN_IF_ERROR(Serves(request));
  if (offer) return offer(request);
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  return Offer{.time_ps = static_cast<double>(bound.bound_ps)};
}

namespace {

// A plan that moves nothing says so. It was not made by any of the engines that were asked.
StatusOr<Synthesis> NamedWhereEmpty(const Engine& engine, StatusOr<Synthesis> made) {
  if (!made.ok() || made->schedule.size() > 0) return made;
  if (engine.asks_others) made->engine = kNoEngine;
  made->note = "nothing to move";
  return made;
}

}  // namespace

StatusOr<Synthesis> Engine::Synthesize(const SynthesisRequest& request) const {
  XCCL_RETURN_IF_ERROR(Serves(request));
  if (!request.limits.steps) return NamedWhereEmpty(*this, make(request));
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  int32_t fewest = kNone;
  SynthesisRequest asked = request;
  asked.fewest_steps = &fewest;
  StatusOr<Synthesis> made = NamedWhereEmpty(*this, make(asked));
  if (fewest == kNone || made.ok() || made.status().code() == StatusCode::kBug) return made;
  if (request.fewest_steps == nullptr) return RefusalForSteps(*this, request, fewest, made.status());
  *request.fewest_steps = std::min(*request.fewest_steps, fewest);
  return made;  // who asked explains it
}

}  // namespace xccl
