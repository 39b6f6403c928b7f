#include <nlohmann/json.hpp>

#include "cli/describe/describe.h"

namespace xccl {

std::string DescribeJson(const Topology& topology) {
  const nlohmann::ordered_json json = {
      {"name", topology.name()},       {"ranks", topology.num_ranks()},
      {"hosts", topology.num_hosts()}, {"nodes", topology.num_nodes()},
      {"links", topology.num_links()}, {"warnings", topology.spec().warnings},
  };
  // A name may hold bytes that are not UTF-8: they are replaced.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace xccl
