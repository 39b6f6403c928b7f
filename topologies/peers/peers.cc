#include "topologies/peers/peers.h"

#include "base/strings.h"
#include "topologies/peers/astra_sim.h"
#include "topologies/peers/dot.h"
#include "topologies/peers/graphml.h"
#include "topologies/peers/json_formats.h"
#include "topologies/peers/simai.h"

namespace xccl {
namespace {

struct Format {
  bool (*is)(std::string_view text);
  StatusOr<Topology> (*read)(std::string_view text, std::string_view file, const LoadOptions& options);
};

// The first format that fits is taken.
constexpr Format kFormats[] = {
    {IsSimai, ReadSimai},       {IsTaccl, ReadTaccl},
    {IsTeccl, ReadTeccl},       {IsSccl, ReadSccl},
    {IsNodeLink, ReadNodeLink}, {IsGraphml, ReadGraphml},
    {IsDot, ReadDot},           {IsAstraSimNetwork, ReadAstraSimNetwork},
};

const Format* FormatOf(std::string_view text) {
  for (const Format& format : kFormats)
    if (format.is(text)) return &format;
  return nullptr;
}

}  // namespace

bool IsPeerTopology(std::string_view text) { return FormatOf(WithoutByteOrderMark(text)) != nullptr; }

StatusOr<Topology> ReadPeerTopology(std::string_view text, std::string_view file,
                                    const LoadOptions& options) {
  text = WithoutByteOrderMark(text);
  const Format* format = FormatOf(text);
  XCCL_CHECK(format != nullptr);
  return format->read(text, file, options);
}

}  // namespace xccl
