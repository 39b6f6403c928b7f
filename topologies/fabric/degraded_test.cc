#include "topologies/fabric/degraded.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xccl {
namespace {

constexpr int64_t kFull = 50'000'000'000;
constexpr int64_t kSlow = 12'500'000'000;

// The cables that are marked; their full rate must be kFull.
std::vector<int32_t> Marked(Fabric& fabric, const std::vector<int32_t>& switch_models = {},
                            const std::vector<int32_t>& adapter_models = {}) {
  std::vector<int32_t> switches = switch_models;
  std::vector<int32_t> adapters = adapter_models;
  switches.resize(fabric.switches.size(), 1);
  adapters.resize(fabric.adapters.size(), 2);
  std::vector<int32_t> marked = MarkDegraded(fabric, switches, adapters);
  for (const int32_t cable : marked) EXPECT_EQ(fabric.cables[cable].full_bandwidth_bytes_per_s, kFull);
  return marked;
}

void Join(Fabric& fabric, int32_t a, int32_t b, int64_t rate) {
  fabric.cables.push_back({{true, a, 0}, {true, b, 0}, rate, 0, 0});
}

// A host's adapter at a switch.
void Add(Fabric& fabric, const std::string& host, const std::string& device, int64_t rate) {
  fabric.cables.push_back(
      {{true, 0, 0}, {false, static_cast<int32_t>(fabric.adapters.size()), 1}, rate, 0, 0});
  fabric.adapters.push_back({host, device, 0, 0});
}

TEST(Degraded, ParallelCablesAreAlike) {
  Fabric fabric;
  fabric.switches.resize(2);
  Join(fabric, 0, 1, kFull);
  Join(fabric, 1, 0, kSlow);
  Join(fabric, 0, 1, 0);  // of no known rate
  EXPECT_EQ(Marked(fabric), std::vector<int32_t>{1});
}

TEST(Degraded, CablesBetweenModelsAreAlikeWhereNineTenthsAgree) {
  for (const int fast : {8, 9}) {
    Fabric fabric;
    fabric.switches.resize(20);
    for (int i = 0; i < fast; ++i) Join(fabric, 2 * i, 2 * i + 1, kFull);
    Join(fabric, 18, 19, kSlow);
    EXPECT_EQ(Marked(fabric), fast == 9 ? std::vector<int32_t>{9} : std::vector<int32_t>{});
    std::vector<int32_t> models(20, 1);
    for (const int32_t model : {3, 0}) {  // another kind of cable, and one of unknown kind
      models[18] = model;
      EXPECT_EQ(Marked(fabric, models), std::vector<int32_t>{});
    }
  }
}

TEST(Degraded, AdaptersOfOneDeviceNameAreAlike) {
  Fabric fabric;
  fabric.switches.resize(1);
  for (int i = 0; i < 12; ++i) {
    const std::string host = "node" + std::to_string(i);
    Add(fabric, host, "mlx5_0", i == 3 ? kSlow : kFull);
    Add(fabric, host, "mlx5_1", kSlow);  // for storage
  }
  EXPECT_EQ(Marked(fabric), std::vector<int32_t>{6});
}

TEST(Degraded, AHostThatIsSlowThroughoutIsCabledSo) {
  Fabric fabric;
  fabric.switches.resize(1);
  for (int i = 0; i < 30; ++i)
    for (const char* device : {"mlx5_0", "mlx5_1"})
      Add(fabric, "node" + std::to_string(i), device, i == 3 ? kSlow : kFull);
  EXPECT_EQ(Marked(fabric), std::vector<int32_t>{});
}

}  // namespace
}  // namespace xccl
