// Predicted times of expert dispatch and combine on GPUs beside published ones: DeepEP V1 on H800, NCCL EP
// and Hybrid-EP on H100, Hybrid-EP on Blackwell. The routes are those of the library that was measured, on a
// few drawn routings, with the machine models of ir/known_machines.cc: no constant is fitted to the tables.
// Usage: dispatch_truth
//
// Published figures are GB/s of rows with those of a rank's own host, so a row of this table has the bytes
// that its publisher counts: rows for each expert, for each rank, or for each host, of the rank's tokens.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/markdown_table.h"
#include "dispatch/gpu_time.h"
#include "dispatch/make_plan.h"
#include "ir/known_machines.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using dispatch::Call;
using dispatch::ExpertPlan;
using dispatch::Routing;
using dispatch::Sizes;

constexpr int64_t kFp8Row = 7392, kBf16Row = 14336;  // 7,168 values; fp8 with 56 scales
constexpr int32_t kDraws = 3;

enum class Rows : uint8_t { kOfExpert, kOfRank, kOfHost };

// The bytes that a GPU's NVLinks carry in a direction by its datasheet, and GPUs that one NVSwitch joins. Of
// H800's 200 GB/s the 160 that can be used (Zhao et al., arXiv 2505.09343): its 8 links are too few for the
// model's limit.
struct Gpu {
  const char *name, *arch, *nvlink;
  int32_t joined;
};
constexpr Gpu kH800 = {"H800", "sm90", "160GB/s", 8}, kH100 = {"H100", "sm90", "450GB/s", 8},
              kB200 = {"B200", "sm100", "900GB/s", 8}, kGb200 = {"GB200", "sm100", "900GB/s", 36};

struct Published {
  const char* library;
  Gpu gpu;
  int32_t hosts;  // NVSwitches
  int32_t experts, tokens;
  Call call;
  int64_t row_bytes;
  Rows sent;                      // a row goes to each expert, each rank, or once to each host
  Rows counted;                   // by the figure
  std::optional<int32_t> blocks;  // threadblocks of a rank, where the table says them
  int32_t groups;                 // hosts that a token's experts are on at most; 0: any
  double us, gb_per_s;            // one of the two
};

// The machine of a row: rails of 400 Gbit/s with latencies as in topologies/library/rail-2.xml. One spine
// with the width of all uplinks stands for switches that route adaptively.
StatusOr<Topology> MachineOf(const Published& row) {
  std::string xml =
      fmt::format("<nvswitch gpus='{}' bandwidth='{}' latency='500ns'/>", row.gpu.joined, row.gpu.nvlink);
  if (row.hosts == 1)
    xml = "<host name='h0'>" + xml + "</host>";
  else
    xml = fmt::format(
        "<cluster hosts='{}'>{}<nic id='nic' count='8'/><link from='gpu:*' to='nic:*' pairwise='true' "
        "bandwidth='400Gbit/s' latency='0ns'/><fabric type='rails' bandwidth='400Gbit/s' latency='1300ns' "
        "spines='1' uplink-latency='300ns' oversubscription='1'/></cluster>",
        row.hosts, xml);
  return ReadNativeXml(
      fmt::format("<topology name='{}' arch='{}'>{}</topology>", row.gpu.name, row.gpu.arch, xml),
      row.gpu.name);
}

// A token's experts are the top_k highest of random scores on the `groups` hosts that have the highest score.
Routing DrawLimited(const Sizes& sizes, int32_t hosts, int32_t groups, Random& random) {
  const int32_t per_host = sizes.experts / hosts;
  Routing routing{.top_k = sizes.top_k};
  std::vector<double> score(sizes.experts), best(hosts);
  std::vector<int32_t> host(hosts), order(sizes.experts);
  for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
    for (int32_t t = 0; t < sizes.max_tokens; ++t) {
      for (double& value : score) value = random.Unit();
      for (int32_t h = 0; h < hosts; ++h)
        best[h] = *std::max_element(score.begin() + h * per_host, score.begin() + (h + 1) * per_host);
      std::iota(host.begin(), host.end(), 0);
      std::ranges::sort(host, [&](int32_t a, int32_t b) { return best[a] > best[b]; });
      order.clear();
      for (int32_t g = 0; g < std::min(groups, hosts); ++g)
        for (int32_t e = 0; e < per_host; ++e) order.push_back(host[g] * per_host + e);
      std::ranges::partial_sort(order, order.begin() + sizes.top_k,
                                [&](int32_t a, int32_t b) { return score[a] > score[b]; });
      routing.experts.insert(routing.experts.end(), order.begin(), order.begin() + sizes.top_k);
    }
    routing.first_token.push_back(routing.first_token.back() + sizes.max_tokens);
  }
  return routing;
}

// The rows that the library sends over the plan's hops: once for each expert, or as the plan says.
std::vector<int64_t> RowsSent(const ExpertPlan& plan, const Routing& routing, const Published& row) {
  const dispatch::HopIndex index(plan);
  if (row.sent != Rows::kOfExpert)
    return dispatch::RowsOfHops(plan, index, NeedsOf(routing, plan.sizes), row.call);
  dispatch::BranchFinder finder(plan);
  std::vector<int64_t> rows(plan.hops.size());
  for (int32_t home = 0; home < plan.sizes.ranks; ++home)
    for (int64_t t = routing.first_token[home]; t < routing.first_token[home + 1]; ++t)
      for (const int32_t expert : routing.ExpertsOf(t)) {
        const int32_t needs[] = {plan.sizes.RankOfExpert(expert)};
        for (const dispatch::Branch& branch : finder.Find(0, home, needs))
          ++rows[index.Find(0, branch.depth, branch.from, branch.to)];
      }
  return rows;
}

// Rows of a rank's tokens as the publisher counts them, those for its own host among them.
double CountedRows(const ExpertPlan& plan, const Routing& routing, Rows counted) {
  std::vector<int32_t> needs, hosts;
  int64_t rows = 0;
  for (int64_t t = 0; t < routing.first_token.back(); ++t) {
    dispatch::RanksOf(routing.ExpertsOf(t), plan.sizes, needs);
    hosts.clear();
    for (const int32_t rank : needs) hosts.push_back(plan.topology.HostOf(Rank(rank)).value);
    std::ranges::sort(hosts);
    switch (counted) {
      case Rows::kOfExpert:
        rows += plan.sizes.top_k;
        break;
      case Rows::kOfRank:
        rows += std::ssize(needs);
        break;
      case Rows::kOfHost:
        rows += std::unique(hosts.begin(), hosts.end()) - hosts.begin();
    }
  }
  return static_cast<double>(rows) / plan.sizes.ranks;
}

struct Truth {
  double predicted_us, published_us;
};

StatusOr<Truth> Predict(const Published& row) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, MachineOf(row));
  const MachineModel model = topology.gpu_arch() == kH100.arch ? HopperModel() : BlackwellModel();
  const dispatch::PlanRequest request{
      .call = row.call,
      .sizes = {.ranks = topology.num_ranks(),
                .experts = row.experts,
                .top_k = 8,
                .max_tokens = row.tokens,
                .row_bytes = row.row_bytes},
      .aim = row.tokens > 1024 ? dispatch::Aim::kThroughput : dispatch::Aim::kLatency,
      .routing = {}};
  XCCL_ASSIGN_OR_RETURN(const dispatch::Groundwork ground, dispatch::Prepare(topology, request));
  XCCL_ASSIGN_OR_RETURN(ExpertPlan made, row.sent == Rows::kOfHost ? dispatch::DeepEpPlan(ground)
                                                                   : dispatch::DirectPlan(ground));
  const ExpertPlan plan = dispatch::OnMachine(std::move(made), model);
  Random random(1);
  Truth truth{0, 0};
  for (int32_t i = 0; i < kDraws; ++i) {
    const Routing routing = row.groups > 0
                                ? DrawLimited(request.sizes, topology.num_hosts(), row.groups, random)
                                : dispatch::DrawRouting(request.routing, request.sizes, random);
    const int64_t ps = dispatch::GpuTimePs(plan, row.call, RowsSent(plan, routing, row), model, row.blocks);
    truth.predicted_us += static_cast<double>(ps) / 1e6 / kDraws;
    const double bytes = CountedRows(plan, routing, row.counted) * static_cast<double>(row.row_bytes);
    truth.published_us += (row.us > 0 ? row.us : bytes / row.gb_per_s / 1e3) / kDraws;
  }
  return truth;
}

// Both calls of one setting, by GB/s or by microseconds.
void AddBoth(std::vector<Published>& rows, Published row, double dispatch_gb, double combine_gb,
             double dispatch_us, double combine_us) {
  row.gb_per_s = dispatch_gb;
  row.us = dispatch_us;
  rows.push_back(row);
  row.call = Call::kCombine;
  row.row_bytes = kBf16Row;
  row.gb_per_s = combine_gb;
  row.us = combine_us;
  rows.push_back(row);
}

std::vector<Published> Table() {
  std::vector<Published> rows;
  // deepseek-ai/DeepEP dd758ca, its page on legacy kernels: H800 with 400 Gbit/s NICs; 4,096 tokens in at
  // most 4 groups. Rows are moved by the 24 SMs that its README sets.
  struct Line {
    int32_t hosts;
    double dispatch, combine;
  };
  for (const Line& line : {Line{1, 153, 158}, {2, 43, 43}, {4, 58, 57}, {8, 51, 50}})
    AddBoth(rows,
            {"DeepEP V1", kH800, line.hosts, 256, 4096, Call::kDispatch, kFp8Row, Rows::kOfHost,
             line.hosts == 1 ? Rows::kOfRank : Rows::kOfHost, 24, line.hosts == 1 ? 0 : 4, 0, 0},
            line.dispatch, line.combine, 0, 0);
  // Likewise, low latency: 128 tokens, a row for each expert.
  for (const Line& line :
       {Line{1, 77, 114}, {2, 118, 195}, {4, 155, 273}, {8, 173, 314}, {16, 192, 369}, {32, 194, 360}})
    AddBoth(rows,
            {"DeepEP V1 low latency",
             kH800,
             line.hosts,
             256,
             128,
             Call::kDispatch,
             kFp8Row,
             Rows::kOfExpert,
             Rows::kOfExpert,
             {},
             0,
             0,
             0},
            0, 0, line.dispatch, line.combine);
  // NVIDIA/nccl 5067397, contrib/nccl_ep README: H100, bf16 both ways; dispatch sends a row for each rank.
  for (const Line& line : {Line{1, 224.3, 185.2}, {2, 76.7, 73.0}, {4, 53.6, 50.0}, {8, 48.8, 43.8}}) {
    Published row{"NCCL EP low latency", kH100,           line.hosts, 256, 128, Call::kDispatch, kBf16Row,
                  Rows::kOfRank,         Rows::kOfExpert, {},         0,   0,   line.dispatch};
    rows.push_back(row);
    row.call = Call::kCombine;
    row.sent = Rows::kOfExpert;
    row.gb_per_s = line.combine;
    rows.push_back(row);
  }
  // deepseek-ai/DeepEP hybrid-ep 94a9f8f, docs: 4,096 tokens, 8 experts a rank; kernels alone.
  struct Hybrid {
    Gpu gpu;
    int32_t hosts, blocks;
    double fp8, bf16, combine;
  };
  for (const Hybrid& line : {Hybrid{kH100, 2, 4, 34, 44, 52},
                             {kH100, 2, 8, 62, 77, 68},
                             {kH100, 8, 8, 47, 51, 51},
                             {kB200, 1, 16, 599, 735, 674},
                             {kGb200, 1, 32, 489, 632, 597}}) {
    Published row{"Hybrid-EP",
                  line.gpu,
                  line.hosts,
                  8 * line.hosts * line.gpu.joined,
                  4096,
                  Call::kDispatch,
                  kFp8Row,
                  Rows::kOfHost,
                  line.hosts > 1 ? Rows::kOfHost : Rows::kOfRank,
                  line.blocks,
                  0,
                  0,
                  line.fp8};
    rows.push_back(row);
    row.row_bytes = kBf16Row;
    row.gb_per_s = line.bf16;
    rows.push_back(row);
    row.call = Call::kCombine;
    row.gb_per_s = line.combine;
    rows.push_back(row);
  }
  return rows;
}

Status Main() {
  MarkdownTable table({"library", "GPU", "ranks:", "call", "row bytes:", "tokens:", "SMs:", "published us:",
                       "predicted us:", "predicted ÷ published:"});
  int32_t within = 0, all = 0;
  for (const Published& row : Table()) {
    XCCL_ASSIGN_OR_RETURN(const Topology topology, MachineOf(row));
    XCCL_ASSIGN_OR_RETURN(const Truth truth, Predict(row));
    const double ratio = truth.predicted_us / truth.published_us;
    within += ratio >= 0.7 && ratio <= 1.3;
    ++all;
    table.Row(row.library, row.gpu.name, topology.num_ranks(), dispatch::ToString(row.call), row.row_bytes,
              row.tokens, row.blocks ? fmt::format("{}", *row.blocks) : "",
              fmt::format("{:.0f}", truth.published_us), fmt::format("{:.0f}", truth.predicted_us),
              fmt::format("{:.2f}", ratio));
  }
  table.Print();
  fmt::print("\n{} of {} rows are within 30 %.\n", within, all);
  return OkStatus();
}

}  // namespace
}  // namespace xccl

int main() {
  const xccl::Status status = xccl::Main();
  if (!status.ok()) fmt::print(stderr, "{}\n", status.message());
  return xccl::ExitCode(status.code());
}
