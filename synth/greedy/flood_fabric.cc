// The part of Flood that sends through switches, NICs and CPUs.
// 1. ServeSource takes the idle uplinks of a rank.
// 2. SearchFabric searches breadth-first from an uplink, over links that are free or almost free when the
//    message reaches them. Each link continues where its last search ended, so that receivers alternate.
// 3. At the first rank that lacks a chunk of the sender, SendThrough picks the chunks of a message.
// 4. Send enters the message into the links' times and adds its events.
// A message may wait longer in front of a link that is slower than the link before it. One message can then
// always wait there, so that the slow link never runs dry.
#include <algorithm>

#include "base/units.h"
#include "ir/time_model.h"
#include "synth/greedy/flood.h"

namespace xccl::greedy {

void Flood::ServeSource(int32_t rank) {
  starved_[rank] = 0;
  for (LinkId uplink : uplinks_[rank]) {
    if (free_ps_[uplink.index()] > now_ps_) continue;
    const bool sent = policy_.one_entry_per_group
                          ? SearchFabric(rank, uplink, true) || SearchFabric(rank, uplink, false)
                          : SearchFabric(rank, uplink, {});
    if (!sent) starved_[rank] = 1;
  }
}

// Sends one message from the rank over the uplink to the first receiver that the search finds. Returns false
// if there is no receiver. If `crosses` is true, only ranks of other groups receive; if false, only ranks of
// the sender's group; if absent, all ranks.
bool Flood::SearchFabric(int32_t rank, LinkId uplink, std::optional<bool> crosses) {
  const int64_t bytes = std::max<int64_t>(common_bytes_, 0);
  const bool blocking = problem_.model == TimeModel::kBlocking;
  const auto go = [&](LinkId link, int64_t start) {
    return start + (blocking ? Duration(link, bytes) : costs_[link.index()].delay_ps);
  };
  ++search_id_;
  visits_.clear();
  visits_.push_back({.node = topology_.link(uplink).to,
                     .link = uplink,
                     .parent = -1,
                     .ready_ps = go(uplink, now_ps_),
                     .duration_ps = Duration(uplink, bytes)});
  seen_at_[visits_[0].node.index()] = search_id_;
  for (size_t v = 0; v < visits_.size(); ++v) {
    const Visit visit = visits_[v];
    const std::span<const LinkId> out = topology_.Out(visit.node);
    int32_t& turn = rotation_[(v == 0 ? uplink : visit.link).index()];
    // The first search starts behind the rank itself, so that sources begin with different receivers.
    if (turn < 0) {
      turn = 0;
      for (size_t i = 0; i < out.size(); ++i)
        if (topology_.link(out[i]).to == topology_.NodeOf(Rank(rank))) turn = static_cast<int32_t>(i) + 1;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t at = (static_cast<size_t>(turn) + i) % out.size();
      const LinkId link = out[at];
      ++work_;
      const int32_t head = head_rank_[link.index()];
      if (head == rank || (head < 0 && seen_at_[topology_.link(link).to.index()] == search_id_)) continue;
      const int64_t duration = Duration(link, bytes);
      const int64_t start = std::max(visit.ready_ps, free_ps_[link.index()]);
      const int64_t patience = duration > visit.duration_ps ? duration - 1 : duration / 16;
      if (start - visit.ready_ps > patience) continue;
      if (head < 0) {
        seen_at_[topology_.link(link).to.index()] = search_id_;
        visits_.push_back({.node = topology_.link(link).to,
                           .link = link,
                           .parent = static_cast<int32_t>(v),
                           .ready_ps = go(link, start),
                           .duration_ps = duration});
        continue;
      }
      if (crosses && *crosses != (group_[head] != group_[rank])) continue;
      if (!SendThrough(rank, head, static_cast<int32_t>(v), link, crosses.value_or(false))) continue;
      rotation_[visit.link.index()] = static_cast<int32_t>(at + 1);
      return true;
    }
  }
  return false;
}

bool Flood::SendThrough(int32_t rank, int32_t destination, int32_t last_visit, LinkId last, bool crosses) {
  int32_t count = FillCandidates(rank, destination, crosses, scratch_.data());
  if (count == 0) return false;
  std::vector<LinkId> links = {last};
  for (int32_t v = last_visit; v >= 0; v = visits_[v].parent) links.push_back(visits_[v].link);
  std::reverse(links.begin(), links.end());
  std::vector<int32_t> picked;
  int64_t bytes = 0;
  while (count > 0) {
    const int32_t chunk = Choose(scratch_.data(), count, destination);
    const int64_t with = bytes + problem_.bytes[chunk];
    if (!picked.empty() && with > policy_.batch_bytes) break;
    if (Times(links, with).arrival_ps >= policy_.deadline_ps) break;
    picked.push_back(chunk);
    bytes = with;
    CountCopy(chunk, destination);
    scratch_[chunk >> 6] &= ~(uint64_t{1} << (chunk & 63));
    --count;
    if (bytes >= policy_.batch_bytes) break;
  }
  if (picked.empty()) return false;
  Send(links, picked, bytes);
  return true;
}

Flood::PathTimes Flood::Times(std::span<const LinkId> links, int64_t bytes) const {
  PathTimes times;
  const bool blocking = problem_.model == TimeModel::kBlocking;
  int64_t ready = now_ps_, end_at_head = now_ps_;
  for (LinkId link : links) {
    const int64_t start = std::max(ready, free_ps_[link.index()]), delay = costs_[link.index()].delay_ps;
    const int64_t end = start + Duration(link, bytes);
    times.start_ps.push_back(start);
    times.end_ps.push_back(end);
    end_at_head = std::max(end, end_at_head) + delay;
    ready = blocking ? end : start + delay;
  }
  times.arrival_ps = end_at_head;
  return times;
}

void Flood::Send(std::span<const LinkId> links, std::span<const int32_t> chunks, int64_t bytes) {
  const PathTimes times = Times(links, bytes);
  const int32_t source = tail_rank_[links.front().index()], destination = head_rank_[links.back().index()];
  Message message{.destination = destination};
  message.first = static_cast<int32_t>(moves_.size());
  message.count = static_cast<int32_t>(chunks.size());
  for (int32_t chunk : chunks)
    message.step =
        std::max(message.step, arrival_step_[static_cast<size_t>(source) * problem_.chunks + chunk] + 1);
  for (LinkId link : links) message.step = std::max(message.step, last_step_[link.index()] + 1);
  const int32_t path = links.size() == 1 ? links[0].value : paths_.Intern(links).value;
  for (int32_t chunk : chunks) {
    moves_.push_back({chunk, path, message.step});
    has_or_coming_.Set(destination, chunk);
    group_has_.Set(group_[destination], chunk);
  }
  messages_.push_back(message);
  Push(times.arrival_ps, kArrival + messages_.size() - 1);
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkId link = links[i];
    last_step_[link.index()] = message.step;
    free_ps_[link.index()] = times.end_ps[i];
    if (links.size() == 1) {
      if (times.end_ps[i] != times.arrival_ps) Push(times.end_ps[i], kDestinationIdle, destination);
    } else if (i == 0) {
      Push(times.end_ps[0], kSourceIdle, source);
    } else {
      // A further message that leaves at `wake` or later finds this link free when it gets there.
      const int64_t wake = times.end_ps[i] - (times.start_ps[i] - times.start_ps[0]);
      if (wake > now_ps_) Push(wake, kFabricIdle);
    }
  }
}

}  // namespace xccl::greedy
