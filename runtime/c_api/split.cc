// Communicators that are made from communicators. Their ranks first agree on who is in which: threads at a
// table (assembly.h), processes through their bootstrap. Each group of processes then has an id that its
// first rank makes, and meets by it as any communicator does.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/strings.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/c_api/assembly.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/meeting.h"
#include "runtime/c_api/ranks.h"
#include "runtime/c_api/run.h"
#include "runtime/c_api/settings.h"
#include "runtime/communicator.h"
#include "runtime/launched/launched_group.h"
#include "runtime/xccl.h"

namespace {

using xccl::Bootstrap;
using xccl::BootstrapOptions;
using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Rank;
using xccl::Status;
using xccl::StatusOr;
using xccl::UniqueId;
using xccl::UsageError;
using xccl::c_api::Assembly;
using xccl::c_api::Choice;
using xccl::c_api::Comm;

using Members = std::vector<Rank>;  // ranks of the parent, in the order of their ranks in the child

// The ranks of a color, by key; ranks of one key keep their order.
Members MembersOf(const Assembly::Choices& all, int color) {
  std::vector<std::pair<int, Rank>> sorted;
  for (const auto& [rank, choice] : all)
    if (choice.color == color) sorted.emplace_back(choice.key, rank);
  std::ranges::sort(sorted);
  Members members;
  for (const auto& [key, rank] : sorted) members.push_back(rank);
  return members;
}

int PlaceIn(const Members& members, Rank rank) {
  return static_cast<int>(std::ranges::find(members, rank) - members.begin());
}

// The children of all colors, by rank of the parent.
Assembly::Made MakeChildren(const Assembly::Choices& all) {
  std::set<int> colors;
  for (const auto& [rank, choice] : all) colors.insert(choice.color);
  colors.erase(XCCL_SPLIT_NOCOLOR);
  Assembly::Made made;
  for (const int color : colors) {
    const Members members = MembersOf(all, color);
    std::vector<std::shared_ptr<Comm>> children =
        xccl::c_api::MakeThreads(static_cast<int>(members.size()), nullptr);
    for (size_t i = 0; i < members.size(); ++i) {
      children[i]->members = members;
      made[members[i]] = std::move(children[i]);
    }
  }
  return made;
}

// An id, or why there is none. Its server ends with the offer and the communicators that it became.
struct Offer {
  std::string text;
  std::shared_ptr<void> use;
};

Offer MakeOffer(const Bootstrap& parent) {
  BootstrapOptions options;
  options.time_limit = BootstrapOptions::kForever;  // the ranks say how long they wait
  const StatusOr<UniqueId> id = xccl::MakeUniqueId(options, parent.address());
  if (!id.ok()) return {id.status().message(), nullptr};
  return {{reinterpret_cast<const char*>(id->data()), id->size()}, xccl::UseUniqueId(*id)};
}

StatusOr<std::shared_ptr<Comm>> ChildById(const std::string& text, const Members& members, Rank rank) {
  UniqueId id = {};
  if (text.size() != id.size()) return InvalidInput(text);
  std::memcpy(id.data(), text.data(), id.size());
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<Comm> child,
                        xccl::c_api::MakeById(static_cast<int>(members.size()), id, PlaceIn(members, rank)));
  child->id = xccl::UseUniqueId(id);
  child->members = members;
  return child;
}

// Two all-gathers: who chose what, and the ids that the first ranks of the colors make.
StatusOr<std::shared_ptr<Comm>> SplitProcesses(const Comm& comm, Choice mine) {
  const auto limit = comm.communicator.time_limit();
  const Rank rank = comm.communicator.rank();
  XCCL_ASSIGN_OR_RETURN(xccl::LaunchedGroup* const group, comm.meeting->Join(limit));
  Bootstrap& ranks = group->bootstrap();
  const auto gather = [&](const std::string& text) {
    return ranks.AllGather(text, limit >= xccl::kForEver ? BootstrapOptions::kForever : limit);
  };
  std::string bytes(sizeof mine, '\0');
  std::memcpy(bytes.data(), &mine, sizeof mine);
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> choices, gather(bytes));
  Assembly::Choices all;
  for (size_t r = 0; r < choices.size(); ++r) {
    if (choices[r].size() != sizeof(Choice))
      return InvalidInput(
          fmt::format("rank {}: is not in xcclCommSplit; expected it there with rank {}", r, rank.value));
    std::memcpy(&all[Rank(static_cast<int32_t>(r))], choices[r].data(), sizeof(Choice));
  }
  const Members members = MembersOf(all, mine.color);
  Offer made;
  if (mine.color != XCCL_SPLIT_NOCOLOR && members[0] == rank) made = MakeOffer(ranks);
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> ids, gather(made.text));
  if (mine.color == XCCL_SPLIT_NOCOLOR) return std::shared_ptr<Comm>();
  return ChildById(ids[members[0].index()], members, rank);
}

StatusOr<std::shared_ptr<Comm>> SplitThreads(Comm& comm, Choice mine) {
  const auto ended = [&]() -> Status {
    XCCL_RETURN_IF_ERROR(comm.communicator.AsyncError());
    const std::lock_guard lock(comm.shared->mutex);
    return comm.shared->aborted;
  };
  return comm.shared->assembly.Meet("split", comm.communicator.rank(),
                                    static_cast<size_t>(comm.communicator.ranks()), mine, MakeChildren, ended,
                                    comm.communicator.time_limit());
}

StatusOr<std::shared_ptr<Comm>> Split(Comm& comm, Choice mine) {
  XCCL_RETURN_IF_ERROR(comm.communicator.AsyncError());
  if (comm.meeting == nullptr) return SplitThreads(comm, mine);
  std::shared_ptr<Comm> child;
  XCCL_RETURN_IF_ERROR(comm.communicator.Together([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(child, SplitProcesses(comm, mine));
    return OkStatus();
  }));
  return child;
}

// The members of a shrunk communicator, by place: each but the first is below another, a power of two away,
// so few ranks away and mostly a partner of it.
int Above(int place) { return place & (place - 1); }

// Notes go between partners, who may all have ended. A member that knows the note leaves none below without.
void PassOn(Bootstrap& ranks, const Members& members, int place) {
  const int count = static_cast<int>(members.size());
  for (int away = 1; away < count - place && (place & away) == 0; away *= 2)
    (void)ranks.Link(members[static_cast<size_t>(place + away)]);  // who has ended is missed in the meeting
}

// The k-th time that this rank shrinks by these ranks. All who call it have called it as often.
std::string KeyOfShrink(Comm& comm, const std::set<int>& excluded) {
  constexpr size_t kMost = 1000;  // bytes of a key
  std::string without = fmt::format("shrink without {}", fmt::join(excluded, ", "));
  if (without.size() > kMost)
    without = fmt::format("shrink without {} ranks, {:016x}", excluded.size(), xccl::HashOf(without));
  const std::lock_guard lock(comm.mutex);
  const int times = ++comm.shrinks[without];
  return times == 1 ? without : fmt::format("{}, time {}", without, times);
}

Status Aborted(const Comm& comm) { return comm.aborted ? comm.communicator.Aborted() : OkStatus(); }

constexpr std::chrono::seconds kNotesCome(2);

// The excluded ranks may have ended, so nothing here waits for them.
StatusOr<std::shared_ptr<Comm>> ShrinkProcesses(Comm& comm, const Members& members, const std::string& key) {
  xccl::LaunchedGroup* const group = comm.meeting->group();
  if (group == nullptr)
    return InvalidInput("shrink: the ranks have not met; expected it after a book was loaded");
  const Rank rank = comm.communicator.rank();
  Bootstrap& ranks = group->bootstrap();
  const int place = PlaceIn(members, rank);
  const Rank above = members[static_cast<size_t>(Above(place))];
  Offer made;
  Status reached;
  if (place == 0) {
    made = MakeOffer(ranks);
    ranks.Post(key, made.text);
  } else {
    reached = ranks.Link(above);
  }
  using Clock = std::chrono::steady_clock;
  const auto limit = comm.communicator.time_limit();
  const Clock::time_point since = Clock::now();
  Clock::time_point linked = since;
  while (true) {
    if (const auto text = ranks.AwaitNote(key, std::chrono::milliseconds(20))) {
      PassOn(ranks, members, place);
      if (place != 0 && text->size() != sizeof(UniqueId)) return xccl::PeerEnded(xccl::Cleaned(*text, 4096));
      return ChildById(*text, members, rank);
    }
    // Who is above may have gone when it had called this rank; then the note is about to come.
    if (ranks.IsLinked(above)) linked = Clock::now();
    if (Clock::now() - linked >= kNotesCome)
      ranks.Post(key,
                 fmt::format("rank {}: {}: {}", rank.value, key,
                             reached.ok() ? fmt::format("rank {} has ended or left; expected it to take part",
                                                        above.value)
                                          : reached.message()));
    XCCL_RETURN_IF_ERROR(Aborted(comm));
    if (Clock::now() - since >= limit)
      return xccl::LimitReached(fmt::format("rank {}: {}: rank {} did not take part within the time limit",
                                            rank.value, key, members[0].value));
  }
}

StatusOr<std::shared_ptr<Comm>> ShrinkThreads(Comm& comm, const Members& members, const std::string& key) {
  const Rank rank = comm.communicator.rank();
  return comm.shared->assembly.Meet(
      key, rank, members.size(), {0, PlaceIn(members, rank)}, MakeChildren, [&] { return Aborted(comm); },
      comm.communicator.time_limit());
}

StatusOr<std::shared_ptr<Comm>> Shrink(Comm& comm, const std::set<int>& excluded, bool aborts) {
  if (aborts) {
    comm.communicator.Abort();
  } else {
    XCCL_RETURN_IF_ERROR(comm.communicator.AsyncError());
  }
  Members members;
  for (int r = 0; r < comm.communicator.ranks(); ++r)
    if (!excluded.contains(r)) members.emplace_back(r);
  const std::string key = KeyOfShrink(comm, excluded);
  return comm.meeting != nullptr ? ShrinkProcesses(comm, members, key) : ShrinkThreads(comm, members, key);
}

StatusOr<std::set<int>> CheckExcluded(const Comm& comm, const int* excluded, int count, int flags) {
  const int ranks = comm.communicator.ranks(), own = comm.communicator.rank().value;
  if (flags != XCCL_SHRINK_DEFAULT && flags != XCCL_SHRINK_ABORT)
    return UsageError(
        fmt::format("shrink: flags {}; expected XCCL_SHRINK_DEFAULT or XCCL_SHRINK_ABORT", flags));
  if (count < 1 || count >= ranks)
    return UsageError(fmt::format("shrink: {} excluded ranks; expected 1 to {}", count, ranks - 1));
  if (excluded == nullptr) return UsageError("shrink: the list of excluded ranks is null");
  std::set<int> all;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] < 0 || excluded[i] >= ranks)
      return UsageError(fmt::format("shrink: excluded rank {}; expected 0 to {}", excluded[i], ranks - 1));
    if (excluded[i] == own)
      return UsageError(
          fmt::format("shrink: rank {} excludes itself; expected the other ranks to call", own));
    if (!all.insert(excluded[i]).second)
      return UsageError(fmt::format("shrink: rank {} is excluded twice", excluded[i]));
  }
  return all;
}

// The child's members are ranks of the parent so far, and become the job's.
void SetMembers(const Comm& parent, Comm& child) {
  if (!parent.members || !child.members) return;  // nobody asks
  if (parent.members->empty()) return child.members->clear();
  for (Rank& member : *child.members) member = (*parent.members)[member.index()];
}

// Gives the child its settings and the caller its handle.
Status Deliver(Comm& parent, const xcclConfig_t& config, StatusOr<std::shared_ptr<Comm>> child,
               xcclComm_t* to) {
  if (!child.ok()) return child.status();
  if (*child == nullptr) return OkStatus();
  xccl::c_api::Inherit(parent, **child);
  SetMembers(parent, **child);
  XCCL_RETURN_IF_ERROR(xccl::c_api::Apply(config, **child));
  *to = xccl::c_api::Add({*std::move(child)})[0];
  return OkStatus();
}

// Derives a communicator from `comm`. Errors of `check` are returned at once; the value that it returns goes
// to `make`, which may wait for the other ranks.
template <typename Wanted, typename Check, typename Make>
xcclResult_t Derive(xcclComm_t comm, xcclComm_t* newcomm, const xcclConfig_t* config, const Check& check,
                    const Make& make) {
  if (newcomm != nullptr) *newcomm = nullptr;
  Wanted wanted = {};
  xcclConfig_t read = XCCL_CONFIG_INITIALIZER;
  const xcclResult_t checked = xccl::c_api::RunOn(comm, [&](Comm& parent) -> Status {
    if (newcomm == nullptr) return UsageError("the new communicator is null");
    XCCL_ASSIGN_OR_RETURN(read, xccl::c_api::ReadConfig(config));
    XCCL_ASSIGN_OR_RETURN(wanted, check(parent));
    return OkStatus();
  });
  if (checked != xcclSuccess) return checked;
  return xccl::c_api::RunWaiting(
      comm, [=](Comm& parent) { return Deliver(parent, read, make(parent, wanted), newcomm); });
}

}  // namespace

xcclResult_t xcclCommSplit(xcclComm_t comm, int color, int key, xcclComm_t* newcomm,
                           const xcclConfig_t* config) {
  const auto check = [&](const Comm& /*parent*/) -> StatusOr<Choice> {
    if (color >= 0 || color == XCCL_SPLIT_NOCOLOR) return Choice{color, key};
    return UsageError(fmt::format("split: color {}; expected 0 or more, or XCCL_SPLIT_NOCOLOR", color));
  };
  return Derive<Choice>(comm, newcomm, config, check, Split);
}

xcclResult_t xcclCommShrink(xcclComm_t comm, const int* excludeRanksList, int excludeRanksCount,
                            xcclComm_t* newcomm, const xcclConfig_t* config, int shrinkFlags) {
  const auto check = [&](const Comm& parent) {
    return CheckExcluded(parent, excludeRanksList, excludeRanksCount, shrinkFlags);
  };
  return Derive<std::set<int>>(comm, newcomm, config, check,
                               [=](Comm& parent, const std::set<int>& excluded) {
                                 return Shrink(parent, excluded, shrinkFlags == XCCL_SHRINK_ABORT);
                               });
}
