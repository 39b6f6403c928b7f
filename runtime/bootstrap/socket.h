// TCP sockets that give up at a moment, never raise SIGPIPE, and are closed when a program is executed and in
// forked processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/bootstrap/wire.h"
#include "runtime/host/owned_file.h"

namespace xccl::bootstrap {

using Clock = std::chrono::steady_clock;

// nanoseconds::max() is for ever: time_point::max().
Clock::time_point After(std::chrono::nanoseconds limit);
// `more` after that; for ever stays so.
Clock::time_point Later(Clock::time_point until, std::chrono::nanoseconds more);
// For poll: -1 for ever, else at least 0 and rounded up.
int PollMilliseconds(Clock::time_point until);
std::string Seconds(std::chrono::nanoseconds limit);  // "30 s", "0.5 s"

// Listens on an address of this host. Port 0: any; the one that is used is returned in it. Errors: kSystem
// "cannot listen on 10.0.0.1:4000: Address already in use"; *in_use tells that case.
StatusOr<OwnedFile> Listen(Address& address, bool* in_use = nullptr);
// The two halves of Connect: a socket that can be written once it is connected, or has failed, and the end of
// that. Errors: kSystem where no socket can be opened; kPeerEnded with the system's reason.
StatusOr<OwnedFile> BeginConnect(const Address& address);
Status EndConnect(int socket);
// Errors: theirs; kLimit at `until`.
StatusOr<OwnedFile> Connect(const Address& address, Clock::time_point until);
// The next that connects; not open, and errno, where there is none. Requires: the door does not wait.
OwnedFile Accept(const OwnedFile& door);
// Small messages go out at once; a cut link is found within `silence`.
void WatchLink(int socket, std::chrono::nanoseconds silence);

// A connection whose ends have shown that they know the secret.
struct Connection {
  OwnedFile socket;
  MessageReader reader;  // bytes received and not used yet
  Seal seal;
};
// Errors: kPeerEnded, kLimit.
Status SendSealed(Connection& to, MessageType type, std::string_view body, Clock::time_point until);
// The next message, opened. Errors: as ReceiveMessage's; kInvalidInput where it is not the other end's.
StatusOr<Message> ReceiveSealed(Connection& from, uint64_t most, Clock::time_point until);

// Errors: kPeerEnded, kLimit.
Status SendAll(int socket, std::string_view bytes, Clock::time_point until);
// The next message. Errors: kPeerEnded when the other end closes, kLimit, kInvalidInput for garbage.
StatusOr<Message> ReceiveMessage(int socket, MessageReader& reader, uint64_t most, Clock::time_point until);

// Both ends have closed the connection, or an error has: nothing can be sent or come any more. A socket that
// was reset after the other end's last byte does not tell so when it is read.
bool IsOver(int socket);

// The other end and this end; port 0 where it is unknown.
Address PeerOf(int socket);
Address OwnEndOf(int socket);

// Raises the soft limit of open files to the hard one. Errors: kSystem naming both numbers where `needed` is
// more.
Status AllowOpenFiles(uint64_t needed);

}  // namespace xccl::bootstrap
