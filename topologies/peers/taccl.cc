// A profile has times of classes of links. Their wiring is in TACCL's program, which picks it by the name
// that its user gives on the command line (HubAndSpoke, DGX2, NDv2, custom); files are named after it.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/peers/json_formats.h"
#include "topologies/peers/numbers.h"

namespace xccl {
namespace {

constexpr int64_t kMostGpus = 1024;
constexpr double kBytesPerMb = 1e6, kPsPerUsOfProfile = 1e6;
// A path from NIC to NIC of another host, over the two links that --hosts makes.
constexpr int64_t kFabricPathPs = 2'600'000;

// The size in MB at the end of a name, such as 0.032 of "NDv2_32KB"; absent: none.
std::optional<double> SizeInName(std::string_view name) {
  const size_t digits = name.find_last_not_of("KMGB");
  if (digits == std::string_view::npos || std::isdigit(static_cast<unsigned char>(name[digits])) == 0)
    return std::nullopt;
  const size_t begin = name.substr(0, digits + 1).find_last_not_of("0123456789") + 1;
  const StatusOr<int64_t> number = ParseInteger(name.substr(begin, digits + 1 - begin), 1, 1'000'000);
  const std::string_view unit = name.substr(digits + 1);
  if (!number.ok()) return std::nullopt;
  for (const auto& [text, mb] : {std::pair("KB", 1e-3), std::pair("MB", 1.0), std::pair("GB", 1e3)})
    if (unit == text) return static_cast<double>(*number) * mb;
  return std::nullopt;
}

bool HasWithoutCase(std::string_view text, std::string_view part) {
  // clang 14 cannot read std::ranges::search.
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }) !=
         text.end();
}

class TacclReader {
 public:
  TacclReader(const JsonValue& root, std::string_view file) : root_(root), file_(file) {}

  StatusOr<Topology> Read(const LoadOptions& options) {
    XCCL_ASSIGN_OR_RETURN(flag_, ReadLinkFlag(options));
    XCCL_ASSIGN_OR_RETURN(const std::string_view name, root_.GetString("name"));
    XCCL_ASSIGN_OR_RETURN(gpus_, root_.GetInteger("gpus_per_node", 1, kMostGpus));
    XCCL_ASSIGN_OR_RETURN(alpha_, Number("alpha"));
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> links, root_.Find("links"));
    if (!links) {
      XCCL_ASSIGN_OR_RETURN(const JsonValue betas, root_.Get("node_betas_list"));
      XCCL_ASSIGN_OR_RETURN(betas_, NumbersOf(betas, kMostGpus));
      if (betas_.empty()) return betas.Error("no number; expected the beta of each class of links");
    }
    spec_.name = Cleaned(name);
    spec_.source = "TACCL profile; bandwidths are 1 / beta, which it measured; wiring as in TACCL's program";
    spec_.hosts = {Host{"h0"}};
    for (int64_t g = 0; g < gpus_; ++g) AddNode(NodeKind::kGpu, std::to_string(g), HostId(0), spec_);
    if (links) {
      XCCL_RETURN_IF_ERROR(AddMatrix(*links, name));
    } else {
      XCCL_RETURN_IF_ERROR(FindUnits(name, *std::ranges::min_element(betas_)));
      XCCL_RETURN_IF_ERROR(AddNamed(name));
    }
    if (options.hosts) XCCL_RETURN_IF_ERROR(AddNics());
    StatusOr<Topology> made = Topology::Create(std::move(spec_));
    return made.ok() ? std::move(made) : Annotate(made.status(), file_);
  }

 private:
  StatusOr<double> Number(std::string_view key) const {
    XCCL_ASSIGN_OR_RETURN(const JsonValue value, root_.Get(key));
    return value.Number();
  }

  // INPUT_GUIDE.md: betas are us/MB times the size that a schedule is made for, and all times may have one
  // more factor. The size is in the name; the factor is in no file, so the bandwidth of the fastest links is
  // asked for, unless the size is 1 MB, where published profiles have neither.
  Status FindUnits(std::string_view name, double least_beta) {
    const std::optional<double> size = SizeInName(name);
    if (!(least_beta > 0)) return root_.Error("a beta of 0 or less; expected more");
    if (flag_.bandwidth_bytes_per_s) {
      const double true_beta =
          kBytesPerMb / static_cast<double>(*flag_.bandwidth_bytes_per_s) * 1e6;  // us/MB
      beta_scale_ = least_beta / true_beta;
      alpha_scale_ = beta_scale_ / size.value_or(1);
      return OkStatus();
    }
    if (size && *size != 1)
      return root_.Error(
          fmt::format("a profile of another size than 1MB ({}), whose times have a factor that "
                      "the file does not state; expected the bandwidth of its fastest links; "
                      "hint: --link bandwidth=45GB/s",
                      Cleaned(name, 40)));
    if (!size) spec_.warnings.push_back(fmt::format("{}: betas are read as us/MB and alphas as us", file_));
    return OkStatus();
  }

  StatusOr<LinkNumbers> Numbers(double alpha, double beta) const {
    LinkNumbers numbers;
    if (!(beta > 0)) return root_.Error("a beta of 0 or less; expected more");
    const StatusOr<int64_t> rate = RateOf(beta_scale_ / beta, kBytesPerMb * 1e6);
    if (!rate.ok()) return root_.Error(rate.status().message());
    const StatusOr<int64_t> time = TimeOf(alpha / alpha_scale_, kPsPerUsOfProfile);
    if (!time.ok()) return root_.Error(time.status().message());
    numbers.bandwidth_bytes_per_s = *rate;
    numbers.latency_ps = *time;
    return numbers;
  }

  // The profile of a user's own machine: links[dst][src] parallel links of betas[dst][src].
  Status AddMatrix(const JsonValue& links, std::string_view name) {
    const auto n = static_cast<size_t>(gpus_);
    XCCL_ASSIGN_OR_RETURN(const auto counts, MatrixOf(links, n));
    XCCL_ASSIGN_OR_RETURN(const JsonValue betas_value, root_.Get("betas"));
    XCCL_ASSIGN_OR_RETURN(const auto betas, MatrixOf(betas_value, n));
    double least = 0;
    for (size_t to = 0; to < n; ++to)
      for (size_t from = 0; from < n; ++from)
        if (counts[to][from] > 0 && (least == 0 || betas[to][from] < least)) least = betas[to][from];
    if (least != 0) XCCL_RETURN_IF_ERROR(FindUnits(name, least));
    for (size_t to = 0; to < n; ++to)
      for (size_t from = 0; from < n; ++from) {
        if (counts[to][from] == 0) continue;
        if (to == from) return links.Error(fmt::format("a link from {} to itself; expected another end", to));
        XCCL_ASSIGN_OR_RETURN(const LinkNumbers numbers, Numbers(alpha_, betas[to][from]));
        if (!(counts[to][from] >= 1 && counts[to][from] <= 64))
          return links.Error(
              fmt::format("{} links from {} to {}; expected 0 to 64", counts[to][from], from, to));
        for (int i = 0; i < static_cast<int>(counts[to][from]); ++i)
          AddLink(NodeId(static_cast<int64_t>(from)), NodeId(static_cast<int64_t>(to)), numbers, spec_);
      }
    return OkStatus();
  }

  Status AddNamed(std::string_view name) {
    const bool ndv2 = HasWithoutCase(name, "ndv2"), dgx2 = HasWithoutCase(name, "dgx2");
    if (ndv2 || dgx2) spec_.gpu_arch = "sm70";
    if (ndv2) {
      if (gpus_ != kNdv2Gpus || betas_.size() != 2)
        return root_.Error(
            fmt::format("NDv2 has {} GPUs and 2 betas; this has {} and {}", kNdv2Gpus, gpus_, betas_.size()));
      for (int a = 0; a < kNdv2Gpus; ++a)
        for (int b = a + 1; b < kNdv2Gpus; ++b)
          if (kNdv2[a][b] != 0) {
            XCCL_ASSIGN_OR_RETURN(const LinkNumbers numbers,
                                  Numbers(alpha_, betas_[static_cast<size_t>(kNdv2[a][b] - 1)]));
            AddCable(NodeId(a), NodeId(b), numbers, spec_);
          }
      return OkStatus();
    }
    if (betas_.size() != 1)
      return root_.Error(fmt::format("{} has {} betas and no `links`; expected NDv2, DGX2, or one beta",
                                     Cleaned(name, 40), betas_.size()));
    if (!dgx2)
      spec_.warnings.push_back(fmt::format(
          "{}: the wiring of {} is not in the file; one switch joins its GPUs, as in TACCL's HubAndSpoke",
          file_, Cleaned(name, 40)));
    // A path passes two links, with half of alpha each.
    XCCL_ASSIGN_OR_RETURN(const LinkNumbers numbers, Numbers(alpha_ / 2, betas_[0]));
    const NodeId hub = AddNode(NodeKind::kSwitch, "nvswitch", HostId(0), spec_);
    for (int64_t g = 0; g < gpus_; ++g) AddCable(NodeId(g), hub, numbers, spec_);
    return OkStatus();
  }

  // NICs in turn to equally many neighbouring GPUs each. One host alone has none: its GPUs would reach each
  // other through them.
  Status AddNics() {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> nics_value, root_.Find("nics_per_node"));
    if (!nics_value) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const int64_t nics, nics_value->Integer(-1, kMostGpus));
    if (nics <= 0) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const double alpha, Number("remote_alpha"));
    XCCL_ASSIGN_OR_RETURN(const double beta, Number("remote_beta"));
    XCCL_ASSIGN_OR_RETURN(LinkNumbers numbers, Numbers(alpha / 2, beta));
    const StatusOr<int64_t> path = TimeOf(alpha / alpha_scale_, kPsPerUsOfProfile);
    if (!path.ok()) return root_.Error(path.status().message());
    // Unless both are alike but for rounding: times of a profile have three digits.
    if (std::abs(*path - kFabricPathPs) > kFabricPathPs / 20)
      spec_.warnings.push_back(fmt::format(
          "{}: remote_alpha is {}, but --hosts gives a path between hosts {}; hint: --fabric latency={}",
          file_, FormatDurationShort(*path), FormatDurationShort(kFabricPathPs),
          FormatDurationShort(*path / 2)));
    spec_.warnings.push_back(
        fmt::format("{}: how the NICs are joined to GPUs is not in the file; each has {} neighbouring {}",
                    file_, std::max<int64_t>(gpus_ / nics, 1), gpus_ / nics > 1 ? "GPUs" : "GPU"));
    numbers.latency_ps = 0;
    for (int64_t i = 0; i < nics; ++i) {
      const NodeId nic = AddNode(NodeKind::kNic, fmt::format("nic{}", i), HostId(0), spec_);
      for (int64_t g = 0; g < gpus_; ++g)
        if (gpus_ >= nics ? g * nics / gpus_ == i : i * gpus_ / nics == g)
          AddCable(NodeId(g), nic, numbers, spec_);
    }
    return OkStatus();
  }

  const JsonValue& root_;
  std::string_view file_;
  LinkFlag flag_;
  int64_t gpus_ = 0;
  double alpha_ = 0;
  std::vector<double> betas_;
  double beta_scale_ = 1, alpha_scale_ = 1;  // the file's numbers ÷ us/MB, and us
  TopologySpec spec_;
};

}  // namespace

bool IsTaccl(std::string_view text) {
  return HasJsonKey(text, "gpus_per_node") && HasJsonKey(text, "alpha") &&
         (HasJsonKey(text, "node_betas_list") || HasJsonKey(text, "betas"));
}

StatusOr<Topology> ReadTaccl(std::string_view text, std::string_view file, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, std::string(file)));
  return TacclReader(document.root(), file).Read(options);
}

}  // namespace xccl
