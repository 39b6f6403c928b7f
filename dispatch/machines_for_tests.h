// Small machines of several kinds, for tests.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "dispatch/make_plan.h"
#include "topologies/topology.h"
#include "topologies/xml/native_xml.h"

namespace xccl::dispatch {

struct TestMachine {
  std::string name, xml;
};

// Names the tests of a machine, in whose names no '-' may stand.
inline std::string TestName(const ::testing::TestParamInfo<TestMachine>& of) {
  std::string name = of.param.name;
  std::erase(name, '-');
  return name;
}

// `gpus` GPUs on one switch, `nics` NICs with as many GPUs each.
inline std::string NvlinkHost(int gpus, int nics) {
  std::string xml = fmt::format(
      "<nvswitch gpus='{}' bandwidth='450GB/s' latency='500ns'/><nic id='nic' count='{}'/>", gpus, nics);
  for (int nic = 0; nic < nics; ++nic)
    xml += fmt::format("<link from='gpu:{}..{}' to='nic{}' bandwidth='50GB/s' latency='0ns'/>",
                       nic * gpus / nics, (nic + 1) * gpus / nics - 1, nic);
  return xml;
}

inline std::vector<TestMachine> TestMachines() {
  const std::string rails = "<fabric type='rails' bandwidth='50GB/s' latency='1us'/>";
  const std::string one = "<fabric bandwidth='50GB/s' latency='1us'/>";
  const auto cluster = [](int hosts, const std::string& inside) {
    return fmt::format("<topology name='m'><cluster hosts='{}'>{}</cluster></topology>", hosts, inside);
  };
  return {
      {"rails", cluster(3, NvlinkHost(4, 4) + rails)},
      {"shared-nic", cluster(3, NvlinkHost(4, 2) + one)},
      {"one-nic", cluster(2, NvlinkHost(2, 1) + one)},
      {"pcie",
       cluster(2,
               "<gpu count='4'/><switch id='pcie' count='2'/><nic id='nic' count='2'/><cpu count='1'/>"
               "<link from='gpu:0..1' to='pcie0' bandwidth='63GB/s' latency='300ns'/>"
               "<link from='gpu:2..3' to='pcie1' bandwidth='63GB/s' latency='300ns'/>"
               "<link from='nic:*' to='pcie*' pairwise='true' bandwidth='50GB/s' latency='300ns'/>"
               "<link from='pcie*' to='cpu0' bandwidth='63GB/s' latency='300ns'/>" +
                   one)},
      // No switch between the hosts: rows from the first to the third pass the second or the fourth.
      {"ring-of-hosts",
       "<topology name='m'>"
       "<host name='a'><gpu count='2'/><nic id='nic' count='2'/><link from='0' to='1' bandwidth='100GB/s' "
       "latency='500ns'/><link from='gpu:*' to='nic:*' pairwise='true' bandwidth='50GB/s' "
       "latency='0ns'/></host>"
       "<host name='b'><gpu count='2'/><nic id='nic' count='2'/><link from='0' to='1' bandwidth='100GB/s' "
       "latency='500ns'/><link from='gpu:*' to='nic:*' pairwise='true' bandwidth='50GB/s' "
       "latency='0ns'/></host>"
       "<host name='c'><gpu count='2'/><nic id='nic' count='2'/><link from='0' to='1' bandwidth='100GB/s' "
       "latency='500ns'/><link from='gpu:*' to='nic:*' pairwise='true' bandwidth='50GB/s' "
       "latency='0ns'/></host>"
       "<host name='d'><gpu count='2'/><nic id='nic' count='2'/><link from='0' to='1' bandwidth='100GB/s' "
       "latency='500ns'/><link from='gpu:*' to='nic:*' pairwise='true' bandwidth='50GB/s' "
       "latency='0ns'/></host>"
       "<link from='a/nic1' to='b/nic0' bandwidth='50GB/s' latency='1us'/>"
       "<link from='b/nic1' to='c/nic0' bandwidth='50GB/s' latency='1us'/>"
       "<link from='c/nic1' to='d/nic0' bandwidth='50GB/s' latency='1us'/>"
       "<link from='d/nic1' to='a/nic0' bandwidth='50GB/s' latency='1us'/></topology>"},
      {"torus", "<topology name='m'><torus dims='2x3' bandwidth='50GB/s' latency='500ns'/></topology>"},
      {"ring", "<topology name='m'><ring ranks='6' bandwidth='50GB/s' latency='500ns'/></topology>"},
      {"one-host", "<topology name='m'><full-mesh ranks='4' bandwidth='64GB/s' latency='700ns'/></topology>"},
  };
}

inline Topology Read(const TestMachine& machine) {
  StatusOr<Topology> topology = ReadNativeXml(machine.xml, machine.name);
  if (!topology.ok()) ReadWithoutValue(topology.status());
  return *std::move(topology);
}

inline PlanRequest RequestOf(const Topology& topology, int32_t tokens, int32_t top_k = 2) {
  PlanRequest request;
  request.sizes = {.ranks = topology.num_ranks(),
                   .experts = 2 * topology.num_ranks(),
                   .top_k = top_k,
                   .max_tokens = tokens,
                   .row_bytes = 64};
  return request;
}

}  // namespace xccl::dispatch
