#include "runtime/nccl/tuner/caller.h"

#include <dlfcn.h>

#include <string>

#include "base/check.h"

namespace xccl::nccl_tuner {

template <typename T>
const T& Caller::Symbol() const {
  const void* const symbol = dlsym(library_, ("ncclTunerPlugin_v" + std::to_string(version_)).c_str());
  XCCL_CHECK(symbol != nullptr);
  return *static_cast<const T*>(symbol);
}

Asked RandomCall(Random& random) {
  Asked asked = {.collective = static_cast<int>(random.Below(7)) - 1,
                 .bytes = random.Below(200'000),
                 .pipe_ops = static_cast<int>(random.Below(3)),
                 .registered = static_cast<int>(random.Below(2)),
                 .collnet = static_cast<int>(random.Below(2)),
                 .nvls = static_cast<int>(random.Below(2))};
  for (size_t i = 0; i < asked.ignored.size(); ++i) asked.ignored[i] = random.Below(2) == 0;
  return asked;
}

int Caller::Init(size_t nodes, size_t ranks, Logger log, void*& context) const {
  Constants constants = {};
  NvlDomains domains = {1, 8, 8};
  constexpr uint64_t kCommunicator = 7;
  switch (version_) {
    case 1:
      return Symbol<TunerV1>().init(ranks, nodes, log);
    case 2:
      return Symbol<TunerV2>().init(ranks, nodes, log, &context);
    case 3:
    case 4:
      return Symbol<TunerV3>().init(ranks, nodes, log, &context);
    default:
      return Symbol<TunerV5>().init(&context, kCommunicator, ranks, nodes, log, &domains, &constants);
  }
}

int Caller::End(void* context) const {
  return version_ == 1 ? Symbol<TunerV1>().destroy() : Symbol<TunerV2>().destroy(context);
}

Answer Caller::Ask(void* context, const Asked& asked) const {
  const int algorithms = version_ == 3 ? 6 : kNumAlgorithms;  // NCCL 2.22
  float table[kNumAlgorithms][kNumProtocols];
  Answer answer;
  for (int i = 0; i < kNumAlgorithms * kNumProtocols; ++i)
    table[i / 3][i % 3] = asked.ignored[static_cast<size_t>(i)] ? kNotOffered : static_cast<float>(10 + i);
  auto** const costs = reinterpret_cast<float**>(table);
  switch (version_) {
    case 1:
      answer.result = Symbol<TunerV1>().get_coll_info(asked.collective, asked.bytes, asked.collnet,
                                                      asked.nvls, asked.pipe_ops, &answer.algorithm,
                                                      &answer.protocol, &answer.channels);
      break;
    case 2:
      answer.result = Symbol<TunerV2>().get_coll_info(context, asked.collective, asked.bytes, asked.collnet,
                                                      asked.nvls, asked.pipe_ops, &answer.algorithm,
                                                      &answer.protocol, &answer.channels);
      break;
    case 3:
      answer.result = Symbol<TunerV3>().get_coll_info(context, asked.collective, asked.bytes, asked.pipe_ops,
                                                      costs, algorithms, kNumProtocols, &answer.channels);
      break;
    default:
      answer.result =
          Symbol<TunerV4>().get_coll_info(context, asked.collective, asked.bytes, asked.pipe_ops, costs,
                                          algorithms, kNumProtocols, asked.registered, &answer.channels);
  }
  if (version_ <= 2) return answer;
  answer.costs.assign(&table[0][0], &table[0][0] + kNumAlgorithms * kNumProtocols);
  for (int i = 0; i < kNumAlgorithms * kNumProtocols; ++i)
    if (answer.costs[static_cast<size_t>(i)] == 0) answer.algorithm = i / 3, answer.protocol = i % 3;
  return answer;
}

int Caller::ChunkSize(void* context, int collective, size_t bytes, int algorithm, int protocol, int channels,
                      size_t& chunk_bytes) const {
  return Symbol<TunerV6>().get_chunk_size(context, collective, bytes, algorithm, protocol, channels,
                                          &chunk_bytes);
}

}  // namespace xccl::nccl_tuner
