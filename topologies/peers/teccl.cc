// The matrices are those of teccl/topologies/*.py, in GB/s and seconds; a chassis is a host. TE-CCL's program
// divides them by chunk_size, which is no property of the machine.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "topologies/families/networks.h"
#include "topologies/library/library.h"
#include "topologies/peers/json_formats.h"
#include "topologies/peers/numbers.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr int64_t kMostChassis = 1024, kMostSide = 256;
constexpr int64_t kGb = 1'000'000'000;
constexpr double kPsPerS = 1e12;

struct Params {
  int64_t chassis = 1, side_length = 4;
  int64_t link_alpha_ps = 0, switch_alpha_ps = 0;
};

class Machine {
 public:
  Machine(const Params& params, TopologySpec& spec) : params_(params), spec_(spec) {}

  void AddGpus(int64_t chassis, int64_t gpus) {
    gpus_ = gpus;
    for (int64_t c = 0; c < chassis; ++c) {
      spec_.hosts.push_back(Host{fmt::format("h{}", c)});
      for (int64_t g = 0; g < gpus; ++g) AddNode(NodeKind::kGpu, std::to_string(g), HostId(c), spec_);
    }
  }
  NodeId Gpu(int64_t chassis, int64_t gpu) const { return NodeId(chassis * gpus_ + gpu); }

  void AddDgx1() {
    spec_.gpu_arch = "sm70";
    AddGpus(1, kNdv2Gpus);
    AddCubeMesh(0, params_.link_alpha_ps);
    if (params_.chassis != 1) Ignored();
  }

  // One GPU sends to other chassis, another one receives.
  void AddNdv2() {
    constexpr int64_t kSender = 0, kReceiver = 1;
    constexpr LinkNumbers kRemote{12'500'000'000, 1'300'000};
    spec_.gpu_arch = "sm70";
    AddGpus(params_.chassis, kNdv2Gpus);
    for (int64_t c = 0; c < params_.chassis; ++c) AddCubeMesh(c, 700'000);
    if (params_.chassis == 2)
      for (const int64_t c : {0, 1}) AddLink(Gpu(c, kSender), Gpu(1 - c, kReceiver), kRemote, spec_);
    if (params_.chassis <= 2) return;
    const NodeId fabric = AddNode(NodeKind::kSwitch, "fabric", std::nullopt, spec_);
    for (int64_t c = 0; c < params_.chassis; ++c) {
      AddLink(Gpu(c, kSender), fabric, kRemote, spec_);
      AddLink(fabric, Gpu(c, kReceiver), kRemote, spec_);
    }
  }

  // Two chassis, whatever the file says. Odd GPUs send to the even ones before them.
  void AddDgx2() {
    constexpr int64_t kGpus = 16, kChassis = 2;
    spec_.gpu_arch = "sm70";
    AddGpus(kChassis, kGpus);
    for (int64_t c = 0; c < kChassis; ++c) {
      const NodeId nvswitch = AddNode(NodeKind::kSwitch, "nvswitch", HostId(c), spec_);
      for (int64_t g = 0; g < kGpus; ++g) AddCable(Gpu(c, g), nvswitch, {125 * kGb, 350'000}, spec_);
    }
    for (int64_t c = 0; c < kChassis; ++c)
      for (int64_t g = 1; g < kGpus; g += 2)
        AddLink(Gpu(c, g), Gpu(1 - c, g - 1), {12'500'000'000, 2'600'000}, spec_);
    if (params_.chassis != kChassis) Ignored();
  }

  // MI250X: the links of the library's machine. Several chassis have a switch for each two GPUs, below one.
  Status AddAmd() {
    const std::span<const LibraryFile> files = LibraryFiles();
    const auto file = std::ranges::find(files, "mi250x", &LibraryFile::name);
    XCCL_ASSIGN_OR_RETURN(const Topology one, ReadNativeXml(file->text, "mi250x.xml"));
    spec_.gpu_arch = one.gpu_arch();
    AddGpus(params_.chassis, one.num_ranks());
    for (int64_t c = 0; c < params_.chassis; ++c)
      for (Link link : one.spec().links) {
        link.from = Gpu(c, link.from.value);
        link.to = Gpu(c, link.to.value);
        link.latency_ps = params_.link_alpha_ps;
        spec_.links.push_back(link);
      }
    if (params_.chassis == 1) return OkStatus();
    const LinkNumbers remote{25 * kGb, params_.switch_alpha_ps};
    const NodeId fabric = AddNode(NodeKind::kSwitch, "fabric", std::nullopt, spec_);
    for (int64_t c = 0; c < params_.chassis; ++c)
      for (int64_t s = 0; s < gpus_ / 2; ++s) {
        const NodeId pair = AddNode(NodeKind::kSwitch, fmt::format("switch{}", s), HostId(c), spec_);
        for (const int64_t g : {2 * s, 2 * s + 1}) AddCable(Gpu(c, g), pair, remote, spec_);
        AddCable(pair, fabric, remote, spec_);
      }
    spec_.warnings.push_back(
        "AMD of several chassis: amd.py's indices of switches are one too low; read as its comments say");
    return OkStatus();
  }

  // A grid in which the last GPU of a row is also joined to the first of the next one, as in mesh.py.
  void AddMesh() {
    const int64_t side = params_.side_length, gpus = side * side;
    AddGpus(1, gpus);
    const LinkNumbers numbers{100 * kGb, params_.link_alpha_ps};
    for (int64_t g = 0; g < gpus; ++g) {
      if (g + 1 < gpus) AddCable(Gpu(0, g), Gpu(0, g + 1), numbers, spec_);
      if (g + side < gpus && side > 1) AddCable(Gpu(0, g), Gpu(0, g + side), numbers, spec_);
    }
    spec_.warnings.push_back(
        "Mesh: as in mesh.py, a cable joins the end of each row to the start of the next one");
    if (params_.chassis != 1) Ignored();
  }

 private:
  void AddCubeMesh(int64_t chassis, int64_t alpha_ps) {
    for (int64_t a = 0; a < kNdv2Gpus; ++a)
      for (int64_t b = a + 1; b < kNdv2Gpus; ++b)
        if (kNdv2[a][b] != 0)
          AddCable(Gpu(chassis, a), Gpu(chassis, b), {(kNdv2[a][b] == 1 ? 50 : 25) * kGb, alpha_ps}, spec_);
  }
  void Ignored() {
    spec_.warnings.push_back(fmt::format("chassis {} has no effect; TE-CCL's {} has {}", params_.chassis,
                                         spec_.name, spec_.hosts.size()));
  }

  const Params& params_;
  TopologySpec& spec_;
  int64_t gpus_ = 0;
};

StatusOr<Params> ReadParams(const JsonValue& object) {
  Params params;
  const auto read = [&](std::string_view key, int64_t most, int64_t& value) -> Status {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> given, object.Find(key));
    if (!given) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(value, given->Integer(1, most));
    return OkStatus();
  };
  XCCL_RETURN_IF_ERROR(read("chassis", kMostChassis, params.chassis));
  XCCL_RETURN_IF_ERROR(read("side_length", kMostSide, params.side_length));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> alpha, object.Find("alpha"));
  if (!alpha) return params;
  XCCL_ASSIGN_OR_RETURN(const std::vector<double> times, NumbersOf(*alpha, 2));
  for (size_t i = 0; i < times.size(); ++i) {
    const StatusOr<int64_t> time = TimeOf(times[i], kPsPerS);
    if (!time.ok()) return alpha->Error(time.status().message());
    (i == 0 ? params.link_alpha_ps : params.switch_alpha_ps) = *time;
  }
  return params;
}

}  // namespace

bool IsTeccl(std::string_view text) { return HasJsonKey(text, "TopologyParams"); }

StatusOr<Topology> ReadTeccl(std::string_view text, std::string_view file, const LoadOptions&) {
  constexpr std::string_view kNames[] = {"AMD", "DGX1", "DGX2", "Mesh", "NDv2"};
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, std::string(file)));
  XCCL_ASSIGN_OR_RETURN(const JsonValue object, document.root().Get("TopologyParams"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, object.GetString("name"));
  XCCL_ASSIGN_OR_RETURN(const Params params, ReadParams(object));
  TopologySpec spec;
  spec.name = std::string(name);
  spec.source = fmt::format("TE-CCL's topology {} (teccl/topologies)", name);
  Machine machine(params, spec);
  if (name == "AMD") {
    XCCL_RETURN_IF_ERROR(machine.AddAmd());
  } else if (name == "DGX1") {
    machine.AddDgx1();
  } else if (name == "DGX2") {
    machine.AddDgx2();
  } else if (name == "Mesh") {
    machine.AddMesh();
  } else if (name == "NDv2") {
    machine.AddNdv2();
  } else {
    return object.Error(
        fmt::format("no topology {}, whose matrix is not in the file; TE-CCL has {}{}", Shortened(name),
                    Join(std::vector<std::string>(std::begin(kNames), std::end(kNames)), ", "),
                    DidYouMean(name, kNames)));
  }
  for (std::string& warning : spec.warnings) warning = fmt::format("{}: {}", file, warning);
  StatusOr<Topology> made = Topology::Create(std::move(spec));
  return made.ok() ? std::move(made) : Annotate(made.status(), file);
}

}  // namespace xccl
