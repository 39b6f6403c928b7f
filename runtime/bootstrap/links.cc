// Links: connections between ranks that are no partners. Who makes one names both ranks under a key that the
// group's secret and the two ranks give, so a rank is called once by every other; all that follows is as
// between partners.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/watcher.h"

namespace xccl::bootstrap {
namespace {

constexpr int kMostOfATurn = 256;  // events of strangers at the door, so that they hold up nobody
constexpr auto kReach = std::chrono::seconds(10);

Seal SealOf(const Digest& group, int32_t caller, int32_t called, bool calls) {
  return Seal(KeyedHash(group, "links", Packer().Put(caller).Put(called).Take()), calls);
}

}  // namespace

void Watcher::Open(Directory directory) {
  const std::lock_guard lock(mutex_);
  directory_ = std::move(directory);
  Wake();
}

bool Watcher::IsLinkedLocked(int32_t rank) const {
  return std::ranges::any_of(
      peers_, [&](const Peer& peer) { return peer.partner.rank == rank && !peer.ended && !peer.left; });
}

bool Watcher::IsLinked(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  return IsLinkedLocked(rank);
}

Status Watcher::Link(int32_t rank) {
  std::unique_lock lock(mutex_);
  if (IsLinkedLocked(rank) || calls_.contains(rank) || directory_.ranks.empty()) return OkStatus();
  const Partner who = directory_.ranks[static_cast<size_t>(rank)];
  lock.unlock();
  const std::string name = Who(who.rank, who.host, who.pid);
  const StatusOr<Address> address = NumericAddress(who.address, who.port);
  if (!address.ok()) return Annotate(address.status(), name);
  StatusOr<OwnedFile> socket = Connect(*address, After(kReach));
  if (!socket.ok())
    return PeerEnded(fmt::format("{}: cannot be reached from rank {} at {} ({})", name, rank_,
                                 address->ToString(), socket.status().message()));
  lock.lock();
  if (!calls_.insert(rank).second) return OkStatus();  // another thread was before
  Peer& peer = AddLink(who, {*std::move(socket), {}, SealOf(directory_.key, rank_, rank, /*calls=*/true)});
  Queue(peer, MessageType::kPartner, Packer().Put(rank_).Put(rank).Take());
  TellNotes(peer);
  Wake();
  return OkStatus();
}

Watcher::Peer& Watcher::AddLink(const Partner& partner, Connection connection) {
  Peer& peer = peers_.emplace_back();
  peer.partner = partner;
  peer.connection = std::move(connection);
  peer.heard = Clock::now();
  peer.awaits = partner.rank;
  peer.link = true;
  WatchLink(peer.connection.socket.get(), LinkLimit());
  return peer;
}

void Watcher::TellNotes(Peer& peer) {
  for (const auto& [key, text] : notes_)
    Queue(peer, MessageType::kNote, Packer().PutText(key).PutText(text).Take());
}

// The door may have read more of a guest's messages before the guest is known; they come first.
void Watcher::AnswerDoor() {
  std::map<int, Peer*> admitted;
  for (int events = 0; directory_.door && (events < kMostOfATurn || !admitted.empty()); ++events) {
    StatusOr<std::optional<Lobby::Event>> event = directory_.door->Wait(Clock::now());
    if (!event.ok()) directory_.door.reset();  // no open files are left
    if (!event.ok() || !*event) break;
    const int guest = (*event)->guest;
    if (const auto known = admitted.find(guest); known != admitted.end()) {
      if ((*event)->message) Take(*known->second, *std::move((*event)->message));
    } else if (Peer* const peer = Admit(**event)) {
      admitted[guest] = peer;
    } else {
      directory_.door->ShowOut(guest);
    }
  }
  for (const auto& [guest, peer] : admitted) Take(*peer);
}

// The link that a guest becomes; null for a stranger, and for who has called before.
Watcher::Peer* Watcher::Admit(const Lobby::Event& event) {
  if (!event.message || event.message->type != MessageType::kPartner) return nullptr;
  Unpacker ranks(event.message->body);
  const auto from = ranks.Get<int32_t>(), to = ranks.Get<int32_t>();
  if (!ranks.ok() || to != rank_ || from < 0 || from >= ranks_ || from == rank_) return nullptr;
  Message message = *event.message;
  Seal seal = SealOf(directory_.key, from, rank_, /*calls=*/false);
  if (!seal.Open(message).ok() || directory_.door->SealOf(event.guest) == nullptr) return nullptr;
  if (!called_by_.insert(from).second) return nullptr;
  Connection connection = directory_.door->Take(event.guest);
  connection.seal = seal;
  Peer& peer = AddLink(directory_.ranks[static_cast<size_t>(from)], std::move(connection));
  TellNotes(peer);
  return &peer;
}

}  // namespace xccl::bootstrap
