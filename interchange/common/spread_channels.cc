// Connections that threadblocks join are a bundle. Each bundle takes the first channel that has room for it.
#include "interchange/common/spread_channels.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/graph/union_find.h"
#include "base/ids.h"

namespace xccl {
namespace {

// By (rank, channel, sends): threadblocks.
using Peers = std::map<std::tuple<int32_t, int32_t, bool>, int32_t>;

void Count(const Connection& connection, int32_t channel, Peers& peers) {
  ++peers[{connection.src.value, channel, true}];
  ++peers[{connection.dst.value, channel, false}];
}

// The connections that each threadblock of a rank serves: to send and to receive, -1: none.
using Served = std::vector<std::pair<int32_t, int32_t>>;

Served ConnectionsOf(const Program& program, Rank r) {
  Served served;
  for (const Threadblock& tb : program.ranks[r].threadblocks)
    served.emplace_back(tb.send_peer ? *FindConnection(program, r, *tb.send_peer, tb.channel) : -1,
                        tb.recv_peer ? *FindConnection(program, *tb.recv_peer, r, tb.channel) : -1);
  return served;
}

class Channels {
 public:
  Channels(Program& program, int32_t most) : program_(program), most_(most) {}

  // Gives the connections of the bundle the first channel with room for them. False: no channel has.
  bool Place(const std::vector<int32_t>& bundle) {
    constexpr int32_t kMostChannels = 1024;  // more than any executor has
    int32_t channel = 0;
    while (channel < kMostChannels && !Fits(bundle, channel)) ++channel;
    if (channel == kMostChannels) return false;
    for (const int32_t c : bundle) {
      Connection& connection = program_.connections[static_cast<size_t>(c)];
      taken_.insert({connection.src, connection.dst, channel});
      Count(connection, channel, peers_);
      connection.channel = channel;
    }
    return true;
  }

 private:
  bool Fits(const std::vector<int32_t>& bundle, int32_t channel) {
    Peers with;
    for (const int32_t c : bundle) {
      const Connection& connection = program_.connections[static_cast<size_t>(c)];
      if (taken_.contains({connection.src, connection.dst, channel})) return false;
      Count(connection, channel, with);
    }
    return std::ranges::all_of(
        with, [&](const auto& entry) { return peers_[entry.first] + entry.second <= most_; });
  }

  Program& program_;
  const int32_t most_;
  Peers peers_;
  std::set<std::tuple<Rank, Rank, int32_t>> taken_;
};

}  // namespace

Program WithFewPeersOnAChannel(const Program& program, int32_t most) {
  Peers before;
  for (const Connection& c : program.connections) Count(c, c.channel, before);
  if (std::ranges::none_of(before, [&](const auto& entry) { return entry.second > most; })) return program;

  UnionFind joined(program.connections.size());
  std::vector<Served> served;
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    for (const auto& [sends, receives] : served.emplace_back(ConnectionsOf(program, r)))
      if (sends >= 0 && receives >= 0) joined.Join(sends, receives);
  }
  std::map<int32_t, std::vector<int32_t>> bundles;
  for (int32_t c = 0; c < static_cast<int32_t>(program.connections.size()); ++c)
    bundles[joined.Find(c)].push_back(c);
  Program spread = program;
  Channels channels(spread, most);
  for (const auto& [root, bundle] : bundles)
    if (!channels.Place(bundle)) return program;
  for (Rank r(0); r.value < program.ranks.size(); ++r.value)
    for (size_t b = 0; b < served[r.index()].size(); ++b) {
      const int32_t connection = std::max(served[r.index()][b].first, served[r.index()][b].second);
      if (connection >= 0)
        spread.ranks[r].threadblocks[b].channel = spread.connections[static_cast<size_t>(connection)].channel;
    }
  std::ranges::sort(spread.connections, {},
                    [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); });
  return spread;
}

}  // namespace xccl
