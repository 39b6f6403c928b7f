// Everything short that a command line takes: forms of topologies with changes of their links, sizes, times,
// bandwidths, lists of ranks, pairs, counts.
#include "base/units.h"
#include "ir/collective_args.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/load/load.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {
namespace {

template <typename T>
void CheckRead(const StatusOr<T>& value) {
  if (!value.ok()) CheckRefusal(value.status());
}

// Values are written so that they read back.
template <typename Parse, typename Format>
void CheckUnit(std::string_view text, Parse parse, Format format) {
  const StatusOr<int64_t> value = parse(text);
  CheckRead(value);
  if (value.ok()) XCCL_CHECK(parse(format(*value)).value() == *value);
}

// Topologies are a form and, after blanks, changes of its links.
void ReadShortTopology(std::string_view text) {
  const size_t blank = text.find(' ');
  const std::string_view form = text.substr(0, blank);
  if (form.find(':') == std::string_view::npos) return;
  LoadOptions options;
  while (text.find(' ') != std::string_view::npos) {
    text.remove_prefix(text.find(' ') + 1);
    const std::string change(text.substr(0, text.find(' ')));
    (change.find('=') == std::string::npos ? options.without_links : options.degrades).push_back(change);
  }
  const StatusOr<Topology> topology = LoadTopology(form, options);
  if (!topology.ok()) return CheckRefusal(topology.status());
  if (topology->num_nodes() + topology->num_links() > 20'000) return;
  XCCL_CHECK(ReadNativeXml(WriteNativeXml(*topology), "written.xml").value() == *topology);
}

}  // namespace

void FuzzOne(std::string_view text) {
  CheckUnit(text, ParseSize, FormatSize);
  CheckUnit(text, ParseDuration, FormatDuration);
  CheckUnit(text, ParseLatency, FormatDuration);
  CheckUnit(text, ParseBandwidth, FormatBandwidth);
  CheckRead(ParseSizeList(text));
  CheckRead(ParseBillionths(text));
  CheckRead(ParseGpuArch(text));
  for (const int32_t ranks : {1, 8, 1000}) {
    CheckRead(ParseRankList(text, ranks));
    CheckRead(ParsePairs(text, ranks));
  }
  for (const CollectiveKind kind : {CollectiveKind::kAlltoallv, CollectiveKind::kAllgather})
    CheckRead(ParseCounts(text, "counts.csv", kind, 3));
  ReadShortTopology(text);
}

}  // namespace xccl::testing
