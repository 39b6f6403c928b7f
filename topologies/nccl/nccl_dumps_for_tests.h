// Small dumps for tests, and what is read of them as text.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "topologies/load_options.h"
#include "topologies/nccl/nccl_xml.h"
#include "topologies/topology.h"

namespace xccl {

inline constexpr const char* kCpu =
    R"(<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">)";

inline std::string Gpu(int rank, std::string_view links = "") {
  return fmt::format(
      R"(<pci busid="0000:0{0}:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">)"
      R"(<gpu dev="{0}" sm="80" rank="{0}" gdr="1">{1}</gpu></pci>)",
      rank, links);
}

// A PCIe card, of an architecture without NVLink.
inline std::string Card(int rank) {
  std::string card = Gpu(rank);
  return card.replace(card.find("sm=\"80\""), 7, "sm=\"89\"");
}

inline std::string System(std::string_view inside) {
  return fmt::format("<system version=\"1\">{}{}</cpu></system>", kCpu, inside);
}

// One line per link, "0->1 20GB/s 600ns"; a duplex pair is shown once, as "0--1".
inline std::string Links(const Topology& t) {
  std::string text;
  for (int32_t l = 0; l < t.num_links(); ++l) {
    const Link& link = t.link(LinkId(l));
    std::string name = t.LinkName(LinkId(l));
    if (l + 1 < t.num_links()) {
      const Link& next = t.link(LinkId(l + 1));
      if (next.from == link.to && next.to == link.from &&
          next.bandwidth_bytes_per_s == link.bandwidth_bytes_per_s) {
        name.replace(name.find("->"), 2, "--");
        ++l;
      }
    }
    text += fmt::format("{} {} {}\n", name, FormatBandwidth(link.bandwidth_bytes_per_s),
                        FormatDuration(link.latency_ps));
  }
  return text;
}

inline std::string Read(std::string_view text, const LoadOptions& options = {}) {
  const StatusOr<Topology> t = ReadNcclXml(text, "dir/box.xml", options);
  if (!t.ok()) return t.status().message();
  std::string result = Links(*t);
  for (const std::string& warning : t->spec().warnings) result += "! " + warning + "\n";
  return result;
}

inline LoadOptions Arch(std::string arch) {
  LoadOptions options;
  options.gpu_arch = std::move(arch);
  return options;
}

inline LoadOptions BusIds(std::string busids) {
  LoadOptions options;
  options.gpu_busids = std::move(busids);
  return options;
}

}  // namespace xccl
