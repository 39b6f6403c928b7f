// All bars, group by group. Peers' figures are the best of several runs for TACOS v1.3.0, the shipped outputs
// for TE-CCL, and the exact optima for ForestColl. Their CPU seconds are on a 2-core 2.6 GHz Xeon.
#include <fmt/core.h>

#include <cmath>

#include "base/units.h"
#include "bench/bars.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

constexpr int64_t kKib = 1024;
constexpr int64_t kMib = kKib * 1024;
constexpr int64_t kGib = kMib * 1024;
constexpr CollectiveKind kAll = CollectiveKind::kAllreduce;
constexpr CollectiveKind kGathered = CollectiveKind::kAllgather;
constexpr CollectiveKind kScattered = CollectiveKind::kReduceScatter;

// Ranks beyond which the bar of one second does not hold.
constexpr double kOneSecond = 1;
const char* const kTacosLinks = "@bandwidth=50GiB/s,latency=500ns";

// The folder's graphs, and what was published of their allgathers of 1 GiB.
struct Graph {
  const char* file;
  const char* published;
};
constexpr Graph kGraphs[] = {
    {"graphs/dgx1", "ForestColl: the bound, 0.16 s"},
    {"graphs/mi250x1", "ForestColl: the bound, 0.5 s"},
    {"graphs/mi250x2", "ForestColl 354.13 GB/s, 26 s"},
    {"graphs/mi250x4", "ForestColl 341.33 GB/s; with one tree a rank 320, 106 s"},
    {"graphs/a100x2", "ForestColl 346.67 GB/s, 3.7 s"},
    {"graphs/a100x4", "ForestColl 266.67 GB/s, 30 s"},
    {"graphs/hmesh5x5_50_75", ""},
    {"graphs/2xtorus4x4_slow4", ""},
    {"graphs/torus8x8_5failed", ""},
    {"graphs/teccl_dgx2_2", "TE-CCL: the bound, 2,700 s"},
    {"graphs/teccl_ndv2_4", "TE-CCL 1.083 x bound, 222 s"},
};

// (a) Allgather and reduce_scatter of 1 GiB, pipelined.
void AddBandwidth(std::vector<Bar>& bars) {
  std::vector<Graph> machines(std::begin(kGraphs), std::end(kGraphs));
  std::vector<std::string> names;
  for (const char* grid : {"4x4", "5x5", "6x6", "8x8", "10x10", "12x12", "16x16", "24x24", "32x32", "7x12",
                           "3x3x3", "4x4x4", "3x4x5", "4x2x3", "8x8x8", "10x10x10"}) {
    names.push_back(fmt::format("torus:{}", grid));
    names.push_back(fmt::format("mesh:{}", grid));
  }
  for (int dim = 3; dim <= 10; ++dim) names.push_back(fmt::format("hypercube:{}", dim));
  for (int ranks = 8; ranks <= 256; ranks *= 2) names.push_back(fmt::format("full-mesh:{}", ranks));
  for (int gpus = 8; gpus <= 64; gpus *= 2) names.push_back(fmt::format("nvswitch:{}", gpus));
  for (const char* other : {"mixed-mesh:5x8:80:35", "mixed-mesh:7x10:16:73", "dragonfly-direct",
                            "ndv2-one-nic:2:GiB", "a100-unwound:2", "a100-unwound:4", "mi250-unwound"})
    names.emplace_back(other);
  for (const std::string& name : names) machines.push_back({name.c_str(), ""});
  for (const Graph& machine : machines)
    for (const CollectiveKind kind : {kGathered, kScattered})
      bars.push_back({.group = "a",
                      .machine = machine.file,
                      .collective = kind,
                      .most_ratio = 1.01,
                      .most_seconds = kOneSecond,
                      .peer = kind == kGathered ? machine.published : ""});
}

struct TacosRow {
  const char* machine;
  int32_t chunks;  // 0: the best of 1, 3, 8 and 16
  double us;
  double cpu_s;  // 0: not told
  int64_t size = kGib;
};

constexpr TacosRow kTacosGrids[] = {
    {"mesh:4x4", 1, 10004.0, 0.0002},
    {"mesh:4x4", 4, 9390.0, 0.0021},
    {"mesh:4x4", 16, 9435.0, 0.0287},
    {"torus:4x4", 1, 6252.5, 0.0002},
    {"torus:4x4", 4, 5008.0, 0.0014},
    {"torus:4x4", 16, 4717.5, 0.0181},
    {"mesh:8x8", 1, 10016.0, 0.0095},
    {"mesh:8x8", 4, 9906.8, 0.1478},
    {"mesh:8x8", 16, 10095.8, 2.3054},
    {"torus:8x8", 1, 5321.0, 0.0066},
    {"torus:8x8", 4, 5032.0, 0.0863},
    {"torus:8x8", 16, 5067.9, 1.5727},
    {"mesh:16x16", 1, 10064.0, 0.7784},
    {"mesh:16x16", 4, 10215.9, 15.8627},
    {"torus:16x16", 1, 5110.6, 0.5439},
    {"torus:16x16", 4, 5128.0, 11.6299},
    {"torus:16x16", 16, 5495.9, 275.3932},
    {"mesh:32x32", 1, 10256.0, 80.0271},
    {"torus:32x32", 1, 5168.1, 71.4704},
    {"torus:4x4x4", 1, 3443.0, 0.0051},
    {"torus:4x4x4", 4, 3380.9, 0.0622},
    {"mesh:4x4x4", 1, 6573.0, 0.0071},
    {"mesh:4x4x4", 4, 6604.5, 0.0932},
    {"torus:8x8x8", 1, 3402.4, 4.1872},
    {"torus:10x10x10", 1, 3423.5, 57.5605},
    {"hypercube:3", 1, 7501.5, 0.0001},
    {"hypercube:3", 4, 6255.0, 0.0003},
    {"hypercube:4", 1, 6252.5, 0.0002},
    {"hypercube:4", 4, 4695.0, 0.0014},
    {"hypercube:6", 1, 3443.0, 0.0052},
    {"hypercube:6", 4, 3380.9, 0.0614},
    {"hypercube:8", 1, 2516.0, 0.3102},
    {"hypercube:8", 4, 2564.0, 6.8752},
    {"hypercube:10", 1, 2063.2, 35.0043},
    {"full-mesh:8", 1, 2500.5, 0.0001},
    {"full-mesh:8", 4, 3127.5, 0.0002},
    {"full-mesh:16", 1, 1250.5, 0.0002},
    {"full-mesh:16", 4, 1565.0, 0.0009},
    {"full-mesh:64", 1, 313.0, 0.0056},
    {"full-mesh:64", 4, 393.1, 0.0363},
    {"full-mesh:256", 1, 78.6, 0.4289},
    {"ring:8", 1, 10002.0, 0.0001},
    {"ring:16", 1, 10004.0, 0.0003},
    {"ring:64", 1, 10016.0, 0.0111},
    // TACOS' own regression values.
    {"mesh:5x5", 1, 9606.0, 0},
    {"mesh:3x3x3", 1, 6671.17, 0},
    {"mesh:3x4x5", 2, 13353.33, 0, 2 * kGib},
    {"mesh:4x2x3", 3, 19178.17, 0, 3 * kGib},
    {"torus:3x3x3", 1, 3706.20, 0},
    {"torus:3x4x5", 2, 6676.67, 0, 2 * kGib},
    {"torus:4x2x3", 3, 11673.67, 0, 3 * kGib},
};

constexpr TacosRow kTacosOthers[] = {
    {"mesh:10x10@bandwidth=100GiB/s,latency=1us", 2, 5049.0, 0},
    {"mesh:7x12@bandwidth=100GiB/s,latency=1us", 3, 19966.27, 0, 4 * kGib},
    {"graphs/hmesh5x5_50_75", 1, 8005.0, 0.002},
    {"mixed-mesh:8x5:80:35", 2, 8595.43, 0},
    {"mixed-mesh:5x8:80:35", 2, 8595.43, 0},
    {"mixed-mesh:7x10:16:73", 3, 44612.47, 0, 4 * kGib},
    {"mixed-mesh:10x7:16:73", 3, 44612.47, 0, 4 * kGib},
    // Mixed speeds: one chunk, three, eight, sixteen, and the engine's own choice against the best of them.
    {"graphs/dgx1", 1, 7502, 0.0001},
    {"graphs/dgx1", 3, 6669, 0},
    {"graphs/dgx1", 8, 5951, 0},
    {"graphs/dgx1", 16, 5951, 0.004},
    {"ndv2-one-nic:2:GiB", 1, 43762, 0.0012},
    {"ndv2-one-nic:2:GiB", 3, 41283, 0},
    {"ndv2-one-nic:2:GiB", 8, 40553, 0},
    {"ndv2-one-nic:2:GiB", 16, 40402, 0.242},
    {"a100-unwound:2", 1, 3991, 0.0002},
    {"a100-unwound:2", 3, 3838, 0},
    {"a100-unwound:2", 8, 3646, 0},
    {"a100-unwound:2", 16, 3417, 0.018},
    {"graphs/mi250x1", 1, 5005, 0.0007},
    {"graphs/mi250x1", 3, 3756, 0},
    {"graphs/mi250x1", 8, 3415, 0},
    {"graphs/mi250x1", 16, 3232, 0.093},
    {"dragonfly-direct", 1, 6504, 0.0006},
    {"dragonfly-direct", 3, 5508, 0},
    {"dragonfly-direct", 8, 5334, 0},
    {"dragonfly-direct", 16, 5198, 0.102},
    {"graphs/hmesh5x5_50_75", 3, 7748, 0},
    {"graphs/hmesh5x5_50_75", 8, 7738, 0},
    {"graphs/hmesh5x5_50_75", 16, 7782, 0.362},
    {"graphs/2xtorus4x4_slow4", 1, 13761, 0.002},
    {"graphs/2xtorus4x4_slow4", 3, 11695, 0},
    {"graphs/2xtorus4x4_slow4", 8, 10929, 0},
    {"graphs/2xtorus4x4_slow4", 16, 10603, 0.284},
    {"mi250-unwound", 1, 4380, 0.008},
    {"mi250-unwound", 3, 3670, 0},
    {"mi250-unwound", 8, 3279, 0},
    {"mi250-unwound", 16, 3181, 1.078},
    {"a100-unwound:4", 1, 6887, 0.001},
    {"a100-unwound:4", 3, 6520, 0},
    {"a100-unwound:4", 8, 4997, 0},
    {"a100-unwound:4", 16, 4677, 0.157},
    {"mixed-mesh:5x8:80:35", 1, 8583, 0.0095},
    {"mixed-mesh:5x8:80:35", 3, 8607, 0},
    {"mixed-mesh:5x8:80:35", 8, 8667, 0},
    {"mixed-mesh:5x8:80:35", 16, 8849, 1.641},
    {"mixed-mesh:8x5:80:35", 1, 8583, 0.0095},
    {"graphs/torus8x8_5failed", 1, 6573, 0.007},
    {"graphs/torus8x8_5failed", 3, 6594, 0},
    {"graphs/torus8x8_5failed", 8, 6646, 0},
    {"graphs/torus8x8_5failed", 16, 6730, 1.837},
    {"mixed-mesh:7x10:16:73", 1, 11324, 0.069},
    {"mixed-mesh:10x7:16:73", 1, 11324, 0.069},
    {"mixed-mesh:7x10:16:73", 3, 11344, 0},
    {"mixed-mesh:7x10:16:73", 8, 11657, 4},
    {"graphs/dgx1", 0, 5951, 0},
    {"ndv2-one-nic:2:GiB", 0, 40402, 0},
    {"a100-unwound:2", 0, 3417, 0},
    {"graphs/mi250x1", 0, 3232, 0},
    {"dragonfly-direct", 0, 5198, 0},
    {"graphs/hmesh5x5_50_75", 0, 7738, 0},
    {"graphs/2xtorus4x4_slow4", 0, 10603, 0},
    {"mi250-unwound", 0, 3181, 0},
    {"a100-unwound:4", 0, 4677, 0},
    {"mixed-mesh:5x8:80:35", 0, 8583, 0},
    {"graphs/torus8x8_5failed", 0, 6573, 0},
    {"mixed-mesh:7x10:16:73", 0, 11324, 0},
    // Switches: unwound as TACOS needs them, and as they are.
    {"unwound:8:1:50", 4, 18765.0, 0.0005},
    {"unwound:8:2:50", 4, 18757.5, 0.0003},
    {"unwound:8:4:50", 4, 20004.0, 0.0002},
    {"unwound:8:7:50", 4, 21877.5, 0.0002},
    {"unwound:16:1:50", 4, 19719.0, 0.0041},
    {"unwound:16:2:50", 4, 19390.5, 0.0022},
    {"unwound:16:4:50", 4, 20008.0, 0.0014},
    {"unwound:16:7:50", 4, 19692.0, 0.0011},
    {"unwound:64:1:50", 4, 20599.8, 0.3138},
    {"unwound:64:2:50", 4, 20377.5, 0.1654},
    {"unwound:64:4:50", 4, 20658.0, 0.0933},
    {"unwound:64:7:50", 4, 20252.9, 0.0675},
    {"nvswitch:8@bandwidth=50GiB/s,latency=250ns", 4, 18757.5, 0.0003},
    {"nvswitch:16@bandwidth=50GiB/s,latency=250ns", 4, 19390.5, 0.0022},
    {"nvswitch:64@bandwidth=50GiB/s,latency=250ns", 4, 20252.9, 0.0675},
};

// (b) TACOS' rows in the blocking model, by greedy and by auto; published times are rounded as written.
void AddTacos(std::vector<Bar>& bars) {
  const auto add = [&bars](const TacosRow& row, const char* links) {
    const double rounding = row.us == std::floor(row.us) ? 0.5 : 0.05;
    for (const char* engine : {"greedy", "auto"})
      bars.push_back({.group = "b",
                      .machine = std::string(row.machine) + links,
                      .size_bytes = row.size,
                      .model = TimeModel::kBlocking,
                      .chunks = row.chunks,
                      .engine = engine,
                      .most_us = row.us + rounding,
                      .peer = row.cpu_s > 0 ? fmt::format("TACOS {:g} s", row.cpu_s) : "TACOS"});
  };
  for (const TacosRow& row : kTacosGrids) add(row, kTacosLinks);
  for (const TacosRow& row : kTacosOthers) add(row, "");
}

// (c) ForestColl's optima: the rate of a stream without end, and depth where the least is known.
void AddForest(std::vector<Bar>& bars) {
  struct Row {
    const char* machine;
    double gb_per_s;
    double cpu_s;  // ForestColl's
    double most_s = 1;
    int32_t most_depth = 0;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"dgx1", 171.42857, 0.16},
           {"a100:1", 342.85714, 0.19, 1, 3},
           {"a100:2", 346.66667, 3.7},
           {"a100:4", 266.66667, 30},
           {"a100:8", 228.57143, 0},
           {"a100:16", 213.33333, 0, 5},
           {"mi250x", 342.85714, 0.5},
           {"graphs/mi250x2", 354.13333, 26},
           {"graphs/mi250x4", 341.33333, 0},
           {"rail:2", 346.66667, 1.6},
           {"rail:4", 266.66667, 11.6},
           {"rail:32", 206.45161, 0, 20},
           {"full-mesh:8@bandwidth=1GB/s", 8, 0.16, 1, 3},
           {"full-mesh:16@bandwidth=1GB/s", 16, 0.37, 1, 3},
           {"nvswitch:8@bandwidth=1GB/s", 1.142857, 0.17, 1, 3},
           {"nvswitch:16@bandwidth=1GB/s", 1.066667, 0.83, 1, 3},
           {"nvswitch:32@bandwidth=1GB/s", 1.032258, 8, 1, 3},
           {"hypercube:3@bandwidth=1GB/s", 3.428571, 0.15, 1, 5},
           {"hypercube:4@bandwidth=1GB/s", 4.266667, 0.49, 1, 6},
           {"hypercube:5@bandwidth=1GB/s", 5.161290, 5.1, 1, 7},
           {"hypercube:6@bandwidth=1GB/s", 6.095238, 31.4, 1, 8},
           {"torus:4x4@bandwidth=1GB/s", 4.266667, 0.6, 1, 6},
           {"torus:8x8@bandwidth=1GB/s", 4.063492, 46.3, 1, 10},
           {"torus:4x4x4@bandwidth=1GB/s", 6.095238, 39.8, 1, 8},
           {"torus:16x16@bandwidth=1GB/s", 4.015686, 17.7, 1, 18},
           {"mesh:4x4@bandwidth=1GB/s", 2.133333, 0.31, 1, 8},
           {"mesh:8x8@bandwidth=1GB/s", 2.031746, 17.6, 1, 16},
       })
    bars.push_back({.group = "c",
                    .machine = row.machine,
                    .engine = "forest",
                    .check = BarCheck::kRate,
                    .least_gb_per_s = row.gb_per_s,
                    .most_seconds = row.most_s,
                    .most_depth = row.most_depth,
                    .peer = row.cpu_s > 0 ? fmt::format("ForestColl {:g} s", row.cpu_s) : "ForestColl"});
}

// (d) Allreduce: 2n ÷ (n + 1) link bandwidths on an n × n mesh; elsewhere the bound that is printed.
void AddAllreduce(std::vector<Bar>& bars) {
  for (const int n : {3, 4, 5, 6, 8})
    bars.push_back({.group = "d",
                    .machine = fmt::format("mesh:{}x{}@bandwidth=50GB/s", n, n),
                    .collective = kAll,
                    .least_gb_per_s = 0.99 * 50 * 2 * n / (n + 1),
                    .peer = "LP optimum"});
  for (const Graph& graph : kGraphs)
    bars.push_back({.group = "d", .machine = graph.file, .collective = kAll, .most_ratio = 1.01});
  bars.push_back({.group = "d",
                  .machine = "graphs/torus8x8_5failed",
                  .collective = kAll,
                  .most_us = 1.01 * 2 * 6562.5 / 1.281,
                  .peer = "LP optimum"});
  for (const char* machine : {"torus:4x4", "torus:8x8", "hypercube:4", "hypercube:6", "full-mesh:8",
                              "dragonfly-direct", "mixed-mesh:5x8:80:35"})
    bars.push_back({.group = "d", .machine = machine, .collective = kAll, .most_ratio = 1.01});
}

// (e) TE-CCL's allgathers: the best of its settings. In TE-CCL the last hop out of a switch takes no time, so
// the slack is one alpha of that hop and one of the first.
void AddTeccl(std::vector<Bar>& bars) {
  struct Row {
    const char* machine;
    const char* size;
    double us, solver_s;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"graphs/teccl_dgx2_2", "1KB", 4.006, 18422},   {"graphs/teccl_dgx2_2", "4KB", 4.030, 1073},
           {"graphs/teccl_dgx2_2", "16KB", 4.084, 2923},   {"graphs/teccl_dgx2_2", "64KB", 4.32, 634},
           {"graphs/teccl_dgx2_2", "256KB", 5.376, 170},   {"graphs/teccl_dgx2_2", "1MB", 10.75, 8181},
           {"graphs/teccl_dgx2_2", "4MB", 33, 1137},       {"graphs/teccl_dgx2_2", "16MB", 124, 1262},
           {"graphs/teccl_dgx2_2", "64MB", 496, 279},      {"graphs/teccl_dgx2_2", "256MB", 1984, 2694},
           {"graphs/teccl_dgx2_2", "1GB", 7750, 2700},     {"ndv2-one-nic:2:GB", "1KB", 4.135, 624},
           {"ndv2-one-nic:2:GB", "4KB", 4.185, 773},       {"ndv2-one-nic:2:GB", "16KB", 4.44, 184},
           {"ndv2-one-nic:2:GB", "64KB", 6.08, 69},        {"ndv2-one-nic:2:GB", "256KB", 14.72, 40},
           {"ndv2-one-nic:2:GB", "1MB", 48.75, 47},        {"ndv2-one-nic:2:GB", "16MB", 700, 45},
           {"ndv2-one-nic:2:GB", "64MB", 2800, 43},        {"ndv2-one-nic:2:GB", "1GB", 43750, 43},
           {"graphs/teccl_ndv2_4", "1KB", 5.4495, 7560},   {"graphs/teccl_ndv2_4", "4KB", 5.516, 9039},
           {"graphs/teccl_ndv2_4", "16KB", 5.81, 3031},    {"graphs/teccl_ndv2_4", "64KB", 8.32, 571},
           {"graphs/teccl_ndv2_4", "256KB", 20.96, 17243}, {"graphs/teccl_ndv2_4", "1MB", 69.375, 9510},
           {"graphs/teccl_ndv2_4", "4MB", 280, 208},       {"graphs/teccl_ndv2_4", "16MB", 1040, 237},
           {"graphs/teccl_ndv2_4", "64MB", 4160, 216},     {"graphs/teccl_ndv2_4", "256MB", 16640, 221},
           {"graphs/teccl_ndv2_4", "1GB", 65000, 222},
       })
    bars.push_back({.group = "e",
                    .machine = row.machine,
                    .size_bytes = ParseSize(row.size).value(),
                    .most_us = row.us + 0.7,
                    .most_seconds = kOneSecond,
                    .peer = fmt::format("TE-CCL {:g} s", row.solver_s)});
}

// (e) TE-CCL's alltoalls at its best finish times. On two NDv2 TE-CCL turns GPU 0 into a switch, so 15 GPUs
// take part.
void AddTecclAlltoall(std::vector<Bar>& bars) {
  struct Row {
    const char* size;
    double dgx2_us, dgx2_solver_s, ndv2_us, ndv2_solver_s;
  };
  for (const Row& row : {Row{"1KB", 4.06, 1333, 4.2385, 653}, Row{"4KB", 4.21, 958, 4.6, 1373},
                         Row{"16KB", 4.704, 1307, 7.94, 1390}, Row{"64KB", 8.464, 1206, 21.68, 1476},
                         Row{"256KB", 24, 1169, 77.12, 1507}, Row{"1MB", 84.25, 1204, 290, 1487},
                         Row{"4MB", 327, 1221, 1155, 1520}, Row{"16MB", 1292, 1465, 4540, 1507},
                         Row{"64MB", 5168, 1448, 18160, 1498}, Row{"256MB", 20608, 1413, 72640, 1509},
                         Row{"1GB", 80500, 1590, 283750, 1482}}) {
    const int64_t size = ParseSize(row.size).value();
    for (const bool dgx2 : {true, false})
      bars.push_back({.group = "e",
                      .machine = dgx2 ? "graphs/teccl_dgx2_2" : "ndv2-one-nic:2:GB",
                      .collective = CollectiveKind::kAlltoall,
                      .first_member = dgx2 ? 0 : 1,
                      .size_bytes = dgx2 ? size : size / 16 * 15,
                      .most_us = dgx2 ? row.dgx2_us : row.ndv2_us,
                      .most_seconds = kOneSecond,
                      .peer = fmt::format("TE-CCL {:g} s", dgx2 ? row.dgx2_solver_s : row.ndv2_solver_s)});
  }
}

// (f) 40,000 ranks planned, verified and simulated in 60 s and 8 GiB.
void AddHuge(std::vector<Bar>& bars) {
  bars.push_back({.group = "f",
                  .machine = "torus:200x200",
                  .most_seconds = 60,
                  .total_seconds = true,
                  .peer = "TACOS' paper 9072 s"});
}

// (g) Small messages in the blocking model: D alphas and the bandwidth term, within 5 %.
void AddSmall(std::vector<Bar>& bars) {
  struct Row {
    const char* machine;
    int64_t size;
    double us, tacos_us;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"torus:8x8", 64 * kKib, 4.30, 8.82},       {"torus:16x16", 64 * kKib, 8.30, 32.81},
           {"torus:4x4x4", 64 * kKib, 3.20, 5.71},     {"hypercube:6", 64 * kKib, 3.20, 5.71},
           {"full-mesh:16", 64 * kKib, 0.58, 0.58},    {"mesh:8x8", 64 * kKib, 7.60, 16.61},
           {"torus:8x8", kMib, 8.81, 13.69},           {"torus:16x16", kMib, 12.86, 37.46},
           {"torus:4x4x4", kMib, 6.20, 8.86},          {"hypercube:6", kMib, 6.20, 8.86},
           {"full-mesh:16", kMib, 1.72, 1.72},         {"mesh:8x8", kMib, 16.61, 25.77},
           {"torus:8x8", 16 * kMib, 80.90, 91.51},     {"torus:16x16", 16 * kMib, 85.82, 111.85},
           {"torus:4x4x4", 16 * kMib, 54.27, 59.21},   {"hypercube:6", 16 * kMib, 54.27, 59.21},
           {"full-mesh:16", 16 * kMib, 20.03, 20.03},  {"mesh:8x8", 16 * kMib, 160.81, 172.25},
           {"torus:8x8", 64 * kMib, 311.62, 340.53},   {"torus:16x16", 64 * kMib, 319.28, 355.27},
           {"torus:4x4x4", 64 * kMib, 208.08, 220.34}, {"hypercube:6", 64 * kMib, 208.08, 220.34},
           {"full-mesh:16", 64 * kMib, 78.62, 78.62},  {"mesh:8x8", 64 * kMib, 622.23, 641.00},
       })
    bars.push_back({.group = "g",
                    .machine = std::string(row.machine) + kTacosLinks,
                    .size_bytes = row.size,
                    .model = TimeModel::kBlocking,
                    .most_us = 1.05 * row.us,
                    .peer = fmt::format("TACOS {:g} us", row.tacos_us)});
}

// (h) The library's NVLink and RDMA clusters.
void AddClusters(std::vector<Bar>& bars) {
  for (int hosts = 2; hosts <= 128; hosts *= 2)
    for (const CollectiveKind kind : {kGathered, kScattered, kAll})
      for (const int64_t size : {kGib, 64 * kKib})
        bars.push_back({.group = "h",
                        .machine = fmt::format("rail-{}", hosts),
                        .collective = kind,
                        .size_bytes = size,
                        .most_ratio = size == kGib ? 1.02 : 1.3});
}

// (i) The program keeps the time that its schedule promises.
void AddPrograms(std::vector<Bar>& bars) {
  for (const char* engine : {"forest", "bfb"})
    for (const char* machine :
         {"dgx1", "dgx-a100", "mi250x", "rail-2", "rail-8", "graphs/a100x2", "graphs/mi250x2",
          "graphs/hmesh5x5_50_75", "graphs/torus8x8_5failed", "torus:4x4", "torus:8x8", "mesh:4x4",
          "torus:4x4x4", "hypercube:4", "hypercube:6", "full-mesh:8", "nvswitch:8"})
      for (const CollectiveKind kind : {kGathered, kAll})
        for (const int64_t size : {64 * kMib, kGib})
          bars.push_back({.group = "i",
                          .machine = machine,
                          .collective = kind,
                          .size_bytes = size,
                          .engine = engine,
                          .check = BarCheck::kProgram,
                          .most_loss = 1.05});
}

// (j) auto beside all other engines at every size.
void AddEveryone(std::vector<Bar>& bars) {
  for (const char* machine :
       {"dgx1", "dgx-a100", "dgx-h100", "rail-2", "mi250x", "torus:4x4", "torus:8x8", "mesh:4x4",
        "hypercube:4", "full-mesh:8", "ring:8", "fat-tree:k=4", "graphs/a100x2", "graphs/torus8x8_5failed"})
    for (const CollectiveKind kind : {kGathered, kAll})
      for (int64_t size = kKib; size <= 4 * kGib; size *= 8)
        bars.push_back({.group = "j",
                        .machine = machine,
                        .collective = kind,
                        .size_bytes = size,
                        .check = BarCheck::kEveryone,
                        .most_loss = 1.0000001});
}

// (k) Alltoall of 1 GiB beside the optimum of the concurrent flow.
void AddAlltoall(std::vector<Bar>& bars) {
  for (const char* machine : {"ring:8",
                              "torus:4x4",
                              "torus:5x5",
                              "torus:6x6",
                              "torus:7x7",
                              "torus:8x8",
                              "torus:16x16",
                              "torus:32x32",
                              "torus:4x4x4",
                              "mesh:3x3",
                              "mesh:4x4",
                              "mesh:5x6",
                              "mesh:8x8",
                              "hypercube:3",
                              "hypercube:4",
                              "hypercube:5",
                              "hypercube:6",
                              "hypercube:10",
                              "dgx1",
                              "dgx-a100",
                              "nvswitch:16",
                              "dragonfly-72",
                              "fat-tree-128",
                              "rail-2",
                              "rail-4",
                              "rail-8",
                              "rail-16",
                              "rail-128",
                              "mi250x",
                              "graphs/a100x2",
                              "graphs/a100x4",
                              "graphs/mi250x2",
                              "graphs/mi250x4",
                              "graphs/teccl_dgx2_2",
                              "graphs/teccl_ndv2_4",
                              "graphs/hmesh5x5_50_75",
                              "graphs/2xtorus4x4_slow4",
                              "graphs/torus8x8_5failed"})
    bars.push_back({.group = "k",
                    .machine = machine,
                    .collective = CollectiveKind::kAlltoall,
                    .engine = "flow",
                    .most_ratio = 1.05,
                    .most_seconds = 5});
}

// (l) auto on large machines.
void AddLarge(std::vector<Bar>& bars) {
  for (const char* machine : {"torus:32x32", "hypercube:10", "rail-128", "mesh:16x16"})
    for (const CollectiveKind kind : {kGathered, kAll})
      bars.push_back({.group = "l", .machine = machine, .collective = kind, .most_ratio = 1.01});
}

}  // namespace

std::span<const BarGroup> BarGroups() {
  static constexpr BarGroup kGroups[] = {
      {"a", "allgather and reduce_scatter of 1 GiB, ratio ≤ 1.01 in 1 s, up to 1,024 ranks"},
      {"b", "TACOS' times, blocking, by greedy and by auto"},
      {"c", "ForestColl's optima"},
      {"d", "allreduce optima"},
      {"e", "TE-CCL's allgathers and alltoalls, each in 1 s"},
      {"f", "40,000 ranks planned, verified and simulated in 60 s"},
      {"g", "small messages, blocking"},
      {"h", "clusters of 2 to 128 hosts, ratio ≤ 1.02 at 1 GiB, ≤ 1.3 at 64 KiB"},
      {"i", "program within 5 % of its schedule, 64 MiB and 1 GiB"},
      {"j", "auto no slower than any other engine (smt with a tenth of its work), 1 KiB to 4 GiB"},
      {"k", "alltoall of 1 GiB, ratio ≤ 1.05 in 5 s"},
      {"l", "auto on large machines, 1 GiB, ratio ≤ 1.01"},
  };
  return kGroups;
}

std::vector<Bar> AllBars() {
  std::vector<Bar> bars;
  AddBandwidth(bars);
  AddTacos(bars);
  AddForest(bars);
  AddAllreduce(bars);
  AddTeccl(bars);
  AddTecclAlltoall(bars);
  AddHuge(bars);
  AddSmall(bars);
  AddClusters(bars);
  AddPrograms(bars);
  AddEveryone(bars);
  AddAlltoall(bars);
  AddLarge(bars);
  return bars;
}

}  // namespace xccl
