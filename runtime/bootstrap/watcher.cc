// The watcher sleeps in poll until a socket can be read or written, a heartbeat is due, or another thread
// wakes it. A heartbeat carries the highest progress that is known, and who holds this rank up: the partner
// for which it waits, or whoever holds that partner up. So after a few heartbeats all who wait name the same
// rank.
#include "runtime/bootstrap/watcher.h"

#include <fmt/core.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/exceptions.h"
#include "base/threads.h"
#include "runtime/bootstrap/identity.h"

namespace xccl::bootstrap {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr uint64_t kMostBytes =
    (uint64_t{1} << 26) + (uint64_t{1} << 24);  // for one message: an all-gather's blobs and their index
constexpr size_t kBytesPerTurn = size_t{1} << 20;
constexpr uint32_t kMostRounds = 32;  // per call: ranks are fewer than 2^32
// A note carries the id of a new group, so notes are few and small.
constexpr size_t kMostNotes = 4096, kMostOfANote = size_t{1} << 16;
constexpr nanoseconds kLinkIsDead = std::chrono::seconds(10);  // a link that answers nothing for so long

nanoseconds PeriodOf(nanoseconds silence) {
  return std::clamp<nanoseconds>(silence / 5, milliseconds(20), std::chrono::seconds(2));
}

// A rank that waits so long says for whom, and not more often: some twenty such notices reach all in time,
// and waits of a healthy group are over before.
nanoseconds StuckAfter(Clock::time_point until) {
  const Clock::time_point now = Clock::now();
  const nanoseconds left = until - std::min(now, until);
  return std::clamp<nanoseconds>(left / 40, milliseconds(20), std::chrono::seconds(1));
}

std::string NameOf(const Partner& who) {
  return fmt::format("{} at {}", Who(who.rank, who.host, who.pid), who.address);
}

}  // namespace

Watcher::Watcher(int32_t rank, int32_t ranks, std::vector<Connected> partners, nanoseconds silence)
    : rank_(rank), ranks_(ranks), silence_(silence), period_(PeriodOf(silence)) {
  const Clock::time_point now = Clock::now();
  for (Connected& connected : partners) {
    Peer& peer = peers_.emplace_back();
    peer.partner = std::move(connected.partner);
    peer.connection = std::move(connected.connection);
    peer.heard = now;
    peer.awaits = peer.partner.rank;
    WatchLink(peer.connection.socket.get(), LinkLimit());
  }
  beat_ = turned_ = now;
}

// A process may be stopped for as long as the silence limit, its host's answers may not be missing longer.
nanoseconds Watcher::LinkLimit() const { return std::min(silence_, kLinkIsDead); }

Status Watcher::Start() {
  wake_ = OwnedFile(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Status failed;
  if (!wake_.open()) failed = SystemError(fmt::format("cannot make an event: {}", std::strerror(errno)));
  if (failed.ok()) {
    StatusOr<std::thread> thread = StartThread([this] { Run(); });
    if (thread.ok()) {
      thread_ = *std::move(thread);
      return OkStatus();
    }
    failed = thread.status();
  }
  failed = Annotate(failed, fmt::format("rank {}", rank_));
  QueueToAll(MessageType::kFail, PackStatus(failed));  // else its process seems to have ended
  return failed;
}

Watcher::~Watcher() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  Wake();
  thread_.join();
}

void Watcher::Wake() const {
  const uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

Watcher::Peer& Watcher::PeerOfRank(int32_t rank) {
  const auto at =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.partner.rank == rank; });
  XCCL_CHECK(at != peers_.end());
  return *at;
}

// ---- The thread

void Watcher::Run() {
  std::unique_lock lock(mutex_);
  try {
    for (Peer& peer : peers_) Take(peer);
    while (Turn(lock)) {
    }
    Leave(lock);
  } catch (const std::exception& error) {
    if (!lock.owns_lock()) lock.lock();
    for (Peer& peer : peers_)
      peer.connection.socket = OwnedFile();  // the partners see that this rank has ended
    directory_.door.reset();
    if (!failure_) failure_ = StatusOf(error);
    changed_.notify_all();
  }
}

bool Watcher::Turn(std::unique_lock<std::mutex>& lock) {
  std::vector<pollfd> ready{{wake_.get(), POLLIN, 0},
                            {directory_.door ? directory_.door->file() : -1, POLLIN, 0}};
  const size_t others = ready.size(), peers = peers_.size();
  for (const Peer& peer : peers_) {
    const bool writes = peer.sent < peer.out.size();
    ready.push_back({peer.ended ? -1 : peer.connection.socket.get(),
                     static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  }
  Clock::time_point next = beat_ + (spread_ ? period_ / 2 : period_);
  if (awaits_ && std::pair<uint64_t, int32_t>{call_, Culprit()} != told_)
    next = std::min(next, std::max(awaits_since_, beat_) + stuck_after_);
  const int wait = PollMilliseconds(next);
  lock.unlock();
  poll(ready.data(), ready.size(), wait);
  lock.lock();
  if (ready[0].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
  }
  for (size_t p = 0; p < peers; ++p) {
    if (ready[others + p].revents == 0 || peers_[p].ended) continue;
    if ((ready[others + p].revents & ~POLLOUT) != 0) Read(peers_[p]);
    Flush(peers_[p]);
  }
  AnswerDoor();
  const Clock::time_point now = Clock::now();
  CheckSilence(now);
  const std::pair<uint64_t, int32_t> state{call_, Culprit()};
  const bool stuck =
      awaits_ && now - awaits_since_ >= stuck_after_ && now - beat_ >= stuck_after_ && state != told_;
  if (now - beat_ >= period_ || stuck || (spread_ && now - beat_ >= period_ / 2)) Beat(now);
  turned_ = now;
  if (failure_ && !callbacks_.empty()) {
    const std::vector<std::function<void(const Status&)>> callbacks = std::exchange(callbacks_, {});
    const Status failure = *failure_;
    lock.unlock();
    for (const auto& callback : callbacks) callback(failure);
    lock.lock();
  }
  return !leaving_;
}

void Watcher::Leave(std::unique_lock<std::mutex>& lock) {
  QueueToAll(MessageType::kLeft, Packer().Put(rank_).Put(noted_call_.load()).Take());
  const nanoseconds patience = failure_ ? milliseconds(100) : LinkLimit();
  const Clock::time_point until = Clock::now() + patience;
  while (Clock::now() < until) {
    bool sent = true;
    for (Peer& peer : peers_) sent = HasSent(peer) && sent;
    if (sent) return;
    lock.unlock();
    std::this_thread::sleep_for(milliseconds(1));
    lock.lock();
  }
}

// Is all with the partner's host? A socket that is closed with bytes unread discards what it has to send; so
// what comes is read, though nobody wants it.
bool Watcher::HasSent(Peer& peer) {
  if (peer.ended) return true;
  Flush(peer);
  if (peer.sent < peer.out.size()) return false;
  if (!peer.shut) shutdown(peer.connection.socket.get(), SHUT_WR);
  peer.shut = true;
  std::array<char, 1 << 16> bytes;
  ssize_t got = 1;
  while (got > 0) got = recv(peer.connection.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  int unacknowledged = 0;
  peer.ended = (got < 0 && errno != EAGAIN && errno != EINTR) || IsOver(peer.connection.socket.get());
  return peer.ended || ioctl(peer.connection.socket.get(), SIOCOUTQ, &unacknowledged) != 0 ||
         unacknowledged == 0;
}

// ---- What comes

void Watcher::Read(Peer& peer) {
  std::array<char, 1 << 16> bytes;
  for (size_t total = 0; total < kBytesPerTurn;) {
    const ssize_t got = recv(peer.connection.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    const int error = got < 0 ? errno : 0;
    if (got > 0) {
      peer.heard = Clock::now();
      peer.connection.reader.Add({bytes.data(), static_cast<size_t>(got)});
      total += static_cast<size_t>(got);
      if (static_cast<size_t>(got) == bytes.size()) continue;
    }
    Take(peer);
    if (got <= 0) return End(peer, error);
    break;
  }
  Take(peer);
}

void Watcher::Take(Peer& peer) {
  while (!peer.ended) {
    StatusOr<std::optional<Message>> message = peer.connection.reader.Next(kMostBytes);
    if (message.ok() && !*message) return;
    Take(peer, message.ok() ? StatusOr<Message>(**std::move(message)) : message.status());
  }
}

void Watcher::Take(Peer& peer, StatusOr<Message> message) {
  if (peer.ended) return;
  Status fine = message.status();
  if (fine.ok()) fine = peer.connection.seal.Open(*message);
  if (fine.ok()) fine = Hear(peer, *message);
  if (fine.ok()) return;
  FailLocked(Annotate(fine, NameOf(peer.partner)));
  peer.ended = true;
}

// Errors: kInvalidInput for what a rank of this version does not say.
Status Watcher::Hear(Peer& peer, const Message& message) {
  Unpacker body(message.body);
  switch (message.type) {
    case MessageType::kHeartbeat:
      return HearHeartbeat(peer, message.body);
    case MessageType::kFail: {
      // Ranks pass a failure on as it is, and it names a rank; else it is this peer's.
      const Status reason = UnpackStatus(message.body);
      FailLocked(NamesARank(reason.message()) ? reason : Annotate(reason, NameOf(peer.partner) + " says"),
                 &peer);
      return OkStatus();
    }
    case MessageType::kLeft: {
      while (body.ok() && !body.AtEnd()) {
        LeftRank left;
        left.rank = body.Get<int32_t>();
        left.call = body.Get<uint64_t>();
        if (body.ok() && left.rank >= 0 && left.rank < ranks_) HearLeft(peer, left);
      }
      if (!body.ok()) break;
      return OkStatus();
    }
    case MessageType::kNote: {
      const std::string_view key = body.GetText(), text = body.GetText();
      if (!body.ok() || notes_.size() >= kMostNotes || message.body.size() > kMostOfANote) break;
      PostLocked(key, text, &peer);
      return OkStatus();
    }
    case MessageType::kData:
      return HearData(peer, message.body);
    default:
      break;
  }
  return InvalidInput(fmt::format("a message of type {} and {} bytes that no rank of XCCL sends",
                                  static_cast<int>(message.type), message.body.size()));
}

// A partner is at most a call ahead: it ends a call when all ranks have begun it.
Status Watcher::HearData(Peer& peer, std::string_view bytes) {
  Unpacker body(bytes);
  const auto call = body.Get<uint64_t>();
  const auto round = body.Get<uint32_t>();
  constexpr size_t kIndex = sizeof call + sizeof round;
  if (!body.ok() || call < call_ || call > call_ + 1 || round >= kMostRounds ||
      !inbox_.try_emplace({peer.partner.rank, call, round}, bytes.substr(std::min(kIndex, bytes.size())))
           .second)
    return InvalidInput(
        fmt::format("data of call {}, round {}, {} bytes; expected that of call {} or {}, once", call, round,
                    bytes.size(), call_, call_ + 1));
  changed_.notify_all();
  return OkStatus();
}

Status Watcher::HearHeartbeat(Peer& peer, std::string_view bytes) {
  Unpacker body(bytes);
  const auto progress = body.Get<uint64_t>();
  const auto call = body.Get<uint64_t>();
  const auto awaits = body.Get<int32_t>();
  if (!body.ok() || awaits < 0 || awaits >= ranks_)
    return InvalidInput(
        fmt::format("a heartbeat of {} bytes that waits for rank {} of {}", bytes.size(), awaits, ranks_));
  peer.call = call;
  peer.awaits = awaits;
  if (progress <= progress_) return OkStatus();
  progress_ = progress;
  spread_ = true;
  return OkStatus();
}

// All learn of every rank that has left. The first notice is passed on at once, further ones together with
// the next heartbeat: where a whole group ends, each rank sends each partner a few messages.
void Watcher::HearLeft(Peer& peer, const LeftRank& left) {
  if (left.rank == peer.partner.rank) peer.left = true;
  if (left_.emplace(left.rank, left.call).second) {
    const std::string notice = Packer().Put(left.rank).Put(left.call).Take();
    if (left_.size() == 1)
      QueueToAll(MessageType::kLeft, notice, &peer);
    else
      left_news_ += notice;
  }
  changed_.notify_all();
}

void Watcher::End(Peer& peer, int error) {
  peer.ended = true;
  if (peer.left || peer.link || failure_) return;
  const bool cut = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  const Partner& who = peer.partner;
  FailLocked(cut ? PeerEnded(fmt::format("rank {}: no sign of life for {} (host {}, pid {})", who.rank,
                                         Seconds(LinkLimit()), who.host, who.pid))
                 : Ended(who.rank, who.host, who.pid));
}

// After a time in which this thread did not run, what others say comes before what they do not say.
void Watcher::CheckSilence(Clock::time_point now) {
  if (silence_ == nanoseconds::max() || failure_) return;
  const bool slept = now - turned_ > silence_ / 2;
  for (Peer& peer : peers_) {
    if (slept) peer.heard = now;
    if (peer.ended || peer.left || now - peer.heard <= silence_) continue;
    return End(peer, ETIMEDOUT);
  }
}

// ---- What goes out

void Watcher::Beat(Clock::time_point now) {
  FoldProgress();
  beat_ = now;
  spread_ = false;
  told_ = {call_, Culprit()};
  QueueToAll(MessageType::kHeartbeat, Packer().Put(progress_).Put(told_.first).Put(told_.second).Take());
  if (!left_news_.empty()) QueueToAll(MessageType::kLeft, std::exchange(left_news_, {}));
}

void Watcher::Queue(Peer& peer, MessageType type, std::string_view body) {
  if (peer.ended || peer.left) return;
  peer.out.append(peer.connection.seal.Close(type, body));
  Flush(peer);
}

void Watcher::QueueToAll(MessageType type, std::string_view body, const Peer* but) {
  for (Peer& peer : peers_)
    if (&peer != but) Queue(peer, type, body);
}

// Sends as many queued bytes as the socket takes; the rest stays queued. Errors show when the socket is read,
// or is over.
void Watcher::Flush(Peer& peer) {
  while (peer.sent < peer.out.size()) {
    const ssize_t sent = send(peer.connection.socket.get(), peer.out.data() + peer.sent,
                              peer.out.size() - peer.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) break;
    peer.sent += static_cast<size_t>(sent);
  }
  peer.out.clear();
  peer.sent = 0;
}

void Watcher::FailLocked(const Status& reason, const Peer* from) {
  if (failure_) return;
  failure_ = reason;
  QueueToAll(MessageType::kFail, PackStatus(reason), from);
  changed_.notify_all();
}

// ---- Calls of other threads

uint64_t Watcher::BeginCall() {
  const std::lock_guard lock(mutex_);
  return ++call_;
}

void Watcher::Send(int32_t to, uint64_t call, uint32_t round, std::string_view bytes) {
  std::string message = Packer().Put(call).Put(round).Take();
  message.append(bytes);
  const std::lock_guard lock(mutex_);
  Peer& peer = PeerOfRank(to);
  Queue(peer, MessageType::kData, message);
  if (peer.sent < peer.out.size()) Wake();
}

// Who holds this rank up; itself where nobody does.
int32_t Watcher::Culprit() const {
  if (!awaits_) return rank_;
  for (const Peer& peer : peers_)
    if (peer.partner.rank == *awaits_) return peer.call == call_ && !peer.ended ? peer.awaits : *awaits_;
  return *awaits_;
}

StatusOr<std::string> Watcher::Receive(int32_t from, uint64_t call, uint32_t round, Clock::time_point until,
                                       int32_t* missing) {
  std::unique_lock lock(mutex_);
  const Peer& peer = PeerOfRank(from);
  awaits_ = from;
  awaits_since_ = Clock::now();
  stuck_after_ = StuckAfter(until);
  bool woken = false;
  StatusOr<std::string> result = LimitReached("");
  while (true) {
    const auto at = inbox_.find({from, call, round});
    if (at != inbox_.end()) {
      result = std::move(at->second);
      inbox_.erase(at);
      break;
    }
    if (failure_ || peer.left) {
      *missing = from;
      result = failure_ ? *failure_ : PeerEnded("");
      break;
    }
    *missing = Culprit();
    if (Clock::now() >= until) break;
    // The watcher tells who is awaited only if it is awake in time; most waits are over before.
    const Clock::time_point stuck = awaits_since_ + stuck_after_;
    const Clock::time_point next = woken ? until : std::min(until, stuck);
    if (next == Clock::time_point::max())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, next);
    if (!woken && Clock::now() >= stuck) {
      woken = true;
      Wake();
    }
  }
  awaits_.reset();
  return result;
}

// Every rank passes a note on once, so it reaches all whom living ranks connect.
void Watcher::PostLocked(std::string_view key, std::string_view text, const Peer* from) {
  if (!notes_.emplace(key, text).second) return;
  QueueToAll(MessageType::kNote, Packer().PutText(key).PutText(text).Take(), from);
  changed_.notify_all();
}

void Watcher::Post(std::string_view key, std::string_view text) {
  const std::lock_guard lock(mutex_);
  PostLocked(key, text);
  Wake();
}

std::optional<std::string> Watcher::AwaitNote(std::string_view key, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  const auto there = [&] { return notes_.find(key) != notes_.end(); };
  if (!changed_.wait_until(lock, until, there)) return std::nullopt;
  return notes_.find(key)->second;
}

void Watcher::Fail(const Status& reason) {
  XCCL_CHECK(!reason.ok());
  const std::lock_guard lock(mutex_);
  FailLocked(reason);
  Wake();
}

std::optional<Status> Watcher::Failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Watcher::OnFailure(std::function<void(const Status&)> callback) {
  std::unique_lock lock(mutex_);
  if (!failure_) {
    callbacks_.push_back(std::move(callback));
    return;
  }
  const Status failure = *failure_;
  lock.unlock();
  callback(failure);
}

std::vector<LeftRank> Watcher::Left() const {
  const std::lock_guard lock(mutex_);
  std::vector<LeftRank> all;
  for (const auto& [rank, call] : left_) all.push_back({rank, call});
  return all;
}

bool Watcher::HasLeft(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  return left_.contains(rank);
}

void Watcher::FoldProgress() const {
  if (noted_.exchange(false, std::memory_order_relaxed)) ++progress_;
}

uint64_t Watcher::Progress() const {
  const std::lock_guard lock(mutex_);
  FoldProgress();
  return progress_;
}

}  // namespace xccl::bootstrap
