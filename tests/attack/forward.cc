// forward DEVICE DEVICE [delay=MICROSECONDS] [loss=PERCENT] [double=PERCENT] [late=PERCENT] [flip=PERCENT]
// [seed=N]
//
// Passes Ethernet frames between two devices of this network namespace and hurts them, where the kernel has
// no netem. `late` frames come kLate after their time, behind others; `flip` turns over one bit of an IPv4
// packet, behind the Ethernet header, so that checksums find it: the hosts must compute them (ethtool -K
// DEVICE tx off tso off gso off). The n-th frame's fate depends on the seed and n alone. Prints "ready" when
// frames pass; runs until standard input ends, then prints what it did. Needs CAP_NET_RAW. Cost: a copy of
// each frame, and a system call each way.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Frame = std::vector<unsigned char>;

constexpr auto kLate = std::chrono::milliseconds(3);      // more than a loaded core makes frames wait
constexpr auto kSecond = std::chrono::microseconds(500);  // delay of a doubled frame after the first
constexpr size_t kMostBytes = 1 << 16;
constexpr int kFramesPerTurn = 64;

struct Hurt {
  std::chrono::microseconds delay{};
  double loss = 0, twice = 0, late = 0, flip = 0;  // percent of the frames
  uint64_t seed = 1;
};

struct Counts {
  int64_t passed = 0, lost = 0, twice = 0, late = 0, flipped = 0;
};

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "forward: %s\n", text.c_str());
  std::exit(2);
}

int Open(const char* device) {
  const int end = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
  if (end < 0) Die(std::string("no packet socket: ") + std::strerror(errno));
  constexpr int kOn = 1, kBuffer = 8 << 20;
  setsockopt(end, SOL_PACKET, PACKET_IGNORE_OUTGOING, &kOn, sizeof kOn);
  setsockopt(end, SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer);
  setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &kBuffer, sizeof kBuffer);
  sockaddr_ll at = {};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(ETH_P_ALL);
  at.sll_ifindex = static_cast<int>(if_nametoindex(device));
  if (at.sll_ifindex == 0 || bind(end, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0)
    Die(std::string(device) + ": " + std::strerror(errno) + "; expected a device of this namespace");
  return end;
}

bool IsIpv4(const Frame& frame) {
  return frame.size() > ETH_HLEN && frame[12] == 0x08 && frame[13] == 0x00;  // the type's two bytes
}

// One direction: frames that wait for their time.
class Way {
 public:
  Way(int from, int to, const Hurt& hurt, uint64_t seed) : from_(from), to_(to), hurt_(hurt), chance_(seed) {}

  void Take(Counts& counts) {
    for (int k = 0; k < kFramesPerTurn; ++k) {
      const ssize_t got = recv(from_, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      Decide(Frame(bytes_.begin(), bytes_.begin() + got), counts);
    }
  }

  // Sends the frames that are due. Returns the time of the next frame.
  Clock::time_point Give(Clock::time_point now) {
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
      const Frame& frame = waiting_.begin()->second;
      if (send(to_, frame.data(), frame.size(), MSG_DONTWAIT) < 0) ++refused_;
      waiting_.erase(waiting_.begin());
    }
    return waiting_.empty() ? now + std::chrono::milliseconds(50) : waiting_.begin()->first;
  }
  int64_t refused() const { return refused_; }

 private:
  // Every frame draws the same numbers, so that the fate of one does not move the fates of later ones.
  void Decide(Frame frame, Counts& counts) {
    const bool lost = Draw(hurt_.loss), twice = Draw(hurt_.twice), late = Draw(hurt_.late),
               flip = Draw(hurt_.flip);
    const uint64_t bit = chance_();
    ++(lost ? counts.lost : counts.passed);
    if (lost) return;
    if (flip && IsIpv4(frame)) {
      const size_t at = ETH_HLEN + bit / 8 % (frame.size() - ETH_HLEN);
      frame[at] = static_cast<unsigned char>(frame[at] ^ (1U << bit % 8));
      ++counts.flipped;
    }
    auto due = Clock::now() + hurt_.delay;
    if (late) due += kLate;
    counts.late += late ? 1 : 0;
    if (twice) waiting_.emplace(due + kSecond, frame);
    counts.twice += twice ? 1 : 0;
    waiting_.emplace(due, std::move(frame));
  }
  bool Draw(double percent) {
    constexpr uint64_t kParts = 1'000'000;
    return static_cast<double>(chance_() % kParts) < percent / 100 * static_cast<double>(kParts);
  }

  int from_, to_;
  const Hurt& hurt_;
  std::mt19937_64 chance_;
  std::array<unsigned char, kMostBytes> bytes_ = {};
  std::multimap<Clock::time_point, Frame> waiting_;
  int64_t refused_ = 0;
};

Hurt Read(int count, char** words) {
  Hurt hurt;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    const size_t at = word.find('=');
    const std::string_view name = word.substr(0, at);
    const double value = at == std::string_view::npos ? -1 : std::atof(words[i] + at + 1);
    const std::array<std::pair<std::string_view, double*>, 4> percents{
        {{"loss", &hurt.loss}, {"double", &hurt.twice}, {"late", &hurt.late}, {"flip", &hurt.flip}}};
    const auto* percent =
        std::find_if(percents.begin(), percents.end(), [&](const auto& one) { return one.first == name; });
    if (value < 0) Die(std::string(word) + ": no number; expected NAME=NUMBER");
    if (percent != percents.end())
      *percent->second = value;
    else if (name == "delay")
      hurt.delay = std::chrono::microseconds(static_cast<int64_t>(value));
    else if (name == "seed")
      hurt.seed = static_cast<uint64_t>(value);
    else
      Die(std::string(word) + ": unknown; expected delay, loss, double, late, flip or seed");
  }
  return hurt;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) Die("two devices are needed");
  const Hurt hurt = Read(argc - 3, argv + 3);
  const int left = Open(argv[1]), right = Open(argv[2]);
  std::array<Way, 2> ways{Way(left, right, hurt, 2 * hurt.seed), Way(right, left, hurt, 2 * hurt.seed + 1)};
  Counts counts;
  std::printf("ready\n");
  std::fflush(stdout);
  std::array<pollfd, 3> ready{{{left, POLLIN, 0}, {right, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  while (ready[2].revents == 0) {
    Clock::time_point next = Clock::time_point::max();
    for (Way& way : ways) {
      way.Take(counts);
      next = std::min(next, way.Give(Clock::now()));
    }
    const auto wait = std::max<int64_t>(0, (next - Clock::now()).count());
    const timespec time{wait / 1'000'000'000, wait % 1'000'000'000};
    ppoll(ready.data(), ready.size(), &time, nullptr);
  }
  std::printf("%ld frames passed, %ld lost, %ld doubled, %ld late, %ld flipped, %ld refused by a device\n",
              static_cast<long>(counts.passed), static_cast<long>(counts.lost),
              static_cast<long>(counts.twice), static_cast<long>(counts.late),
              static_cast<long>(counts.flipped), static_cast<long>(ways[0].refused() + ways[1].refused()));
  return 0;
}
