// Instruction after instruction: what it waits for, one Move a run, what it makes visible. What stands in the
// code as a number is left open; what decides which code is called (opcode, marks, direct mode, weights'
// total) is not.
#include "codegen/block_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace xccl {
namespace {

std::string_view OpName(Opcode op) {
  switch (op) {
    case Opcode::kSend:
      return "Op::kSend";
    case Opcode::kRecv:
      return "Op::kRecv";
    case Opcode::kRecvCopySend:
      return "Op::kRecvCopySend";
    case Opcode::kRecvReduceSend:
      return "Op::kRecvReduceSend";
    case Opcode::kRecvReduceCopy:
      return "Op::kRecvReduceCopy";
    case Opcode::kRecvReduceCopySend:
      return "Op::kRecvReduceCopySend";
    case Opcode::kCopy:
      return "Op::kCopy";
    case Opcode::kReduce:
      return "Op::kReduce";
    case Opcode::kNop:
    case Opcode::kSwitchReduce:  // not in a KernelForm
    case Opcode::kSwitchStore:
      return "Op::kNop";
  }
  return "";
}

std::string_view ModeName(DirectMode mode) {
  switch (mode) {
    case DirectMode::kNo:
      return "Direct::kNo";
    case DirectMode::kPut:
      return "Direct::kPut";
    case DirectMode::kPutOutOfPlace:
      return "Direct::kPutOutOfPlace";
    case DirectMode::kGet:
      return "Direct::kGet";
    case DirectMode::kGetOutOfPlace:
      return "Direct::kGetOutOfPlace";
  }
  return "";
}

std::string_view BufferName(BufferKind kind) {
  switch (kind) {
    case BufferKind::kInput:
      return "Input";
    case BufferKind::kOutput:
      return "Output";
    case BufferKind::kScratch:
      return "Scratch";
  }
  return "";
}

// One end of the block: its name in the code and what the block's messages on it need.
struct EndUse {
  std::string name;
  bool puts = false, gets = false;
};

class Writer {
 public:
  Writer(const Program& program, const KernelForm& form, Rank rank, const KernelBlock& block)
      : program_(program), form_(form), rank_(rank), block_(block) {}

  BlockText Write() {
    CollectEnds();
    OpenEnds();
    text_.code +=
        "  while (b.NextPass(" + Number(static_cast<int64_t>(block_.instructions.size())) + ")) {\n";
    for (const KernelInstruction& i : block_.instructions) WriteInstruction(i);
    text_.code += "  }\n";
    for (const auto& [connection, end] : to_)
      if (end.gets) text_.code += fmt::format("  b.Drain({});\n", end.name);
    text_.code += "  b.Leave();\n";
    for (const auto* ends : {&from_, &to_})
      for (const auto& [connection, end] : *ends) text_.code += fmt::format("  b.Close({});\n", end.name);
    return std::move(text_);
  }

 private:
  std::string Number(int64_t value) {
    text_.numbers.push_back(value);
    return std::string(1, kNumber);
  }

  void CollectEnds() {
    for (const KernelInstruction& i : block_.instructions) {
      const auto use = [](std::map<int32_t, EndUse>& ends, int32_t connection, DirectMode mode) {
        EndUse& end = ends[connection];
        end.puts = end.puts || IsPut(mode);
        end.gets = end.gets || IsGet(mode);
      };
      if (i.from) use(from_, *i.from, i.receive);
      if (i.to) use(to_, *i.to, i.send);
    }
    int32_t k = 0;
    for (auto& [connection, end] : from_) end.name = from_.size() == 1 ? "from" : fmt::format("from{}", k++);
    k = 0;
    for (auto& [connection, end] : to_) end.name = to_.size() == 1 ? "to" : fmt::format("to{}", k++);
  }

  const Connection& ConnectionOf(int32_t local) const {
    return program_
        .connections[static_cast<size_t>(form_.ranks[rank_].connections[static_cast<size_t>(local)])];
  }

  void OpenEnds() {
    for (const auto* ends : {&from_, &to_}) {
      for (const auto& [connection, end] : *ends) {
        const Rank peer = ends == &from_ ? ConnectionOf(connection).src : ConnectionOf(connection).dst;
        text_.code += fmt::format("  End {} = b.Open(", end.name) + Number(connection) + ", " +
                      Number(peer.value) + ");\n";
      }
    }
    if (from_.empty() || to_.empty()) text_.code += "  End none;\n";
    // Who receives a put or is read by a get says where its buffers are; the other waits to hear it.
    for (const auto& [connection, end] : from_)
      if (end.puts) text_.code += fmt::format("  b.Introduce({});\n", end.name);
    for (const auto& [connection, end] : to_)
      if (end.gets) text_.code += fmt::format("  b.Introduce({});\n", end.name);
    for (const auto& [connection, end] : from_)
      if (end.gets) text_.code += fmt::format("  b.Meet({});\n", end.name);
    for (const auto& [connection, end] : to_)
      if (end.puts) text_.code += fmt::format("  b.Meet({});\n", end.name);
  }

  // "b.Output(3)", "b.PeerScratch<Direct::kGet>(from, 0, b.Share<8>(2), b.Share<8>(1))".
  std::string Address(const KernelRun& run, const KernelPlace& place, Rank owner, const std::string& peer_of,
                      DirectMode mode) {
    std::string call =
        peer_of.empty() ? fmt::format("b.{}(", BufferName(place.buffer))
                        : fmt::format("b.Peer{}<{}>({}, ", BufferName(place.buffer), ModeName(mode), peer_of);
    call += Number(place.position);
    if (place.buffer != BufferKind::kScratch) return call + ")";
    const std::vector<ScratchRun>& runs = form_.ranks[owner].scratch;
    const ScratchRun& own = runs[static_cast<size_t>(place.position)];
    if (form_.tables)
      return call + fmt::format(", 0, ShareOf<{}>(b.Elements(", run.total) + Number(run.part.value) + "), " +
             Number(own.before) + "))";
    std::map<int64_t, int64_t> weight_before;  // by total; all totals, so that ranks have the same code
    for (const ScratchRun& r : runs) weight_before[r.total] = 0;
    for (int32_t r = 0; r < place.position; ++r)
      weight_before[runs[static_cast<size_t>(r)].total] += runs[static_cast<size_t>(r)].weight;
    std::string sum;
    for (const auto& [total, weight] : weight_before)
      sum += fmt::format("{}b.template Share<{}>(", sum.empty() ? "" : " + ", total) + Number(weight) + ")";
    return call + ", " + sum + fmt::format(", b.template Share<{}>(", own.total) + Number(own.before) + "))";
  }

  static std::string EndName(const std::map<int32_t, EndUse>& ends,
                             const std::optional<int32_t>& connection) {
    return connection ? ends.at(*connection).name : ends.empty() ? "none" : ends.begin()->second.name;
  }

  // Whether the message goes straight, as seen from this end: "b.Lends<…>(from, Buffer::kOutput)", or
  // "false".
  static std::string Lends(const std::string& end, DirectMode mode, BufferKind buffer) {
    return fmt::format("b.template Lends<{}>({}, Buffer::k{})", ModeName(mode), end, BufferName(buffer));
  }
  static std::string Reaches(const std::string& end, DirectMode mode, BufferKind buffer) {
    return fmt::format("b.template Reaches<{}>({}, Buffer::k{})", ModeName(mode), end, BufferName(buffer));
  }
  static BufferKind SentFrom(const KernelInstruction& i) {
    return i.what.op == Opcode::kSend ? i.what.src.buffer : i.what.dst.buffer;
  }

  void WriteInstruction(const KernelInstruction& i) {
    const Opcode op = i.what.op;
    const std::string from = EndName(from_, i.from), to = EndName(to_, i.to);
    const bool lends_put = i.from && IsPut(i.receive), lends_get = i.to && IsGet(i.send);
    text_.comments.push_back(Describe(i, program_, rank_, form_) + DirectComment(i));
    text_.code += fmt::format("    // {}\n", kComment);
    text_.code += "    b.Begin(" + Number(i.threadblock) + ", " + Number(i.index) + ");\n";
    for (const KernelDependency& d : i.after) {
      const size_t instructions = form_.ranks[rank_].blocks[static_cast<size_t>(d.block)].instructions.size();
      text_.code += "    b.AwaitBlock(" + Number(d.block) + ", " +
                    Number(static_cast<int64_t>(instructions)) + ", " + Number(d.index) + ");\n";
    }
    if (i.from) text_.code += fmt::format("    b.AwaitMessage({});\n", from);
    if (i.to) {
      std::string direct = "false";
      if (lends_get) direct = Lends(to, i.send, SentFrom(i));
      if (IsPut(i.send) && !i.runs.empty()) direct = Reaches(to, i.send, i.runs[0].peer.buffer);
      text_.code += fmt::format("    b.AwaitSlot({}, {});\n", to, direct);
    }
    if (i.runs.empty()) {
      text_.code += "    b.Ready();\n";
    } else {
      text_.code += "    if (b.Ready()) {\n";
      for (const KernelRun& run : i.runs) WriteRun(i, run, from, to, lends_put, lends_get);
      text_.code += "    }\n";
    }
    text_.code += fmt::format("    b.template Finish<{}, {}>({}, {});\n", OpName(op), i.signals, from, to);
  }

  void WriteRun(const KernelInstruction& i, const KernelRun& run, const std::string& from,
                const std::string& to, bool lends_put, bool lends_get) {
    std::string marks;
    for (const auto& [set, name] : {std::pair(i.what.first, "kFirst"), std::pair(i.what.final, "kFinal"),
                                    std::pair(i.received_first, "kReceivedFirst")})
      if (set) marks += std::string(marks.empty() ? "" : " | ") + name;
    text_.code += fmt::format("      b.template Move<{}>({}, {}, {}, Chunks<{}>{{", OpName(i.what.op),
                              marks.empty() ? "0" : marks, from, to, run.total);
    text_.code += Number(run.part.value) + ", " + Number(run.before) + ", " + Number(run.weight) + ", " +
                  Number(run.count) + "},\n";
    std::string places;
    const auto place = [&](std::string_view name, std::string address) {
      places += fmt::format("{}.{} = {}", places.empty() ? "" : ", ", name, address);
    };
    if (ReadsSource(i.what.op)) place("src", Address(run, run.src, rank_, "", DirectMode::kNo));
    if (WritesDestination(i.what.op)) place("dst", Address(run, run.dst, rank_, "", DirectMode::kNo));
    if (i.to && IsPut(i.send)) place("put", Address(run, run.peer, ConnectionOf(*i.to).dst, to, i.send));
    if (i.from && IsGet(i.receive))
      place("get", Address(run, run.peer_src, ConnectionOf(*i.from).src, from, i.receive));
    text_.code += fmt::format("             {{{}}}, {}, {});\n", places,
                              lends_put ? Lends(from, i.receive, i.what.dst.buffer) : "false",
                              lends_get ? Lends(to, i.send, SentFrom(i)) : "false");
  }

  static std::string DirectComment(const KernelInstruction& i) {
    std::string text;
    if (i.from && i.receive != DirectMode::kNo)
      text += IsPut(i.receive) ? "; may arrive in place" : "; may be read from the sender";
    if (i.to && i.send != DirectMode::kNo)
      text += IsPut(i.send) ? "; may be stored at the receiver" : "; may be read by the receiver";
    return text;
  }

  const Program& program_;
  const KernelForm& form_;
  const Rank rank_;
  const KernelBlock& block_;
  std::map<int32_t, EndUse> from_, to_;  // by connection
  BlockText text_;
};

}  // namespace

BlockText TextOf(const Program& program, const KernelForm& form, Rank rank, const KernelBlock& block) {
  return Writer(program, form, rank, block).Write();
}

}  // namespace xccl
