// The output of nvidia-smi: its matrix and, after a line "--", its table of GPUs.
#include "tests/fuzz/fuzz.h"
#include "topologies/nccl/nvidia_smi.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  constexpr std::string_view kBetween = "\n--\n";
  NvidiaSmiTexts texts;
  texts.name = "fuzz";
  const size_t between = text.find(kBetween);
  texts.matrix = text.substr(0, between);
  if (between != std::string_view::npos) texts.gpus = text.substr(between + kBetween.size());
  for (const bool known : {false, true}) {
    LoadOptions options;
    if (known) options.gpu_arch = "sm80";
    const StatusOr<Topology> topology = ReadNvidiaSmi(texts, options);
    if (!topology.ok()) CheckRefusal(topology.status());
    if (!topology.ok() || topology->num_nodes() + topology->num_links() > 20'000) continue;
    XCCL_CHECK(ReadNativeXml(WriteNativeXml(*topology), "written.xml").value() == *topology);
  }
  LoadOptions options;
  options.gpu_arch = "sm90";
  options.pcie_gen = 5;
  options.nic_rate = "400Gbit/s";
  const StatusOr<Topology> alone = ReadNvidiaSmiMatrix(text, "fuzz.txt", options);
  if (!alone.ok()) CheckRefusal(alone.status());
  IsNvidiaSmiMatrix(text);
}

}  // namespace xccl::testing
