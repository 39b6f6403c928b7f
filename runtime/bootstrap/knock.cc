#include "runtime/bootstrap/knock.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/bootstrap/wire.h"

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kMostWords = 1 << 16;
// With somebody who does not answer. A rendezvous that serves thousands may be busy.
constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kDeadLink = std::chrono::seconds(10);  // after which a host that is gone is missed
constexpr auto kMostPause = std::chrono::milliseconds(200);

}  // namespace

Knocks::Knocks(const std::vector<Address>& addresses, const std::string& secret) : key_(KeyOf(secret)) {
  for (const Address& address : addresses) doors_.emplace_back().address = address;
}

void Knocks::Fail(Door& door, const Status& why) {
  door.connection = Connection();
  door.stage = Stage::kPause;
  door.until = After(door.pause);
  door.pause = std::min(door.pause * 2, kMostPause);
  door.why = why;
  door.refused = false;
}

void Knocks::Start(Door& door) {
  door.began = Clock::now();
  door.until = After(kPatience);
  door.stage = Stage::kConnects;
  StatusOr<OwnedFile> end = BeginConnect(door.address);
  if (!end.ok()) return Fail(door, end.status());
  door.connection.socket = *std::move(end);
}

Status Knocks::Knock(Door& door) {
  const int end = door.connection.socket.get();
  XCCL_RETURN_IF_ERROR(EndConnect(end));
  WatchLink(end, kDeadLink);
  door.mine = RandomDigest();
  door.stage = Stage::kKnocked;
  return SendAll(end, Encode(MessageType::kKnock, View(door.mine)), door.until);
}

StatusOr<bool> Knocks::Hear(Door& door) {
  Connection& server = door.connection;
  const StatusOr<Message> theirs =
      ReceiveMessage(server.socket.get(), server.reader, kMostWords, Clock::now());
  if (theirs.status().code() == StatusCode::kLimit) return false;
  if (!theirs.ok()) return theirs.status();
  if (theirs->type == MessageType::kRefused) return UnpackStatus(theirs->body, kMostOfAStrangersReason);
  if (theirs->type != MessageType::kChallenge || theirs->body.size() != sizeof(Digest))
    return InvalidInput("who listens there speaks another protocol");
  const Digest key = KeyedHash(key_, kUseOfRendezvous, std::string(View(door.mine)) + theirs->body);
  server.seal = Seal(key, /*calls=*/true);
  door.took = Clock::now() - door.began;
  return true;
}

// True when the challenge is there.
bool Knocks::GoOn(Door& door, bool ready) {
  const bool late = Clock::now() >= door.until;
  if (door.stage == Stage::kPause && late) {
    Start(door);
  } else if (door.stage == Stage::kConnects && ready) {
    if (const Status knocked = Knock(door); !knocked.ok()) Fail(door, knocked);
  } else if (door.stage == Stage::kKnocked && ready) {
    const StatusOr<bool> heard = Hear(door);
    if (!heard.ok()) Fail(door, heard.status());
    return heard.ok() && *heard;
  } else if (late && door.stage != Stage::kTaken) {
    Fail(door, LimitReached(door.stage == Stage::kConnects ? "no answer" : "nothing came in time"));
  }
  return false;
}

std::optional<size_t> Knocks::Next(Clock::time_point until) {
  std::vector<pollfd> ends(doors_.size());
  do {
    Clock::time_point next = until;
    for (size_t i = 0; i < doors_.size(); ++i) {
      Door& door = doors_[i];
      if (door.stage == Stage::kPause) GoOn(door, false);
      const bool waits = door.stage == Stage::kConnects || door.stage == Stage::kKnocked;
      const short events = door.stage == Stage::kConnects ? POLLOUT : POLLIN;
      ends[i] = {waits ? door.connection.socket.get() : -1, events, 0};
      if (door.stage != Stage::kTaken) next = std::min(next, door.until);
    }
    poll(ends.data(), ends.size(), PollMilliseconds(next));
    for (size_t i = 0; i < doors_.size(); ++i)
      if (GoOn(doors_[i], ends[i].revents != 0)) return i;
  } while (Clock::now() < until);
  return std::nullopt;
}

Connection Knocks::Take(size_t which) {
  doors_[which].stage = Stage::kTaken;
  return std::exchange(doors_[which].connection, Connection());
}

void Knocks::Failed(size_t which, const Status& why, bool refused) {
  Fail(doors_[which], why);
  doors_[which].refused = refused;
}

void Knocks::CloseAll() {
  for (Door& door : doors_) Fail(door, door.why);
}

bool Knocks::AllRefused() const { return std::ranges::all_of(doors_, &Door::refused); }

std::string Knocks::Reasons() const {
  std::string all;
  for (const Door& door : doors_)
    all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", door.address.ToString(), door.why.message());
  return all;
}

}  // namespace xccl::bootstrap
