// A tuner plugin with the fault that XCCL_TUNER_TABLE names, for the test of the driver.
#include <cstdlib>
#include <string_view>

#include "runtime/nccl/tuner/abi.h"

namespace nccl_tuner = xccl::nccl_tuner;

namespace {

int contexts = 0;
int both[2];  // the contexts of two ranks

bool Fault(std::string_view name) {
  const char* chosen = std::getenv("XCCL_TUNER_TABLE");
  return chosen != nullptr && name == chosen;
}

int InitV1(size_t, size_t, nccl_tuner::Logger) { return Fault("init") ? 3 : 0; }
int Init(size_t, size_t, nccl_tuner::Logger, void** context) {
  *context = &both[++contexts % 2];
  return 0;
}
int End(void*) { return Fault("end") ? 4 : 0; }
int EndV1() { return End(nullptr); }

int GetV1(int, size_t, int, int, int, int* algorithm, int*, int* channels) {
  if (Fault("name")) *algorithm = 6;
  if (Fault("channels")) *channels = 65;
  return Fault("return") ? 2 : 0;
}
int GetV2(void*, int, size_t, int, int, int, int*, int*, int*) { return 0; }

int GetV3(void* context, int, size_t, int, float** table, int, int, int* channels) {
  auto* const costs = reinterpret_cast<float*>(table);
  if (Fault("offer"))
    for (int i = 0; i < 18; ++i) costs[i] = 0;
  if (Fault("overrun")) costs[18] = 0;
  if (Fault("withdraw"))
    for (int i = 0; i < 18; ++i) costs[i] = -1;
  if (Fault("ranks") && context == &both[0]) *channels = 2;
  return 0;
}

int GetV4(void*, int, size_t, int, float**, int, int, int, int*) { return 0; }
int InitV5(void** context, uint64_t, size_t, size_t, nccl_tuner::Logger log, nccl_tuner::NvlDomains*,
           nccl_tuner::Constants* constants) {
  Init(0, 0, log, context);
  if (Fault("constants")) constants->base_latencies[0][0] = contexts;
  return 0;
}

}  // namespace

extern "C" {
extern const nccl_tuner::TunerV1 ncclTunerPlugin_v1;
extern const nccl_tuner::TunerV2 ncclTunerPlugin_v2;
extern const nccl_tuner::TunerV3 ncclTunerPlugin_v3;
extern const nccl_tuner::TunerV4 ncclTunerPlugin_v4;
extern const nccl_tuner::TunerV5 ncclTunerPlugin_v5;

const nccl_tuner::TunerV1 ncclTunerPlugin_v1 = {"faulty", InitV1, GetV1, EndV1};
const nccl_tuner::TunerV2 ncclTunerPlugin_v2 = {"faulty", Init, GetV2, End};
const nccl_tuner::TunerV3 ncclTunerPlugin_v3 = {"faulty", Init, GetV3, End};
const nccl_tuner::TunerV4 ncclTunerPlugin_v4 = {"faulty", Init, GetV4, End};
const nccl_tuner::TunerV5 ncclTunerPlugin_v5 = {"faulty", InitV5, GetV4, End};
}
