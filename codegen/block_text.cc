// Writes the code of each instruction: its waits, one Move per run, and what makes its results visible.
// Numbers that appear as values are left open. The opcode, marks, direct mode and total weight decide which
// code is called, so they are fixed.
#include "codegen/block_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

namespace xccl {
namespace {

// "recv_copy_send" to "RecvCopySend": what device/ calls it.
std::string CamelCase(std::string_view name) {
  std::string text;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') text += begins ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return text;
}

std::string OpName(Opcode op) { return "Op::k" + CamelCase(ToString(op)); }
std::string BufferName(BufferKind kind) { return CamelCase(ToString(kind)); }

std::string ModeName(DirectMode mode) {
  constexpr std::array<std::string_view, 7> kNames = {
      "kNo", "kPut", "kPutOutOfPlace", "kGet", "kGetOutOfPlace", "kSwitchPut", "kSwitchGet"};
  return fmt::format("Direct::{}", kNames[static_cast<size_t>(mode)]);
}

// One end of the block: its name in the code and what the block's messages on it need.
struct EndUse {
  int32_t connection = 0;
  std::string name;
  bool puts = false, gets = false;
  bool by_switch = false;  // they go through a group's switch
  bool group = false;      // `connection` is one of the rank's groups

  bool Is(std::optional<int32_t> end, std::optional<int32_t> of_group) const {
    return group ? of_group == connection : end == connection;
  }
};

class BlockWriter {
 public:
  BlockWriter(const Program& program, const KernelForm& form, Rank rank, const KernelBlock& block)
      : program_(program), form_(form), rank_(rank), block_(block) {}

  BlockText Write() {
    CollectEnds();
    OpenEnds();
    Line("  while (b.NextPass({})) {{", Numbers({static_cast<int64_t>(block_.instructions.size())}));
    for (const KernelInstruction& i : block_.instructions) WriteInstruction(i);
    Line("  }}");
    for (const EndUse& end : to_)
      if (end.gets) Line("  b.Drain({});", end.name);
    Line("  b.Leave();");
    for (const auto* ends : {&from_, &to_})
      for (const EndUse& end : *ends) Line("  b.Close{}({});", end.group ? "Group" : "", end.name);
    text_.ends = static_cast<int32_t>(from_.size() + to_.size());
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.code += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  // Numbers appear in the code in the order of these calls.
  std::string Numbers(std::initializer_list<int64_t> values) {
    std::string list;
    for (int64_t value : values) {
      text_.numbers.push_back(value);
      if (!list.empty()) list += ", ";
      list += kNumber;
    }
    return list;
  }

  // Ends are named in the order of their first use, so that ranks with differently sorted connections have
  // the same code.
  void CollectEnds() {
    for (const KernelInstruction& i : block_.instructions) {
      if (i.from || i.from_group) Use(from_, i.from, i.from_group, i.receive);
      if (i.to || i.to_group) Use(to_, i.to, i.to_group, i.send);
    }
    const auto name = [](std::vector<EndUse>& ends, std::string_view stem) {
      for (size_t k = 0; k < ends.size(); ++k)
        ends[k].name = ends.size() == 1 ? std::string(stem) : fmt::format("{}{}", stem, k);
    };
    name(from_, "from");
    name(to_, "to");
  }
  static std::vector<EndUse>::const_iterator Find(const std::vector<EndUse>& ends,
                                                  std::optional<int32_t> connection,
                                                  std::optional<int32_t> group) {
    return std::ranges::find_if(ends, [&](const EndUse& end) { return end.Is(connection, group); });
  }
  static void Use(std::vector<EndUse>& ends, std::optional<int32_t> connection, std::optional<int32_t> group,
                  DirectMode mode) {
    const auto place = Find(ends, connection, group) - ends.begin();
    if (place == std::ssize(ends))
      ends.push_back({group ? *group : *connection, "", false, false, false, group.has_value()});
    EndUse& end = ends[static_cast<size_t>(place)];
    end.puts = end.puts || IsPut(mode);
    end.gets = end.gets || IsGet(mode);
    end.by_switch = end.by_switch || BySwitch(mode);
  }

  void OpenEnds() {
    int32_t index = 0;
    for (const auto* ends : {&from_, &to_}) {
      for (const EndUse& end : *ends) {
        if (end.group) {
          Line("  End {} = b.OpenGroup({}, {});", end.name, index++, Numbers({end.connection}));
          continue;
        }
        const Connection& c = ConnectionOf(program_, form_.ranks[rank_], end.connection);
        const Rank peer = ends == &from_ ? c.src : c.dst;
        Line("  End {} = b.Open({}, {});", end.name, index++, Numbers({end.connection, peer.value}));
      }
    }
    if (from_.empty() || to_.empty()) Line("  End none{{}};");
    // The rank that receives a put, or that a get reads, sends the addresses of its buffers; the other rank
    // waits for them. The members of a switch's group do that, and wait for what its root makes of it.
    const auto call = [&](std::string_view step, const auto& wanted) {
      for (const auto* ends : {&from_, &to_})
        for (const EndUse& end : *ends)
          if (wanted(end, ends == &from_))
            Line("  b.{}({}{});", step, end.name, end.by_switch && !end.group ? ", kDirectSwitch" : "");
    };
    const auto lends = [](const EndUse& end, bool from) {
      return !end.group && (from ? end.puts : end.gets);
    };
    call("Introduce", lends);
    call("Announce", lends);
    std::string roots;
    for (const auto* ends : {&from_, &to_})
      for (const EndUse& end : *ends)
        if (end.group && end.by_switch) roots += (roots.empty() ? "" : ", ") + end.name;
    if (!roots.empty()) Line("  b.Agree({});", roots);
    call("Meet", [](const EndUse& end, bool from) {
      return !end.group && (end.by_switch || (from ? end.gets : end.puts));
    });
    Line("  b.Enter();");
  }

  // Writes an address: "b.Output(3)", "b.PeerScratch(Direct::kGet, from, 0, Share<8>(b, 2), Share<8>(b, 1))".
  std::string Address(const KernelRun& run, const KernelPlace& place, Rank owner, const std::string& peer_of,
                      DirectMode mode) {
    std::string call =
        peer_of.empty() ? fmt::format("b.{}(", BufferName(place.buffer))
                        : fmt::format("b.Peer{}({}, {}, ", BufferName(place.buffer), ModeName(mode), peer_of);
    call += Numbers({place.position});
    if (place.buffer != BufferKind::kScratch) return call + ")";
    const std::vector<ScratchRun>& runs = form_.ranks[owner].scratch;
    const ScratchRun& own = runs[static_cast<size_t>(place.position)];
    if (form_.tables) {
      call += fmt::format(", 0, ShareOf<{}>(b.Elements({}), ", own.total, Numbers({run.part.value}));
      return call + Numbers({own.before}) + "))";
    }
    std::map<int64_t, int64_t>
        weight_before;  // by total; includes all totals, so that ranks have the same code
    for (const ScratchRun& r : runs) weight_before[r.total] = 0;
    for (int32_t r = 0; r < place.position; ++r)
      weight_before[runs[static_cast<size_t>(r)].total] += runs[static_cast<size_t>(r)].weight;
    call += ", ";
    for (auto it = weight_before.begin(); it != weight_before.end(); ++it)
      call += fmt::format("{}Share<{}>(b, {})", it == weight_before.begin() ? "" : " + ", it->first,
                          Numbers({it->second}));
    return call + fmt::format(", Share<{}>(b, {}))", own.total, Numbers({own.before}));
  }

  static std::string EndName(const std::vector<EndUse>& ends, std::optional<int32_t> connection,
                             std::optional<int32_t> group) {
    if (connection || group) return Find(ends, connection, group)->name;
    return ends.empty() ? "none" : ends[0].name;
  }

  // The test whether a message is direct, as seen from this end.
  static std::string DirectTest(std::string_view question, DirectMode mode, const std::string& end,
                                BufferKind buffer) {
    return fmt::format("b.{}({}, {}, Buffer::k{})", question, ModeName(mode), end, BufferName(buffer));
  }
  // Does the peer put what is received, does it get what is sent?
  static std::string LendsPut(const KernelInstruction& i, const std::string& from) {
    return i.from && IsPut(i.receive) ? DirectTest("Lends", i.receive, from, i.what.dst.buffer) : "false";
  }
  static std::string LendsGet(const KernelInstruction& i, const std::string& to) {
    return i.to && IsGet(i.send) ? DirectTest("Lends", i.send, to, SentFrom(i)) : "false";
  }

  void WriteInstruction(const KernelInstruction& i) {
    const std::string from = EndName(from_, i.from, i.from_group), to = EndName(to_, i.to, i.to_group);
    text_.comments.push_back(Describe(i, program_, rank_, form_) + DirectComment(i));
    Line("    // {}", std::string(1, kComment));
    Line("    b.Begin({});", Numbers({i.threadblock, i.index}));
    for (const KernelDependency& d : i.after) {
      const size_t instructions = form_.ranks[rank_].blocks[static_cast<size_t>(d.block)].instructions.size();
      Line("    b.AwaitBlock({});", Numbers({d.block, static_cast<int64_t>(instructions), d.index}));
    }
    if (i.from) Line("    b.AwaitMessage({});", from);
    if (i.from_group) Line("    b.AwaitMessages({});", from);
    if (i.to_group) Line("    b.AwaitSlots({});", to);
    if (i.to) {
      const bool puts = IsPut(i.send) && !i.runs.empty();
      Line("    b.AwaitSlot({}, {});", to,
           BySwitch(i.send) ? "false"
           : puts           ? DirectTest("Reaches", i.send, to, i.runs[0].peer.buffer)
                            : LendsGet(i, to));
    }
    if (i.runs.empty()) {
      Line("    b.Ready();");
    } else {
      Line("    if (b.Ready()) {{");
      for (const KernelRun& run : i.runs) WriteRun(i, run, from, to);
      Line("    }}");
    }
    Line("    Finish{}<{}, {}>(b, {}, {});", OfGroup(i), OpName(i.what.op), i.signals, from, to);
  }

  static std::string_view OfGroup(const KernelInstruction& i) {
    return i.from_group || i.to_group ? "Group" : "";
  }

  void WriteRun(const KernelInstruction& i, const KernelRun& run, const std::string& from,
                const std::string& to) {
    std::string marks;
    for (const auto& [set, name] : {std::pair(i.what.first, "kFirst"), std::pair(i.what.final, "kFinal"),
                                    std::pair(i.received_first, "kReceivedFirst")})
      if (set) marks += std::string(marks.empty() ? "" : " | ") + name;
    Line("      Move{}<{}>(b, {}, {}, {}, Chunks<{}>{{{}}},", OfGroup(i), OpName(i.what.op),
         marks.empty() ? "0" : marks, from, to, run.total,
         Numbers({run.part.value, run.before, run.weight, run.count}));
    std::string places;
    const auto place = [&](std::string_view name, const std::string& address) {
      places += fmt::format("{}.{} = {}", places.empty() ? "" : ", ", name, address);
    };
    if (ReadsSource(i.what.op)) place("src", Address(run, run.src, rank_, "", DirectMode::kNo));
    if (WritesDestination(i.what.op)) place("dst", Address(run, run.dst, rank_, "", DirectMode::kNo));
    // A switch reaches no scratch, so its place is any rank's.
    if (IsPut(i.send) && (i.to || i.to_group))
      place("put", Address(run, run.peer,
                           i.to ? ConnectionOf(program_, form_.ranks[rank_], *i.to).dst : rank_, to, i.send));
    if (IsGet(i.receive) && (i.from || i.from_group))
      place("get", Address(run, run.peer_src,
                           i.from ? ConnectionOf(program_, form_.ranks[rank_], *i.from).src : rank_, from,
                           i.receive));
    if (!OfGroup(i).empty()) {
      Line("           {{{}}});", places);
      return;
    }
    Line("           {{{}}}, {}, {});", places, LendsPut(i, from), LendsGet(i, to));
  }

  static std::string DirectComment(const KernelInstruction& i) {
    std::string text;
    if (i.receive != DirectMode::kNo)
      text += IsPut(i.receive) ? "; may arrive in place"
              : i.from         ? "; may be read from the sender"
                               : "; the switch may add up the buffers";
    if (i.send != DirectMode::kNo)
      text += IsGet(i.send) ? "; may be read by the receiver"
              : i.to        ? "; may be stored at the receiver"
                            : "; the switch may store in the buffers";
    return text;
  }

  const Program& program_;
  const KernelForm& form_;
  const Rank rank_;
  const KernelBlock& block_;
  std::vector<EndUse> from_, to_;
  BlockText text_;
};

}  // namespace

BlockText TextOf(const Program& program, const KernelForm& form, Rank rank, const KernelBlock& block) {
  return BlockWriter(program, form, rank, block).Write();
}

}  // namespace xccl
