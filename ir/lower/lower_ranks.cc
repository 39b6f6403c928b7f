// Create runs the passes of lower_once.h over the columns, with a class in place of each path. WriteRank
// translates their results to one rank. A move becomes two moves: one that the rank sends, and one that it
// receives. The remaining passes (buffers, instructions, dependencies) then write the rank's own
// instructions. If lost ranks have heirs, MovesWithHeirs lists the rank's moves anew, with those that it
// takes over, and Follow finds what feeds them.
#include "ir/lower/lower_ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/graph/grouped.h"
#include "base/memory.h"
#include "ir/damaged.h"
#include "ir/lower/buffers.h"
#include "ir/lower/dependencies.h"
#include "ir/lower/fan_ins.h"
#include "ir/lower/instructions.h"
#include "ir/lower/merge.h"
#include "ir/lower/segments.h"
#include "ir/taken_over.h"

namespace xccl {

using namespace lowering;  // as in lower.cc

namespace {

Status CheckMoves(const Schedule& schedule, const Collective& collective, const Topology& topology) {
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    if (!IsChain(topology, schedule.paths[PathId(p)]))
      return InvalidInput(
          "lower: the compressed schedule has multicasts or sums in switches; expected chains of links "
          "alone, "
          "from which one rank's part can be made");
  if (!FindFanIns(schedule, collective, topology).all.empty())
    return InvalidInput(
        "lower: several ranks of the compressed schedule must add up one sum in one order; expected sums "
        "that "
        "one rank completes, from which one rank's part can be made");
  return OkStatus();
}

// Follows all chunks at one rank, whose moves are in order. Sets what feeds the rank's sends, and which moves
// complete its sums. Each chunk has one root (rule S9).
void Follow(Rank rank, const Collective& collective, Moves& moves) {
  struct Cell {
    int32_t writer = kNoIndex, last_sum = kNoIndex;  // moves
  };
  std::vector<Cell> cells(static_cast<size_t>(collective.num_chunks()));
  for (size_t m = 0; m < moves.moves.size(); ++m) {
    Move& move = moves.moves[m];
    Cell& cell = cells[move.chunk.index()];
    move.number = move.bundle = move.group = static_cast<int32_t>(m);
    const bool reads = move.sends || move.reduces;
    if (reads && cell.writer != kNoIndex) ++moves.moves[static_cast<size_t>(cell.writer)].readers;
    if (move.sends) {
      move.feed = cell.writer;
      continue;
    }
    move.previous = cell.writer;
    move.local_input = move.reduces && cell.writer == kNoIndex;
    if (move.reduces) cell.last_sum = static_cast<int32_t>(m);
    cell.writer = static_cast<int32_t>(m);
  }
  const auto of_each = static_cast<int32_t>(collective.num_chunks() / collective.num_members());
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    const Cell& cell = cells[static_cast<size_t>(c)];
    const bool is_root = collective.ranks()[static_cast<size_t>(c / of_each)] == rank;
    const bool has_input = is_root || IsReduction(collective.kind()),
               has_output = is_root || EndsAlike(collective.kind());
    if (is_root && cell.last_sum != kNoIndex) moves.moves[static_cast<size_t>(cell.last_sum)].complete = true;
    if (has_output && cell.writer != kNoIndex) ++moves.moves[static_cast<size_t>(cell.writer)].readers;
    if (has_output && has_input && cell.writer == kNoIndex) moves.copies.push_back({rank, ChunkId(c)});
  }
}

// Appends the program of one rank to another program.
void Append(Program from, Rank rank, Program& to) {
  const int32_t first = static_cast<int32_t>(to.dependencies.size());
  for (Threadblock& block : from.ranks[rank].threadblocks)
    for (Instruction& instruction : block.instructions) instruction.dep_first += first;
  to.ranks[rank] = std::move(from.ranks[rank]);
  to.dependencies.insert(to.dependencies.end(), from.dependencies.begin(), from.dependencies.end());
  std::ranges::move(from.connections, std::back_inserter(to.connections));
}

}  // namespace

// The paths of one rank: first paths that it sends on, then paths that it receives on, then Schedule::ways.
struct RankLowering::OwnPaths {
  Paths paths;
  std::vector<int32_t> out, in;  // by class: its path; kNoIndex: none
  std::vector<int32_t> classes;  // by path: its class; kNoIndex: the path is a way
  std::vector<int32_t> channels;
  std::unordered_map<int32_t, int32_t> ways;  // by way of the schedule: its path
};

// The moves that one rank sends or receives, and the order of their events.
struct RankLowering::OwnMoves {
  Moves moves;
  Fusion fusion;
  Order order;
};

struct RankLowering::Damage {
  Damage(const Schedule& schedule, bool of_pairs, Topology of_whole)
      : has_heirs(HasLostHosts(schedule) && !of_pairs),
        whole(std::move(of_whole)),
        ways(schedule.ways),
        detours(whole, schedule.missing, schedule.detours) {}
  // Returns the two ends of a way or class as one number.
  static uint64_t KeyOf(Rank src, Rank dst) {
    return (static_cast<uint64_t>(src.index()) << 32) | dst.index();
  }

  bool has_heirs;
  Topology whole;
  std::span<const std::vector<LinkId>> ways;
  Detours detours;
  std::unordered_map<uint64_t, int32_t> way_between, class_between;  // by KeyOf: the first with these ends
  Grouped<int32_t> ways_of;                                          // by rank
  std::vector<TakenOver> taken_over;
  Grouped<int32_t> taken_over_of;  // by rank
};

RankLowering::RankLowering(Translations translations, const Collective& collective, const Topology& topology)
    : translations_(std::move(translations)), collective_(&collective), topology_(&topology) {}
RankLowering::RankLowering(RankLowering&&) noexcept = default;
RankLowering& RankLowering::operator=(RankLowering&&) noexcept = default;
RankLowering::~RankLowering() = default;

StatusOr<RankLowering> RankLowering::Create(const Schedule& schedule, const Collective& collective,
                                            const Topology& topology, int64_t size_bytes) {
  const SymmetricMachine of_columns(schedule, collective, topology);
  if (const Collective& all = of_columns.collective(); all.num_chunks() > std::numeric_limits<int32_t>::max())
    return InvalidInput(fmt::format("lower: {} of {} ranks{} has {} chunks; a program names at most 2^31-1",
                                    all.name(), all.num_members(),
                                    HasLostHosts(schedule) ? " of the whole machine" : "", all.num_chunks()));
  const Topology& whole = *of_columns;
  XCCL_RETURN_IF_ERROR(CheckMoves(schedule, of_columns.collective(), whole));
  XCCL_ASSIGN_OR_RETURN(Translations translations, Translations::Create(schedule, collective, topology));
  RankLowering made(std::move(translations), collective, topology);
  const Paths paths = ListPaths(schedule, whole);
  const std::vector<ChunkId> chunks = made.translations_.Representatives();  // the chunks that columns move
  XCCL_ASSIGN_OR_RETURN(made.moves_, SplitByRank(schedule, paths, of_columns.collective(), whole.num_ranks(),
                                                 nullptr, &chunks));
  made.FindClasses(paths);
  // The largest table has a cell for each pair of a rank's threadblocks (dependencies.cc). A rank has at most
  // two threadblocks for each class.
  const double blocks = 2.0 * made.classes_.size();
  XCCL_RETURN_IF_ERROR(
      CheckMemory("lower", fmt::format("a program of one rank with {} connections", made.classes_.size()),
                  blocks * blocks * sizeof(int32_t)));
  if (IsOfDamaged(schedule)) made.FindDamage(schedule, whole);
  const std::vector<Move>& moves = made.moves_.moves;
  // A rank of a large machine has many connections, and slots are memory. It gets as few slots as the
  // plainest form.
  made.order_ = OrderByStep(moves, made.classes_.size(), made.head_.slots);
  made.head_.slots = std::max(made.head_.slots, made.order_.slots);
  made.assignment_ = AssignThreadblocks(moves, made.classes_, whole.num_ranks(), true);
  made.fusion_ = FuseForwards(moves, made.order_, made.assignment_, made.head_.slots, true);
  XCCL_RETURN_IF_ERROR(made.ChooseSegments(size_bytes));
  return made;
}

// Groups the columns' paths into classes. A class is known by the links of one translate of its paths: the
// one that leaves the lowest rank of an orbit. Only one translation takes a path's source there.
void RankLowering::FindClasses(const Paths& paths) {
  const SymmetryGroup& group = translations_.group();
  PathTable canonical;
  std::vector<int32_t> of_path;
  std::vector<LinkId> links;
  for (const Path& path : paths.paths) {
    const int64_t back = group.Inverse(group.ElementOf(path.src));
    links.clear();
    for (const LinkId link : path.links) links.push_back(group.Image(back, link));
    of_path.push_back(canonical.Intern(links).value);
    if (of_path.back() == classes_.size())
      classes_.paths.push_back({group.Image(back, path.src), group.Image(back, path.dst), links, kNoIndex});
  }
  for (Move& move : moves_.moves) move.path = of_path[static_cast<size_t>(move.path)];
}

void RankLowering::FindDamage(const Schedule& schedule, Topology whole) {
  auto damage = std::make_unique<Damage>(schedule, translations_.of_pairs(), std::move(whole));
  for (int32_t c = 0; c < classes_.size(); ++c) {
    const Path& path = classes_.paths[static_cast<size_t>(c)];
    damage->class_between.try_emplace(Damage::KeyOf(path.src, path.dst), c);
  }
  const auto end = [&](LinkId l, bool tail) {
    return *damage->whole.RankOf(tail ? damage->whole.link(l).from : damage->whole.link(l).to);
  };
  const auto ranks = static_cast<size_t>(topology_->num_ranks());
  damage->ways_of = GroupItems<int32_t>(ranks, [&](auto add) {
    for (size_t w = 0; w < damage->ways.size(); ++w) {
      const Rank src = end(damage->ways[w].front(), true), dst = end(damage->ways[w].back(), false);
      const auto number = static_cast<int32_t>(w);
      if (damage->way_between.try_emplace(Damage::KeyOf(src, dst), number).first->second != number) continue;
      add(src.index(), number);
      add(dst.index(), number);
    }
  });
  if (damage->has_heirs) damage->taken_over = TransfersTakenOver(schedule, translations_, damage->whole);
  damage->taken_over_of = GroupItems<int32_t>(ranks, [&](auto add) {
    for (size_t t = 0; t < damage->taken_over.size(); ++t)
      for (const Rank rank : {damage->taken_over[t].src, damage->taken_over[t].dst})
        add(rank.index(), static_cast<int32_t>(t));
  });
  damage_ = std::move(damage);
}

// Chooses passes and instances. The choice needs the threadblocks of a rank and the bytes of a connection,
// which the columns give.
Status RankLowering::ChooseSegments(int64_t size_bytes) {
  const SymmetryGroup& group = translations_.group();
  Program sample;
  for (int32_t orbit = 0; orbit < group.num_rank_orbits(); ++orbit)
    sample.ranks.push_back(WriteOutline(group.Representative(orbit)).ranks[group.Representative(orbit)]);
  sample.connections.resize(classes_.paths.size());
  XCCL_RETURN_IF_ERROR(SetSegments(Segments::kMiddle, *collective_, *topology_, moves_.moves,
                                   {.size_bytes = size_bytes},
                                   {std::numeric_limits<int32_t>::max(), kDefaultBlocks}, nullptr, sample)
                           .status());
  head_.instances = sample.instances;
  head_.segment_bytes = sample.segment_bytes;
  return OkStatus();
}

// Returns the one translation that takes `from` to `to`. Requires that the ranks are in one orbit.
int64_t RankLowering::ElementTo(Rank from, Rank to) const {
  const SymmetryGroup& group = translations_.group();
  return group.Compose(group.ElementOf(to), group.Inverse(group.ElementOf(from)));
}

RankLowering::OwnPaths RankLowering::PathsOf(Rank rank) const {
  const SymmetryGroup& group = translations_.group();
  const int32_t orbit = group.OrbitOf(rank);
  OwnPaths own;
  own.out.assign(classes_.paths.size(), kNoIndex);
  own.in = own.out;
  for (const bool sends : {true, false}) {
    for (int32_t c = 0; c < classes_.size(); ++c) {
      const Path& of_class = classes_.paths[static_cast<size_t>(c)];
      const Rank end = sends ? of_class.src : of_class.dst;
      if (group.OrbitOf(end) != orbit) continue;
      const int64_t e = ElementTo(end, rank);
      Path path{group.Image(e, of_class.src), group.Image(e, of_class.dst), {}, kNoIndex};
      if (!IsThere(path.src) || !IsThere(path.dst)) continue;
      for (const LinkId link : of_class.links) path.links.push_back(group.Image(e, link));
      if (damage_) damage_->detours.Apply(path.links);
      (sends ? own.out : own.in)[static_cast<size_t>(c)] = own.paths.size();
      own.paths.paths.push_back(std::move(path));
      own.classes.push_back(c);
      own.channels.push_back(assignment_.channel[static_cast<size_t>(c)]);
    }
  }
  if (!damage_) return own;
  // A way gets the lowest channel above the channels of all classes between its ends.
  for (const int32_t w : damage_->ways_of[rank.index()]) {
    const std::vector<LinkId>& links = damage_->ways[static_cast<size_t>(w)];
    const Rank src = *damage_->whole.RankOf(damage_->whole.link(links.front()).from),
               dst = *damage_->whole.RankOf(damage_->whole.link(links.back()).to);
    int32_t channel = 0;
    for (size_t p = 0; p < own.channels.size(); ++p)
      if (own.paths.paths[p].src == src && own.paths.paths[p].dst == dst)
        channel = std::max(channel, own.channels[p] + 1);
    own.ways.emplace(w, own.paths.size());
    own.paths.paths.push_back({src, dst, links, kNoIndex});
    own.classes.push_back(kNoIndex);
    own.channels.push_back(channel);
  }
  return own;
}

Assignment RankLowering::AssignmentOf(Rank rank, const OwnPaths& own) const {
  const size_t count = own.paths.paths.size();
  Assignment assignment;
  assignment.send_block.assign(count, 0);
  assignment.recv_block.assign(count, 0);
  assignment.blocks.resize(static_cast<size_t>(topology_->num_ranks()));
  assignment.channel = own.channels;
  for (size_t p = 0; p < count; ++p) {
    if (own.classes[p] == kNoIndex) {
      assignment.forwards_to.push_back(kNoIndex);
      continue;
    }
    const size_t c = static_cast<size_t>(own.classes[p]);
    const bool receives = own.in[c] == static_cast<int32_t>(p);
    const int32_t to = receives ? assignment_.forwards_to[c] : kNoIndex;
    assignment.forwards_to.push_back(to == kNoIndex ? kNoIndex : own.out[static_cast<size_t>(to)]);
  }
  MakeBlocks(own.paths, assignment);
  for (Rank r(0); r.value < assignment.blocks.size(); ++r.value)
    if (r != rank) assignment.blocks[r].clear();
  return assignment;
}

// Returns the translates of the columns' moves at one rank. Move m becomes move 2m, which the rank sends, and
// move 2m + 1, which it receives. The order leaves out move 2m if the sender is in another orbit than the
// rank, move 2m + 1 if the receiver is, and both if the translate has a lost end or chunk.
RankLowering::OwnMoves RankLowering::TranslatedMoves(Rank rank, const OwnPaths& own) const {
  const SymmetryGroup& group = translations_.group();
  const int32_t orbit = group.OrbitOf(rank);
  const size_t count = 2 * moves_.moves.size();
  OwnMoves made{.moves = {},
                .fusion = {std::vector<int32_t>(count, kNoIndex), std::vector<int32_t>(count, kNoIndex)},
                .order = {}};
  auto& [moves, fusion, order] = made;
  moves.moves.reserve(count);
  for (size_t m = 0; m < moves_.moves.size(); ++m) {
    for (const bool sends : {true, false}) {
      Move& move = moves.moves.emplace_back(moves_.moves[m]);
      const size_t c = static_cast<size_t>(move.path);
      move.path = (sends ? own.out : own.in)[c];
      const int64_t e = move.path == kNoIndex ? 0 : ElementTo(sends ? move.src : move.dst, rank);
      const auto chunk = translations_.InMachine(translations_.Image(e, move.chunk));
      if (!chunk) move.path = kNoIndex;
      move.sends = sends && move.path != kNoIndex;
      move.receives = !sends && move.path != kNoIndex;
      if (move.path == kNoIndex) continue;
      move.chunk = *chunk;
      move.src = group.Image(e, move.src);
      move.dst = group.Image(e, move.dst);
    }
    if (fusion_.send_of[m] != kNoIndex) fusion.send_of[2 * m + 1] = 2 * fusion_.send_of[m];
    if (fusion_.recv_of[m] != kNoIndex) fusion.recv_of[2 * m] = 2 * fusion_.recv_of[m] + 1;
  }
  for (const LocalCopy& copy : moves_.copies)
    if (group.OrbitOf(copy.rank) == orbit)
      moves.copies.push_back(
          {rank, *translations_.InMachine(translations_.Image(ElementTo(copy.rank, rank), copy.chunk))});
  std::ranges::sort(moves.copies, {}, &LocalCopy::chunk);
  for (const int32_t event : order_.events) {
    const int32_t m = event / 2, own_move = event % 2 == 0 ? 2 * m : 2 * m + 1;
    if (moves.moves[static_cast<size_t>(own_move)].path != kNoIndex)
      order.events.push_back(2 * own_move + event % 2);
  }
  return made;
}

RankLowering::OwnMoves RankLowering::MovesWithHeirs(Rank rank, const OwnPaths& own,
                                                    const Assignment& assignment) const {
  const SymmetryGroup& group = translations_.group();
  OwnMoves made;
  std::vector<Move>& moves = made.moves.moves;
  for (const Move& of_column : moves_.moves)
    for (const bool sends : {true, false}) {
      const int32_t path = (sends ? own.out : own.in)[static_cast<size_t>(of_column.path)];
      if (path == kNoIndex) continue;
      const int64_t e = ElementTo(sends ? of_column.src : of_column.dst, rank);
      const std::optional<ChunkId> chunk = translations_.InMachine(translations_.Image(e, of_column.chunk));
      if (!chunk) continue;
      moves.push_back({.chunk = *chunk,
                       .src = group.Image(e, of_column.src),
                       .dst = group.Image(e, of_column.dst),
                       .path = path,
                       .step = of_column.step,
                       .reduces = of_column.reduces,
                       .sends = sends,
                       .receives = !sends});
    }
  for (const int32_t t : damage_->taken_over_of[rank.index()]) {
    const TakenOver& taken = damage_->taken_over[static_cast<size_t>(t)];
    const bool sends = taken.src == rank;
    int32_t path = kNoIndex;
    if (const auto way = damage_->way_between.find(Damage::KeyOf(taken.src, taken.dst));
        way != damage_->way_between.end()) {
      path = own.ways.at(way->second);
    } else {
      const int64_t back = group.Inverse(group.ElementOf(taken.src));
      const int32_t c = damage_->class_between.at(
          Damage::KeyOf(group.Image(back, taken.src), group.Image(back, taken.dst)));
      path = (sends ? own.out : own.in)[static_cast<size_t>(c)];
    }
    moves.push_back({.chunk = taken.chunk,
                     .src = taken.src,
                     .dst = taken.dst,
                     .path = path,
                     .step = taken.step,
                     .reduces = taken.op == TransferOp::kReduce,
                     .sends = sends,
                     .receives = !sends});
  }
  std::ranges::sort(moves, {}, [](const Move& m) { return std::tuple(m.step, m.chunk, m.src, m.dst); });
  Follow(rank, *collective_, made.moves);
  // A message is received as soon as it is sent, so the places of its send and its receive are neighbours.
  for (size_t m = 0; m < moves.size(); ++m) {
    const auto number = static_cast<int32_t>(m);
    made.order.events.push_back(moves[m].sends ? 2 * number : 2 * number + 1);
    made.order.send_place.push_back(2 * number);
    made.order.recv_place.push_back(2 * number + 1);
  }
  made.fusion = FuseForwards(moves, made.order, assignment, head_.slots, true);
  return made;
}

Program RankLowering::WriteRank(Rank rank) const {
  const int32_t num_ranks = topology_->num_ranks();
  const OwnPaths own = PathsOf(rank);
  const Assignment assignment = AssignmentOf(rank, own);
  const auto [moves, fusion, order] =
      damage_ && damage_->has_heirs ? MovesWithHeirs(rank, own, assignment) : TranslatedMoves(rank, own);
  const size_t count = moves.moves.size();
  const Rank only[] = {rank};
  const Buffers buffers = PlaceBuffers(moves, fusion, *collective_, num_ranks, only);
  // Neighbouring chunks of one rank need not be neighbours at its peer, so an instruction moves one chunk.
  const Runs runs{std::vector<int32_t>(count, kNoIndex), std::vector<int32_t>(count, 1),
                  std::vector<bool>(count, true)};
  Program program = head_;
  const Places places = WriteInstructions(moves, order, assignment, fusion, runs, buffers, own.paths,
                                          collective_->Reduces(), program);
  AddDependencies(places, *collective_, true, program);
  return program;
}

Program RankLowering::WriteOutline(Rank rank) const {
  const OwnPaths own = PathsOf(rank);
  const Assignment assignment = AssignmentOf(rank, own);
  Program program = head_;
  program.ranks.resize(static_cast<size_t>(topology_->num_ranks()));
  program.ranks[rank].threadblocks = assignment.blocks[rank];
  for (size_t p = 0; p < own.paths.paths.size(); ++p)
    program.connections.push_back(
        {own.paths.paths[p].src, own.paths.paths[p].dst, assignment.channel[p], own.paths.paths[p].links});
  return program;
}

Program RankLowering::ProgramOf(std::span<const Rank> ranks, bool outlines) const {
  Program program = head_;
  program.ranks.resize(static_cast<size_t>(topology_->num_ranks()));
  program.in_place = std::ranges::all_of(collective_->ranks(),
                                         [&](Rank r) { return collective_->InPlaceOf(r).has_value(); });
  std::vector<bool> has(static_cast<size_t>(topology_->num_ranks()), false);
  for (const Rank rank : ranks) {
    has[rank.index()] = true;
    Append(WriteRank(rank), rank, program);
  }
  for (Rank r(0); outlines && r.value < topology_->num_ranks(); ++r.value)
    if (!has[r.index()]) Append(WriteOutline(r), r, program);
  const auto key = [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); };
  std::ranges::sort(program.connections, {}, key);
  const auto same = [&](const Connection& a, const Connection& b) { return key(a) == key(b); };
  program.connections.erase(std::unique(program.connections.begin(), program.connections.end(), same),
                            program.connections.end());
  return program;
}

}  // namespace xccl
