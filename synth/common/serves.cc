// Also implements the functions that synthesizer.h declares.
#include "synth/common/serves.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.h"
#include "base/strings.h"
#include "synth/common/step_limit.h"

namespace xccl {

StatusOr<Bound> BoundOf(const SynthesisRequest& request) {
  if (request.bound != nullptr) return *request.bound;
  return LowerBound(*request.topology, *request.collective, request.size_bytes, request.model,
                    BoundEffort::kFast);
}

bool SynthesisRequest::IsPassedOver(std::string_view engine) const {
  return std::ranges::find(passed_over, engine) != passed_over.end();
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
  if (request.limits.chunks.value_or(1) > 1 && chunks > std::numeric_limits<int32_t>::max() / 4)
    return InvalidInput(fmt::format("{}: {} chunks in all; at most 2^29 are supported", engine, chunks));
  return OkStatus();
}

Status CheckSound(std::string_view engine, const Synthesis& made) {
  if (!made.simulation || made.simulation->unsound.empty()) return OkStatus();
  return BugError(fmt::format("{}: it made a wrong plan: {}", engine, made.simulation->unsound));
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
  const int64_t parts = request.collective->num_parts();
  const bool may_have = parts <= kMostParts || asks_others;
  if (!may_have && !(any_parts && request.limits.chunks.value_or(1) == 1))
    return InvalidInput(fmt::format("{}: {} parts, one for each pair of {} ranks; at most {} are supported{}",
                                    name, parts, request.collective->num_members(), kMostParts,
                                    any_parts ? " unless each is one chunk" : ""));
  return serves ? serves(request) : ServesKind(name, kinds, request);
}

namespace {

// Runs `make` and returns its plan. Errors: those of `make`; kBug if a check fails in the engine, or if the
// simulation found the plan wrong. Removes wrong plans from `others`, and adds a message for each to
// `faults`.
template <typename Make>
StatusOr<Synthesis> Guarded(std::string_view engine, const Make& make) {
  StatusOr<Synthesis> made = RunGuarded(make);
  if (!made.ok())
    return made.status().code() == StatusCode::kBug && !made.status().message().starts_with(engine)
               ? Annotate(made.status(), engine)
               : made.status();
  std::erase_if(made->others, [&](const Synthesis& other) {
    const Status sound = CheckSound(engine, other);
    if (!sound.ok()) made->faults.push_back(sound.message());
    return !sound.ok();
  });
  XCCL_RETURN_IF_ERROR(CheckSound(engine, *made));
  return made;
}

// Sets the note of a plan that moves nothing. If the engine asks other engines, the plan's engine becomes
// kNoEngine, because no other engine was needed.
StatusOr<Synthesis> NamedWhereEmpty(const Engine& engine, StatusOr<Synthesis> made) {
  if (!made.ok() || made->schedule.size() > 0) return made;
  if (engine.asks_others) made->engine = kNoEngine;
  made->note = "nothing to move";
  return made;
}

}  // namespace

StatusOr<Offer> Engine::Offered(const SynthesisRequest& request) const {
  XCCL_RETURN_IF_ERROR(Serves(request));
  if (!offer) {
    XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
    return Offer{.time_ps = static_cast<double>(bound.bound_ps)};
  }
  StatusOr<Offer> offered = RunGuarded([&] { return offer(request); });
  if (offered.ok() && offered->make)
    offered->make = [name = name, make = std::move(offered->make)](int64_t most_work) {
      return Guarded(name, [&] { return make(most_work); });
    };
  return offered;
}

StatusOr<Synthesis> Engine::Plan(const SynthesisRequest& request) const {
  XCCL_RETURN_IF_ERROR(Serves(request));
  return NamedWhereEmpty(*this, Guarded(name, [&] { return make(request); }));
}

StatusOr<Synthesis> Engine::Synthesize(const SynthesisRequest& request) const {
  StatusOr<Synthesis> made = Plan(request);
  if (made.ok() || !request.limits.steps || !made.status().needed()) return made;
  return RefusalForSteps(*this, request, made.status());
}

}  // namespace xccl
