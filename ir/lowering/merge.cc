// First every join that is possible at its own two ends; then those fall that a fused partner cannot follow,
// until nothing changes; then long runs are cut.
#include "ir/lowering/merge.h"

namespace xccl::lowering {
namespace {

// What two moves must have in common at both ends to be one instruction.
bool SameShape(const Moves& moves, const Fusion& fusion, const Buffers& buffers, int32_t a, int32_t b) {
  const Move& x = moves.moves[static_cast<size_t>(a)];
  const Move& y = moves.moves[static_cast<size_t>(b)];
  const auto fed_from = [&](const Move& m) {
    return m.feed == kNoMove ? 0 : buffers.InOutput(m.src, m.chunk) ? 1 : 2;
  };
  // Where several add to one chunk in a step, each keeps its place among them.
  return !x.crowded && !y.crowded && x.step == y.step && x.chunk.value + 1 == y.chunk.value &&
         x.reduces == y.reduces && x.local_input == y.local_input && x.complete == y.complete &&
         fed_from(x) == fed_from(y) && IsStored(moves, fusion, a) == IsStored(moves, fusion, b) &&
         buffers.InOutput(x.dst, x.chunk) == buffers.InOutput(y.dst, y.chunk) &&
         (fusion.send_of[a] == kNoMove) == (fusion.send_of[b] == kNoMove) &&
         (fusion.recv_of[a] == kNoMove) == (fusion.recv_of[b] == kNoMove);
}

// The previous move of every move's connection, where both are neighbours in the lists of both threadblocks.
std::vector<int32_t> Neighbours(const Moves& moves, const Order& order, const Assignment& assignment,
                                const Fusion& fusion) {
  const size_t count = moves.moves.size();
  IdVector<Rank, std::vector<int32_t>> length(static_cast<size_t>(assignment.blocks.size()));
  for (Rank r(0); r.value < length.size(); ++r.value) length[r].assign(assignment.blocks[r].size(), 0);
  std::vector<int32_t> sent_at(count), received_at(count), before(count, kNoMove);
  std::vector<int32_t> last_of(assignment.channel.size(), kNoMove);
  for (int32_t event : order.events) {
    const int32_t m = event / 2;
    const Move& move = moves.moves[static_cast<size_t>(m)];
    const size_t c = move.path.index();
    if (event % 2 != 0) {
      received_at[m] = length[move.dst][assignment.recv_block[c]]++;
      continue;
    }
    before[m] = last_of[c];
    last_of[c] = m;
    if (fusion.recv_of[m] == kNoMove) sent_at[m] = length[move.src][assignment.send_block[c]]++;
  }
  for (size_t m = 0; m < count; ++m) {
    const int32_t p = before[m];
    if (p == kNoMove) continue;
    // A fused send stands where its receive stands.
    const bool apart_sent = fusion.recv_of[m] == kNoMove && sent_at[m] != sent_at[p] + 1;
    if (apart_sent || received_at[m] != received_at[p] + 1) before[m] = kNoMove;
  }
  return before;
}

}  // namespace

Runs MergeRuns(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
               const Buffers& buffers, int32_t max_count) {
  const int32_t count = static_cast<int32_t>(moves.moves.size());
  Runs runs;
  runs.previous = Neighbours(moves, order, assignment, fusion);
  for (int32_t m = 0; m < count; ++m) {
    int32_t& p = runs.previous[m];
    if (p != kNoMove && (max_count <= 1 || !SameShape(moves, fusion, buffers, p, m))) p = kNoMove;
  }
  // A join holds where its fused partners join in the same way.
  std::vector<int32_t> fallen;
  const auto follows = [&](int32_t partner, int32_t partner_of_previous) {
    return partner == kNoMove || runs.previous[partner] == partner_of_previous;
  };
  const auto check = [&](int32_t m) {
    const int32_t p = runs.previous[m];
    if (p == kNoMove) return;
    if (follows(fusion.send_of[m], fusion.send_of[p]) && follows(fusion.recv_of[m], fusion.recv_of[p]))
      return;
    runs.previous[m] = kNoMove;
    fallen.push_back(m);
  };
  for (int32_t m = 0; m < count; ++m) check(m);
  while (!fallen.empty()) {
    const int32_t m = fallen.back();
    fallen.pop_back();
    if (fusion.send_of[m] != kNoMove) check(fusion.send_of[m]);
    if (fusion.recv_of[m] != kNoMove) check(fusion.recv_of[m]);
  }
  runs.length.assign(static_cast<size_t>(count), 0);
  runs.last.assign(static_cast<size_t>(count), true);
  std::vector<int32_t> head(static_cast<size_t>(count));
  for (int32_t event : order.events) {
    const int32_t m = event / 2;
    if (event % 2 != 0) continue;
    int32_t& p = runs.previous[m];
    if (p != kNoMove && runs.length[head[p]] == max_count) p = kNoMove;
    head[m] = p == kNoMove ? m : head[p];
    if (p != kNoMove) runs.last[p] = false;
    ++runs.length[head[m]];
  }
  return runs;
}

}  // namespace xccl::lowering
