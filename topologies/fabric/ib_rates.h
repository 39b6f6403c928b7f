// Data rates of InfiniBand links, each direction. They are what is left of the signalling rate after the line
// code: 8b/10b up to QDR, 64b/66b from FDR10 on, and 256b/257b with RS(544,514) from HDR on. A link of 4
// lanes carries 8 Gbit/s at SDR, 32 at QDR, 54.5 at FDR, 100 at EDR, 200 at HDR, 400 at NDR and 800 at XDR,
// which are the effective rates of the roadmap of the InfiniBand Trade Association. Lane codes and signalling
// rates: rdma-core, infiniband-diags/ibnetdiscover.c and libibmad/dump.c.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xccl {

enum class IbSpeed : uint8_t { kUnknown, kSdr, kDdr, kQdr, kFdr10, kFdr, kEdr, kHdr, kNdr, kXdr };

struct IbRate {
  int32_t lanes = 0;  // 0: unknown
  IbSpeed speed = IbSpeed::kUnknown;
  bool operator==(const IbRate&) const = default;
};

// 0 where lanes or speed are unknown.
int64_t IbBytesPerS(IbRate rate);

// "NDR"; kUnknown for any other text, such as "???".
IbSpeed IbSpeedOfName(std::string_view name);
// The speed of the signalling rate of a lane, "106.25", in Gbit/s; kUnknown for one that no speed has. FDR10
// and QDR share a rounded rate: a text of FDR10 says so itself.
IbSpeed IbSpeedOfLaneGbps(std::string_view gbps);
// "4x", "4X" as 4; 0 for any other text.
int32_t IbLanes(std::string_view width);
std::string ToString(IbRate rate);  // "4xNDR"

}  // namespace xccl
