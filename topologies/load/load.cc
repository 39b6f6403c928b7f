#include "topologies/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/strings.h"
#include "topologies/fabric/formats.h"
#include "topologies/fabric/job.h"
#include "topologies/fabric/match_nics.h"
#include "topologies/families/families.h"
#include "topologies/families/modify.h"
#include "topologies/families/short_forms.h"
#include "topologies/host_facts.h"
#include "topologies/library/library.h"
#include "topologies/load/load_fabric.h"
#include "topologies/nccl/nccl_xml.h"
#include "topologies/nccl/nvidia_smi.h"
#include "topologies/peers/peers.h"
#include "topologies/xml/native_xml.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

Status UnknownTopology(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view family = text.substr(0, colon);
    const std::string nearest = NearestName(family, FamilyNames());
    if (!nearest.empty())
      return InvalidInput(fmt::format("'{}': no short form '{}'; did you mean '{}{}'?", text, family, nearest,
                                      text.substr(colon)));
    return InvalidInput(fmt::format("'{}': no such file, and no short form '{}'; short forms are {}", text,
                                    family, fmt::join(ShortForms(), ", ")));
  }
  if (const auto [form, example] = ShortFormOf(text); !form.empty())
    return InvalidInput(
        fmt::format("'{}': a short form without its numbers; expected {}, such as {}", text, form, example));
  const std::vector<std::string> library = LibraryNames();
  const std::vector<std::string_view> names(library.begin(), library.end());
  std::string hint = DidYouMean(text, names);
  const std::string family = NearestName(text, FamilyNames());
  if (hint.empty() && !family.empty())
    hint =
        fmt::format("; did you mean {}, such as {}?", ShortFormOf(family).first, ShortFormOf(family).second);
  if (hint.empty())
    hint = fmt::format("; short forms are {}; library machines are {}", fmt::join(ShortForms(), ", "),
                       fmt::join(names, ", "));
  return InvalidInput(fmt::format("'{}': no such file, short form or library machine{}", text, hint));
}

// The kind of text that a topology was read from: XCCL's own (kMachine), a dump of NCCL, the matrix of
// nvidia-smi, what describes a fabric, or another tool's topology file.
enum class Form : uint8_t { kMachine, kDump, kMatrix, kFabric, kPeer };

// The texts that a flag is for.
std::string_view Texts(Form form) {
  switch (form) {
    case Form::kMachine:
      return "machines";
    case Form::kDump:
      return "dumps of NCCL and RCCL";
    case Form::kMatrix:
      return "the matrix of nvidia-smi topo -m";
    case Form::kFabric:
      return "files that describe a fabric";
    case Form::kPeer:
      return "topology files of other tools";
  }
  return "";
}

struct Loaded {
  Topology topology;
  Form form = Form::kMachine;
};

StatusOr<Loaded> LoadUnmodified(std::string_view topology, const LoadOptions& options, HostFacts& facts);
StatusOr<Topology> WithFlagsOfTexts(Loaded loaded, const LoadOptions& options);

// The flags that a dump or a matrix needs of itself.
LoadOptions OptionsOfHost(const LoadOptions& options) {
  LoadOptions of_host;
  of_host.gpu_arch = options.gpu_arch;
  of_host.gpus_per_switch = options.gpus_per_switch;
  of_host.gpu_busids = options.gpu_busids;
  of_host.pcie_gen = options.pcie_gen;
  of_host.nic_rate = options.nic_rate;
  return of_host;
}

// A machine at the ends of a fabric.
StatusOr<HostKind> LoadKind(const std::string& name, const LoadOptions& options) {
  HostFacts facts;
  XCCL_ASSIGN_OR_RETURN(Loaded loaded, LoadUnmodified(name, OptionsOfHost(options), facts));
  if (loaded.form == Form::kFabric)
    return InvalidInput(fmt::format("{}: this is a fabric; expected a machine of one host", name));
  LoadOptions arch;
  if (loaded.form == Form::kMachine) arch.gpu_arch = options.gpu_arch;
  XCCL_ASSIGN_OR_RETURN(Topology topology, WithFlagsOfTexts(std::move(loaded), arch));
  return HostKind{name, std::move(topology), std::move(facts)};
}

StatusOr<Loaded> LoadFabricOf(std::span<const FabricFile> files, std::string_view place,
                              const LoadOptions& options) {
  StatusOr<Topology> made =
      LoadFabric(files, place, options, [&](const std::string& name) { return LoadKind(name, options); });
  if (!made.ok()) return made.status();
  return Loaded{*std::move(made), Form::kFabric};
}

// The files in a folder, less those whose names begin with a dot, in the order of their names.
StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  constexpr size_t kMost = 100'000;
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().string().starts_with('.')) files.push_back(at->path().string());
    if (files.size() > kMost) break;
  }
  if (error) return InvalidInput(fmt::format("{}: cannot read: {}", folder, error.message()));
  if (files.empty() || files.size() > kMost)
    return InvalidInput(fmt::format("{}: a folder of {} files; expected 1 to {}, of one fabric", folder,
                                    files.empty() ? "no" : "more", kMost));
  std::ranges::sort(files);
  return files;
}

// The fabric that several files describe together.
StatusOr<Loaded> LoadFabricFiles(std::span<const std::string> paths, std::string_view place,
                                 const LoadOptions& options) {
  std::vector<FabricFile> files;
  for (const std::string& path : paths) {
    XCCL_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
    files.push_back({path, std::move(text)});
  }
  return LoadFabricOf(files, place, options);
}

StatusOr<Loaded> LoadUnmodified(std::string_view topology, const LoadOptions& options, HostFacts& facts) {
  const auto loaded = [](StatusOr<Topology> made, Form form) -> StatusOr<Loaded> {
    if (!made.ok()) return made.status();
    return Loaded{*std::move(made), form};
  };
  if (IsShortForm(topology)) return loaded(ReadShortForm(topology), Form::kMachine);
  for (const LibraryFile& file : LibraryFiles())
    if (file.name == topology)
      return loaded(ReadNativeXml(file.text, fmt::format("{}.xml", file.name)), Form::kMachine);
  const std::string path(topology);
  const bool is_path = path.find('/') != std::string::npos || path.ends_with(".xml");
  if (!is_path && !PathExists(path)) return UnknownTopology(topology);
  XCCL_RETURN_IF_ERROR(CheckNoBook(path, FileKind::kTopology));
  if (IsDirectory(path)) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(path));
    StatusOr<Loaded> fabric = LoadFabricFiles(files, path.substr(0, path.find_last_not_of('/') + 1), options);
    if (!fabric.ok()) return Annotate(fabric.status(), path + ": a folder, read as the files of one fabric");
    return fabric;
  }
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  if (IsNcclXml(text)) return loaded(ReadNcclXml(text, path, options, &facts), Form::kDump);
  if (RootName(text) != "topology" && IsNvidiaSmiMatrix(text))
    return loaded(ReadNvidiaSmiMatrix(text, path, options), Form::kMatrix);
  if (IsFabric(text)) {
    const FabricFile file{path, text};
    return LoadFabricOf({&file, 1}, path, options);
  }
  if (RootName(text) != "topology" && IsPeerTopology(text))
    return loaded(ReadPeerTopology(text, path, options), Form::kPeer);
  XCCL_RETURN_IF_ERROR(CheckKind(text, path, FileKind::kTopology));
  return loaded(ReadNativeXml(text, path), Form::kMachine);
}

// Sets the architecture of a machine that does not state it, and warns of flags for other texts than this
// one.
StatusOr<Topology> WithFlagsOfTexts(Loaded loaded, const LoadOptions& options) {
  const std::string& name = loaded.topology.name();
  std::string arch = loaded.topology.gpu_arch();
  std::vector<std::string> warnings;
  const bool fabric = loaded.form == Form::kFabric;
  const auto idle = [&](std::string_view flag, bool given, Form form) {
    // At the ends of a fabric may be any form; a file of hosts may name dumps, too.
    const bool kinds = !options.host_kinds.empty() || options.hosts_file;
    if (!given || form == loaded.form || (fabric && (form == Form::kMatrix || kinds))) return;
    warnings.push_back(fmt::format("{}: {} has no effect; it is for {}", name, flag, Texts(form)));
  };
  idle("--gpus-per-switch", options.gpus_per_switch.has_value(), Form::kDump);
  idle("--gpu-busids", options.gpu_busids.has_value(), Form::kDump);
  idle("--pcie-gen", options.pcie_gen.has_value(), Form::kMatrix);
  idle("--nic-rate", options.nic_rate.has_value(), Form::kMatrix);
  idle("--host", !options.host_kinds.empty(), Form::kFabric);
  idle("--hosts-file", options.hosts_file.has_value(), Form::kFabric);
  idle("--link", options.link.has_value(), Form::kPeer);
  if (options.gpu_arch && (loaded.form == Form::kMachine || loaded.form == Form::kPeer || fabric)) {
    if (const Status known = CheckGpuArch(*options.gpu_arch); !known.ok())
      return UsageError(fmt::format("--gpu-arch: {}", known.message()));
    if (!fabric && !arch.empty() && arch != *options.gpu_arch)
      warnings.push_back(
          fmt::format("{}: its GPUs are {}; --gpu-arch={} has no effect", name, arch, *options.gpu_arch));
    if (arch.empty()) arch = *options.gpu_arch;
  }
  if (warnings.empty() && arch == loaded.topology.gpu_arch()) return std::move(loaded.topology);
  TopologySpec spec = loaded.topology.spec();
  spec.warnings.insert(spec.warnings.end(), warnings.begin(), warnings.end());
  spec.gpu_arch = arch;
  return Topology::Create(std::move(spec));
}

StatusOr<Topology> Finish(Loaded loaded, LoadOptions options, const HostFacts& facts) {
  const bool fabric = loaded.form == Form::kFabric;
  XCCL_ASSIGN_OR_RETURN(Topology flagged, WithFlagsOfTexts(std::move(loaded), options));
  if (fabric) options.nvlink_domain.reset();  // it was read with the hosts
  XCCL_ASSIGN_OR_RETURN(Topology modified, Modify(std::move(flagged), options, facts));
  if (options.job && !fabric) return TakeJob(modified, *options.job);
  return modified;
}

}  // namespace

StatusOr<Topology> LoadTopology(std::string_view topology, const LoadOptions& options) {
  HostFacts facts;
  XCCL_ASSIGN_OR_RETURN(Loaded loaded, LoadUnmodified(topology, options, facts));
  return Finish(std::move(loaded), options, facts);
}

StatusOr<Topology> LoadTopology(std::span<const std::string> files, const LoadOptions& options) {
  if (files.size() == 1) return LoadTopology(files.front(), options);
  XCCL_ASSIGN_OR_RETURN(Loaded loaded, LoadFabricFiles(files, files.front(), options));
  return Finish(std::move(loaded), options, {});
}

std::vector<std::string> LibraryNames() {
  std::vector<std::string> names;
  for (const LibraryFile& file : LibraryFiles()) names.emplace_back(file.name);
  return names;
}

std::vector<std::string> LibraryNamesUpTo(int64_t most_nodes) {
  std::vector<std::string> names;
  for (const LibraryFile& file : LibraryFiles())
    if (ReadNativeXml(file.text, file.name, {most_nodes, kMaxLinks}).ok()) names.emplace_back(file.name);
  return names;
}

}  // namespace xccl
