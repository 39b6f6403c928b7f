#include "runtime/nccl/tuner/stand_in.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>

namespace xccl::nccl_tuner {
namespace {

constexpr int kPairs = kNumAlgorithms * kNumProtocols;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void StandIn::Close::operator()(void* library) const { dlclose(library); }

StatusOr<StandIn> StandIn::Load(const std::string& library, const Release& release) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // NCCL's flags
  if (handle == nullptr) {
    const char* reason = dlerror();
    return InvalidInput(library + ": cannot be loaded: " + (reason != nullptr ? reason : "no reason given"));
  }
  const std::string symbol = "ncclTunerPlugin_v" + std::to_string(release.version);
  StandIn loaded(handle, release, dlsym(handle, symbol.c_str()));
  if (loaded.plugin_ == nullptr)
    return InvalidInput(library + ": no " + symbol + "; expected what NCCL " + release.name + " looks for");
  return loaded;
}

int StandIn::Init(size_t nodes, size_t ranks, Logger log, void** context, Constants& constants) const {
  NvlDomains domains = {static_cast<int>(nodes), static_cast<int>(ranks / nodes),
                        static_cast<int>(ranks / nodes)};
  constexpr uint64_t kCommunicator = 7;
  switch (release_.version) {
    case 1:
      return As<TunerV1>().init(ranks, nodes, log);
    case 2:
      return As<TunerV2>().init(ranks, nodes, log, context);
    case 3:
      return As<TunerV3>().init(ranks, nodes, log, context);
    case 4:
      return As<TunerV4>().init(ranks, nodes, log, context);
    case 5:
      return As<TunerV5>().init(context, kCommunicator, ranks, nodes, log, &domains, &constants);
    default:
      return As<TunerV6>().init(context, kCommunicator, ranks, nodes, log, &domains, &constants);
  }
}

int StandIn::End(void* context) const {
  switch (release_.version) {
    case 1:
      return As<TunerV1>().destroy();
    case 2:
      return As<TunerV2>().destroy(context);
    case 3:
      return As<TunerV3>().destroy(context);
    case 4:
      return As<TunerV4>().destroy(context);
    case 5:
      return As<TunerV5>().finalize(context);
    default:
      return As<TunerV6>().finalize(context);
  }
}

Answer StandIn::Ask(void* context, const Asked& asked, int64_t* took_ns) const {
  // Without the last row of algorithms in older releases: what a plugin writes there shows as a cost.
  float table[kNumAlgorithms][kNumProtocols];
  float* const costs = &table[0][0];
  for (int i = 0; i < kPairs; ++i)
    costs[i] = i < release_.algorithms * kNumProtocols && asked.offered[i] ? static_cast<float>(10 + i)
                                                                           : kNotOffered;
  Answer answer;
  std::copy(costs, costs + kPairs, answer.costs.begin());
  const auto before = answer.costs;
  auto** const cast = reinterpret_cast<float**>(table);  // as NCCL passes it
  const auto by_name = [&](auto get, auto... first) {
    return get(first..., asked.collective, asked.bytes, asked.collnet, asked.nvls, asked.pipe_ops,
               &answer.algorithm, &answer.protocol, &answer.channels);
  };
  const auto by_cost = [&](auto get, auto... registered) {
    return get(context, asked.collective, asked.bytes, asked.pipe_ops, cast, release_.algorithms,
               kNumProtocols, registered..., &answer.channels);
  };
  const auto ask = [&] {
    switch (release_.version) {
      case 1:
        return by_name(As<TunerV1>().get_coll_info);
      case 2:
        return by_name(As<TunerV2>().get_coll_info, context);
      case 3:
        return by_cost(As<TunerV3>().get_coll_info);
      case 4:
        return by_cost(As<TunerV4>().get_coll_info, asked.registered);
      case 5:
        return by_cost(As<TunerV5>().get_coll_info, asked.registered);
      default:
        return by_cost(As<TunerV6>().get_coll_info, asked.registered);
    }
  };
  const int64_t start_ns = NowNs();
  answer.result = ask();
  if (took_ns != nullptr) *took_ns = NowNs() - start_ns;
  if (release_.version <= 2) {
    answer.steered = answer.algorithm != kUndefined || answer.protocol != kUndefined;
    return answer;
  }

  std::copy(costs, costs + kPairs, answer.costs.begin());
  answer.steered = answer.costs != before;
  // The core takes the least of what is not negative, and of equals the first.
  int best = -1;
  for (int i = 0; i < kPairs; ++i)
    if (costs[i] >= 0 && (best < 0 || costs[i] < costs[best])) best = i;
  if (best >= 0) answer.algorithm = best / kNumProtocols, answer.protocol = best % kNumProtocols;

  if (release_.version < 6 || best < 0 || As<TunerV6>().get_chunk_size == nullptr) return answer;
  answer.chunk_bytes = asked.chunk_bytes;
  const int result = As<TunerV6>().get_chunk_size(context, asked.collective, asked.bytes, answer.algorithm,
                                                  answer.protocol, answer.channels, &answer.chunk_bytes);
  if (answer.result == kSuccess) answer.result = result;
  return answer;
}

}  // namespace xccl::nccl_tuner
