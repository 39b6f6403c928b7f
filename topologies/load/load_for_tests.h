// Files and links for tests of TOPOLOGY arguments.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "topologies/topology.h"

namespace xccl {

// A cable is "0--1 50GB/s 500ns"; "0->1" if it has only one direction.
inline std::vector<std::string> Cables(const Topology& topology) {
  std::vector<std::string> cables;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    std::string name = topology.LinkName(LinkId(l));
    if (l + 1 < topology.num_links()) {
      const Link& next = topology.link(LinkId(l + 1));
      if (next.from == link.to && next.to == link.from) {
        name.replace(name.find("->"), 2, "--");
        ++l;
      }
    }
    cables.push_back(fmt::format("{} {} {}", name, FormatBandwidth(link.bandwidth_bytes_per_s),
                                 FormatDuration(link.latency_ps)));
  }
  return cables;
}

// A file that is there as long as this is.
class File {
 public:
  explicit File(std::string_view text)
      : path_(fmt::format("{}/load_test_file{}", testing::TempDir(), ++files_)) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  static inline int files_ = 0;
  std::string path_;
};

}  // namespace xccl
