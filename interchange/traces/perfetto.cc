// A track is a thread of a process, the only kind of track in the format. Slices of one track must nest, so
// slices that overlap are spread over lanes: each slice takes the first lane that is free.
#include "interchange/traces/perfetto.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/json/json_writer.h"
#include "ir/analysis/program_index.h"

namespace xccl {
namespace {

// Processes of the trace.
constexpr int32_t kPath = 1, kLinks = 2, kRanks = 3, kProgramPath = 4, kProgramLinks = 5, kFirstRank = 10;
constexpr int32_t kLanes = 64;  // tracks of one link or rank

struct Slice {
  int32_t process = 0;
  int32_t track = 0;  // a link or a rank; its lanes are tracks × kLanes + lane
  int64_t start_ps = 0, end_ps = 0;
  std::string name;
  std::vector<std::pair<std::string, int64_t>> args;
  std::vector<int64_t> flows_out, flows_in;  // arrows that begin and end here
  int32_t lane = 0;
};

class Writer {
 public:
  explicit Writer(std::ostream& out) : json_(out) {}

  void Write(const std::vector<Slice>& slices, const std::map<int32_t, std::string>& processes,
             const std::map<std::pair<int32_t, int32_t>, std::string>& tracks, const TraceLabels& labels,
             const std::vector<std::pair<std::string, int64_t>>& facts) {
    json_.BeginObject(JsonWriter::Layout::kLines);
    json_.Member("displayTimeUnit", std::string_view("ns"));
    json_.Key("otherData");
    json_.BeginObject();
    json_.Member("title", labels.title);
    json_.Member("model", labels.model);
    json_.Member("machine", labels.machine.empty() ? std::string("none: links alone") : labels.machine);
    json_.Member("version", labels.version);
    for (const auto& [key, value] : facts) json_.Member(key, value);
    json_.EndObject();
    json_.Key("traceEvents");
    json_.BeginArray(JsonWriter::Layout::kLines);
    Names(slices, processes, tracks);
    for (const Slice& slice : slices) Event(slice);
    json_.EndArray();
    json_.EndObject();
    json_.Finish();
  }

 private:
  static int32_t Thread(const Slice& slice) { return slice.track * kLanes + slice.lane; }
  static double Us(int64_t ps) { return static_cast<double>(ps) / 1e6; }

  template <typename Value>
  void Meta(std::string_view what, int32_t process, int32_t thread, std::string_view key,
            const Value& value) {
    json_.BeginObject();
    json_.Member("ph", std::string_view("M"));
    json_.Member("name", what);
    json_.Member("pid", process);
    json_.Member("tid", thread);
    json_.Key("args");
    json_.BeginObject();
    json_.Member(key, value);
    json_.EndObject();
    json_.EndObject();
  }
  void Name(std::string_view what, int32_t process, int32_t thread, std::string_view name) {
    Meta(what, process, thread, "name", name);
  }
  void Sort(std::string_view what, int32_t process, int32_t thread, int32_t index) {
    Meta(what, process, thread, "sort_index", index);
  }

  void Names(const std::vector<Slice>& slices, const std::map<int32_t, std::string>& processes,
             const std::map<std::pair<int32_t, int32_t>, std::string>& tracks) {
    for (const auto& [process, name] : processes) {
      Name("process_name", process, 0, name);
      Sort("process_sort_index", process, 0, process);
    }
    std::map<std::pair<int32_t, int32_t>, int32_t> lanes;
    for (const Slice& slice : slices) {
      int32_t& most = lanes[{slice.process, slice.track}];
      most = std::max(most, slice.lane);
    }
    for (const auto& [track, most] : lanes) {
      const auto name = tracks.find(track);
      for (int32_t lane = 0; lane <= most; ++lane) {
        const int32_t thread = track.second * kLanes + lane;
        std::string text = name != tracks.end() ? name->second : "";
        if (lane > 0) text += fmt::format(" ({})", lane + 1);
        Name("thread_name", track.first, thread, text);
        Sort("thread_sort_index", track.first, thread, thread);
      }
    }
  }

  void Event(const Slice& slice) {
    json_.BeginObject();
    json_.Member("ph", std::string_view("X"));
    json_.Member("pid", slice.process);
    json_.Member("tid", Thread(slice));
    json_.Key("ts");
    json_.Number(Us(slice.start_ps));
    json_.Key("dur");
    json_.Number(Us(slice.end_ps - slice.start_ps));
    json_.Member("name", slice.name);
    json_.Key("args");
    json_.BeginObject();
    json_.Member("start_ps", slice.start_ps);
    json_.Member("end_ps", slice.end_ps);
    for (const auto& [key, value] : slice.args) json_.Member(key, value);
    json_.EndObject();
    json_.EndObject();
    for (const int64_t id : slice.flows_out) Flow(slice, "s", id, slice.start_ps);
    for (const int64_t id : slice.flows_in) Flow(slice, "f", id, std::max(slice.start_ps, slice.end_ps - 1));
  }
  void Flow(const Slice& slice, std::string_view phase, int64_t id, int64_t at_ps) {
    json_.BeginObject();
    json_.Member("ph", phase);
    if (phase == "f") json_.Member("bp", std::string_view("e"));
    json_.Member("cat", std::string_view("message"));
    json_.Member("name", std::string_view("message"));
    json_.Member("id", id);
    json_.Member("pid", slice.process);
    json_.Member("tid", Thread(slice));
    json_.Key("ts");
    json_.Number(Us(at_ps));
    json_.EndObject();
  }

  JsonWriter json_;
};

class TraceBuilder {
 public:
  explicit TraceBuilder(const Topology& topology) : topology_(topology) {}

  void AddSchedule(const ScheduleTrace& trace) {
    processes_[kPath] = "schedule: critical path";
    processes_[kLinks] = "schedule: links";
    processes_[kRanks] = "schedule: ranks";
    if (trace.slices.empty()) {
      for (const TracedHop& hop : trace.hops) AddHop(trace, hop, hop.start_ps, hop.end_ps, trace.segments);
    } else {
      for (const TracedSlice& slice : trace.slices)
        AddHop(trace, trace.hops[static_cast<size_t>(slice.hop)], slice.start_ps, slice.end_ps,
               slice.segments);
    }
    for (size_t m = 0; m < trace.messages.size(); ++m) AddMessage(trace, m);
    AddPath(kPath, trace.critical_path);
    facts_.emplace_back("schedule_time_ps", trace.simulation.time_ps);
    facts_.emplace_back("size_bytes", trace.simulation.size_bytes);
    facts_.emplace_back("segments", trace.segments);
    facts_.emplace_back("translates_per_row", trace.copies);
  }

  void AddProgram(const Program& program, const ProgramTrace& trace) {
    const ProgramIndex index(program);
    processes_[kProgramPath] = "program: critical path";
    AddPath(kProgramPath, trace.critical_path);
    facts_.emplace_back("program_time_ps", trace.simulation.time_ps);
    facts_.emplace_back("passes", trace.passes);
    for (Rank r(0); r.value < index.num_ranks(); ++r.value)
      if (index.RankFirstBlock(Rank(r.value + 1)) > index.RankFirstBlock(r))
        processes_[kFirstRank + r.value] = fmt::format("program: rank {}", r.value);
    // Without single passes, an instruction is one slice from its first to its last.
    if (trace.slices.empty())
      for (int32_t node = 0; node < index.size(); ++node) {
        const TracedInstruction& row = trace.instructions[static_cast<size_t>(node)];
        AddInstruction(program, index, {node, -1, row.start_ps, row.start_ps, row.end_ps, {}});
      }
    for (const TracedPass& pass : trace.slices) AddInstruction(program, index, pass);
    if (!trace.hops.empty()) processes_[kProgramLinks] = "program: links";
    for (const TracedProgramHop& hop : trace.hops) {
      Slice slice{kProgramLinks, hop.link.value, hop.start_ps, hop.end_ps, "", {}, {}, {}, 0};
      const ProgramSite site = index.Site(hop.node);
      slice.name = fmt::format("rank {} threadblock {}", site.rank.value, site.threadblock);
      slice.args = {{"instruction", site.index}, {"pass", hop.pass}};
      NameLink(kProgramLinks, hop.link);
      slices_.push_back(std::move(slice));
    }
  }

  void Write(const TraceLabels& labels, std::ostream& out) {
    std::ranges::stable_sort(slices_, {}, &Slice::start_ps);
    std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>> free_at;
    for (Slice& slice : slices_) {
      std::vector<int64_t>& lanes = free_at[{slice.process, slice.track}];
      auto lane = std::ranges::find_if(lanes, [&](int64_t at) { return at <= slice.start_ps; });
      if (lane == lanes.end() && std::ssize(lanes) < kLanes) lane = lanes.insert(lanes.end(), 0);
      if (lane == lanes.end()) lane = std::ranges::min_element(lanes);
      slice.lane = static_cast<int32_t>(lane - lanes.begin());
      *lane = slice.end_ps;
    }
    Writer(out).Write(slices_, processes_, tracks_, labels, facts_);
  }

 private:
  void NameLink(int32_t process, LinkId link) {
    auto [it, added] = tracks_.try_emplace({process, link.value});
    if (added) it->second = topology_.LinkName(link);
  }

  static std::string NameOf(const TracedMessage& message) {
    return fmt::format("{} -> {}, step {}", message.src.value, message.dst.value, message.step);
  }

  void AddHop(const ScheduleTrace& trace, const TracedHop& hop, int64_t start_ps, int64_t end_ps,
              int64_t segments) {
    const TracedMessage& message = trace.messages[static_cast<size_t>(hop.message)];
    NameLink(kLinks, hop.link);
    slices_.push_back({kLinks,
                       hop.link.value,
                       start_ps,
                       end_ps,
                       NameOf(message),
                       {{"message", hop.message},
                        {"bytes", message.bytes},
                        {"segments", segments},
                        {"busy_ps", hop.busy_ps}},
                       {},
                       {},
                       0});
  }

  // A message at the ranks that it leaves and reaches.
  void AddMessage(const ScheduleTrace& trace, size_t m) {
    const TracedMessage& message = trace.messages[m];
    const size_t first = static_cast<size_t>(message.first_hop);
    const size_t end = m + 1 < trace.messages.size() ? static_cast<size_t>(trace.messages[m + 1].first_hop)
                                                     : trace.hops.size();
    bool sent = false, received = false;
    for (size_t h = first; h < end; ++h) {
      const TracedHop& hop = trace.hops[h];
      const Link& link = topology_.link(hop.link);
      const auto add = [&](Rank rank, std::string_view what, Rank other, int64_t end_ps) {
        tracks_.try_emplace({kRanks, rank.value}, fmt::format("rank {}", rank.value));
        return Slice{kRanks,
                     rank.value,
                     hop.start_ps,
                     end_ps,
                     fmt::format("{} {}, step {}", what, other.value, message.step),
                     {{"message", static_cast<int64_t>(m)}, {"bytes", message.bytes}},
                     {},
                     {},
                     0};
      };
      // Arrows of a tree go from its first sender to its first receiver.
      if (topology_.IsGpu(link.from)) {
        Slice slice = add(*topology_.RankOf(link.from), "send to", message.dst, hop.end_ps);
        if (!sent) slice.flows_out = {static_cast<int64_t>(m)};
        sent = true;
        slices_.push_back(std::move(slice));
      }
      if (topology_.IsGpu(link.to)) {
        Slice slice = add(*topology_.RankOf(link.to), "receive from", message.src, hop.arrival_ps);
        if (!received) slice.flows_in = {static_cast<int64_t>(m)};
        received = true;
        slices_.push_back(std::move(slice));
      }
    }
  }

  void AddPath(int32_t process, const CriticalPath& path) {
    tracks_[{process, 0}] = "critical path";
    for (const PathPiece& piece : path.pieces) {
      std::string name(ToString(piece.kind));
      if (piece.link) name += " " + topology_.LinkName(*piece.link);
      Slice slice{process, 0, piece.start_ps, piece.end_ps, std::move(name), {}, {}, {}, 0};
      if (piece.message) slice.args.emplace_back("message", *piece.message);
      if (piece.block) slice.args.emplace_back("threadblock", *piece.block);
      slices_.push_back(std::move(slice));
    }
  }

  // The instruction, and before it the wait.
  void AddInstruction(const Program& program, const ProgramIndex& index, const TracedPass& pass) {
    const ProgramSite site = index.Site(pass.node);
    const Instruction& i = index.instruction(pass.node);
    const int32_t instance = pass.pass >= 0 ? pass.pass % program.instances : 0;
    const int32_t track = site.threadblock * program.instances + instance;
    const int32_t process = kFirstRank + site.rank.value;
    auto [name, added] = tracks_.try_emplace({process, track});
    if (added)
      name->second = program.instances > 1 ? fmt::format("threadblock {} of {}", site.threadblock, instance)
                                           : fmt::format("threadblock {}", site.threadblock);
    if (pass.reached_ps < pass.start_ps)
      slices_.push_back({process,
                         track,
                         pass.reached_ps,
                         pass.start_ps,
                         fmt::format("wait: {}", ToString(pass.waited_for)),
                         {{"instruction", site.index}},
                         {},
                         {},
                         0});
    if (pass.start_ps == pass.end_ps && !Sends(i.op) && !Receives(i.op)) return;
    Slice slice{process,
                track,
                pass.start_ps,
                pass.end_ps,
                std::string(ToString(i.op)),
                {{"instruction", site.index}, {"pass", pass.pass}, {"chunks", i.count}},
                {},
                {},
                0};
    if (pass.pass >= 0) AddFlows(index, pass, slice);
    slices_.push_back(std::move(slice));
  }
  // The k-th send of a connection in a pass feeds its k-th receive.
  void AddFlows(const ProgramIndex& index, const TracedPass& pass, Slice& slice) {
    const int32_t block = index.BlockOf(pass.node);
    const auto id = [&](int32_t connection, int32_t ordinal) {
      const auto key = std::tuple(connection, pass.pass, ordinal);
      return flows_.try_emplace(key, kFirstFlow + std::ssize(flows_)).first->second;
    };
    if (Sends(index.instruction(pass.node).op))
      for (const int32_t connection : index.SendConnections(block))
        slice.flows_out.push_back(id(connection, index.SendOrdinal(pass.node)));
    if (Receives(index.instruction(pass.node).op))
      for (const int32_t connection : index.RecvConnections(block))
        slice.flows_in.push_back(id(connection, index.RecvOrdinal(pass.node)));
  }

  static constexpr int64_t kFirstFlow = int64_t{1} << 32;  // beyond the numbers of messages' flows
  const Topology& topology_;
  std::vector<Slice> slices_;
  std::map<int32_t, std::string> processes_;
  std::map<std::pair<int32_t, int32_t>, std::string> tracks_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t> flows_;
  std::vector<std::pair<std::string, int64_t>> facts_;
};

}  // namespace

void WritePerfetto(const Topology& topology, const ScheduleTrace& trace, const Program* program,
                   const ProgramTrace* program_trace, const TraceLabels& labels, std::ostream& out) {
  TraceBuilder builder(topology);
  builder.AddSchedule(trace);
  if (program != nullptr) builder.AddProgram(*program, *program_trace);
  builder.Write(labels, out);
}

}  // namespace xccl
