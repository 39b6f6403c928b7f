#include "runtime/c_api/assembly.h"

#include <fmt/core.h>

#include <algorithm>

namespace xccl::c_api {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLongestSleep(20);

}  // namespace

StatusOr<std::shared_ptr<Comm>> Assembly::Meet(const std::string& key, Rank rank, size_t members, Choice mine,
                                               const Make& make, const std::function<Status()>& stop,
                                               std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Table>& place = tables_[key];
  if (place == nullptr) place = std::make_shared<Table>();
  const std::shared_ptr<Table> table = place;
  if (!table->choices.emplace(rank, mine).second)
    return InvalidInput(fmt::format("rank {}: {}: it is there already", rank.value, key));
  if (table->choices.size() == members) {
    table->made = make(table->choices);
    table->over = true;
    tables_.erase(key);
    changed_.notify_all();
  }
  const Clock::time_point since = Clock::now();
  while (!table->over) {
    changed_.wait_for(lock, kLongestSleep);
    if (table->over) break;
    lock.unlock();
    Status ended = stop();
    lock.lock();
    if (ended.ok() && Clock::now() - since >= limit)
      ended = LimitReached(fmt::format("rank {}: {}: expected {} ranks, saw {}; nothing moved for {} ms",
                                       rank.value, key, members, table->choices.size(),
                                       std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()));
    if (ended.ok() || table->over) continue;
    table->choices.erase(rank);
    return ended;
  }
  if (!table->made.ok()) return table->made.status();
  return (*table->made)[rank];
}

}  // namespace xccl::c_api
