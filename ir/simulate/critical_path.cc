#include "ir/simulate/critical_path.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace xccl {
namespace {

bool SamePlace(const PathPiece& a, const PathPiece& b) {
  return a.kind == b.kind && a.link == b.link && a.message == b.message && a.block == b.block;
}

bool Stretches(const PathPiece& piece, Elastic elastic) {
  switch (elastic) {
    case Elastic::kTransfers:
      return piece.kind == PathKind::kTransfer;
    case Elastic::kAllButLaunch:
      return piece.kind != PathKind::kLaunch;
  }
  return false;
}

// Stretches the elastic pieces, or all pieces if need be, so that the last piece ends at time_ps.
void Stretch(std::vector<PathPiece>& pieces, int64_t time_ps, Elastic elastic) {
  __int128 total = 0, stretch = 0;
  for (const PathPiece& piece : pieces) {
    total += piece.ps();
    stretch += Stretches(piece, elastic) ? piece.ps() : 0;
  }
  const bool all = stretch == 0 || total - stretch > time_ps;
  const __int128 fixed = all ? 0 : total - stretch, from = all ? total : stretch;
  __int128 fixed_before = 0, stretch_before = 0;
  int64_t at = 0;
  for (PathPiece& piece : pieces) {
    (all || Stretches(piece, elastic) ? stretch_before : fixed_before) += piece.ps();
    piece.start_ps = at;
    at = piece.end_ps = static_cast<int64_t>(fixed_before + stretch_before * (time_ps - fixed) / from);
  }
}

}  // namespace

std::string_view ToString(PathKind kind) {
  switch (kind) {
    case PathKind::kTransfer:
      return "transfer";
    case PathKind::kLatency:
      return "latency";
    case PathKind::kOverhead:
      return "overhead";
    case PathKind::kThreadblock:
      return "threadblock";
    case PathKind::kHandOff:
      return "hand-off";
    case PathKind::kHop:
      return "hop";
    case PathKind::kLaunch:
      return "launch";
  }
  return "";
}

std::vector<PathShare> SharesOf(const CriticalPath& path) {
  std::map<std::tuple<PathKind, std::optional<LinkId>, std::optional<int32_t>>, PathShare> shares;
  for (const PathPiece& piece : path.pieces) {
    PathShare& share = shares[{piece.kind, piece.link, piece.block}];
    share.kind = piece.kind;
    share.link = piece.link;
    share.block = piece.block;
    share.ps += piece.ps();
    ++share.pieces;
  }
  std::vector<PathShare> sorted;
  for (const auto& [place, share] : shares) sorted.push_back(share);
  std::ranges::stable_sort(sorted, std::ranges::greater(), &PathShare::ps);
  return sorted;
}

CriticalPath MakeCriticalPath(std::vector<PathPiece> last_first, int64_t time_ps, Elastic elastic) {
  CriticalPath path;
  std::ranges::reverse(last_first);
  for (const PathPiece& piece : last_first) {
    if (piece.ps() == 0) continue;
    if (!path.pieces.empty() && SamePlace(path.pieces.back(), piece)) {
      path.pieces.back().end_ps = piece.end_ps;
    } else {
      path.pieces.push_back(piece);
    }
  }
  if (path.pieces.empty() || path.pieces.back().end_ps == time_ps) return path;
  path.stretched = true;
  Stretch(path.pieces, time_ps, elastic);
  std::erase_if(path.pieces, [](const PathPiece& piece) { return piece.ps() == 0; });
  return path;
}

}  // namespace xccl
