#include "topologies/fabric/infiniband_for_tests.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "topologies/fabric/degraded.h"

namespace xccl::testing {
namespace {

constexpr std::string_view kNoName = "MT4129 ConnectX7   Mellanox Technologies";
constexpr int32_t kAdapterModel = 0x1021;

IbRate RandomRate(Random& random) {
  constexpr int32_t kLanes[] = {1, 2, 4, 8, 12};
  return {kLanes[random.Below(5)], static_cast<IbSpeed>(1 + random.Below(9))};
}

class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  IbSample Make() {
    const auto switches = static_cast<int32_t>(1 + random_.Below(10));
    for (int32_t i = 0; i < switches; ++i) AddSwitch(i);
    NameChassis();
    const auto hosts = static_cast<int32_t>(1 + random_.Below(2 * switches));
    for (int32_t i = 0; i < hosts; ++i) AddHost(i);
    usual_ = RandomRate(random_);
    for (int32_t i = 0; i < static_cast<int32_t>(sample_.fabric.adapters.size()); ++i) JoinAdapter(i);
    for (int32_t i = 1; i < switches; ++i)
      for (auto cables = static_cast<int32_t>(random_.Below(4)); cables > 0; --cables)
        AddCable(SwitchEnd(static_cast<int32_t>(random_.Below(i))), SwitchEnd(i));
    return std::move(sample_);
  }

 private:
  bool Chance(uint64_t one_in) { return random_.Below(one_in) == 0; }
  // Unique, of any length: tools print GUIDs with and without leading zeros.
  uint64_t Guid() { return (random_.Below(uint64_t{1} << random_.Below(44)) << 16) + ++guids_; }

  void AddSwitch(int32_t i) {
    IbSample::Device device{"", Guid(), Guid(), static_cast<int32_t>(0xd2f0 + random_.Below(3)), ++lids_};
    std::string name = fmt::format("leaf-{}", i);
    switch (random_.Below(5)) {
      case 0:
        device.name = fmt::format("MF0;{}:MQM9700/U1", name);
        break;
      case 1:
        name = fmt::format("rack: {}; \"top\"", i);
        device.name = fmt::format("MF0;{}:MQM9700/U1", name);
        break;
      case 2:  // chips of a chassis share its name
        name = fmt::format("core/L{:02}/U1", i);
        chassis_.push_back(i);
        device.name = fmt::format("MF0;core:CS7500/L{:02}/U1", i);
        break;
      case 3:
        device.name = name = "Quantum Mellanox Technologies";
        break;
      default:
        device.name = name;
        break;
    }
    sample_.fabric.switches.push_back({name, device.guid});
    sample_.switches.push_back(device);
    std::vector<int32_t>& ports = free_ports_.emplace_back(64);
    std::iota(ports.begin(), ports.end(), 1);
    random_.Shuffle(std::span(ports));
  }

  // A chip alone has its chassis's name.
  void NameChassis() {
    if (chassis_.size() == 1) sample_.fabric.switches[chassis_[0]].name = "core";
  }

  void AddHost(int32_t i) {
    std::string host = Chance(5) ? fmt::format("rack {} node'{}", i % 3, i) : fmt::format("node{:03}", i);
    const uint64_t style = random_.Below(4);
    const auto cards = static_cast<int32_t>(1 + random_.Below(8));
    for (int32_t c = 0; c < cards; ++c) {
      std::string device = style == 0 ? fmt::format("mlx5_{}", c) : fmt::format("HCA-{}", c + 1);
      std::string name = fmt::format("{} {}", host, device);
      std::string said_host = host;
      if (style == 3 && host.find(' ') == std::string::npos) {
        device.clear();
        name = host;
      }
      if (Chance(10)) {
        device.clear();
        said_host.clear();
        name = kNoName;
      }
      const uint64_t system = Guid();
      const auto ports = static_cast<int32_t>(Chance(4) ? 2 : 1);
      sample_.cards.push_back({name, Guid(), system, kAdapterModel, 0});
      for (int32_t port = 1; port <= ports; ++port) {
        sample_.fabric.adapters.push_back({said_host, device, Guid(), system});
        sample_.card_of.push_back(static_cast<int32_t>(sample_.cards.size()) - 1);
        sample_.port_of.push_back(port);
        sample_.lids.push_back(++lids_);
      }
    }
  }

  FabricEnd SwitchEnd(int32_t index) {
    const int32_t port = free_ports_[index].back();
    free_ports_[index].pop_back();
    return {true, index, port};
  }

  // To a switch, or sometimes to the adapter before it.
  void JoinAdapter(int32_t i) {
    const FabricEnd end{false, i, sample_.port_of[i]};
    const std::vector<FabricAdapter>& adapters = sample_.fabric.adapters;
    const bool before = i > 0 && !joined_before_ && sample_.card_of[i] != sample_.card_of[i - 1] &&
                        !adapters[i].device.empty() && !adapters[i - 1].device.empty() && Chance(8);
    joined_before_ = before;
    if (before) {
      FabricEnd& other = sample_.fabric.cables.back().b;
      free_ports_[other.index].push_back(other.port);
      other = end;
      return;
    }
    size_t index = random_.Below(sample_.switches.size());
    while (free_ports_[index].size() < 32) index = (index + 1) % sample_.switches.size();
    AddCable(end, SwitchEnd(static_cast<int32_t>(index)));
  }

  void AddCable(FabricEnd a, FabricEnd b) {
    IbSample::Rates rates{Chance(4) ? RandomRate(random_) : usual_, {}};
    if (Chance(50)) rates.now = {};
    rates.full = Chance(4) ? RandomRate(random_) : rates.now;
    if (rates.now == IbRate()) rates.full = {};
    sample_.rates.push_back(rates);
    sample_.fabric.cables.push_back({a, b, IbBytesPerS(rates.now), 0, 0});
  }

  Random& random_;
  IbSample sample_;
  std::vector<std::vector<int32_t>> free_ports_;
  std::vector<int32_t> chassis_;  // switches that are chips of one
  uint64_t guids_ = 0;
  int32_t lids_ = 0;
  bool joined_before_ = false;
  IbRate usual_;
};

// A cable as one of its ends sees it.
struct View {
  FabricEnd here, there;
  int32_t cable = 0;
};

class Writer {
 public:
  Writer(IbForm form, IbSample& sample, Random& random) : form_(form), sample_(sample), random_(random) {}

  std::string Write() {
    const Fabric& fabric = sample_.fabric;
    for (int32_t i = 0; i < static_cast<int32_t>(fabric.cables.size()); ++i) {
      const FabricCable& cable = fabric.cables[i];
      See({cable.a, cable.b, i});
      See({cable.b, cable.a, i});
    }
    std::vector<std::pair<bool, int32_t>> devices;  // is it a switch, and its index or a card's
    for (size_t i = 0; i < sample_.switches.size(); ++i) devices.emplace_back(true, i);
    for (size_t i = 0; i < sample_.cards.size(); ++i) devices.emplace_back(false, i);
    random_.Shuffle(std::span(devices));
    Line("#");
    for (const auto& [is_switch, index] : devices) {
      if (form_ == IbForm::kRecords || form_ == IbForm::kRecordsWithAll)
        WriteRecord(is_switch, index);
      else
        WritePorts(is_switch, index);
    }
    SetWhatIsKnown();
    return std::move(text_);
  }

 private:
  bool Chance(uint64_t one_in) { return random_.Below(one_in) == 0; }
  bool All() const { return form_ == IbForm::kRecordsWithAll; }

  void Line(std::string_view line) {
    text_ += line;
    text_ += Chance(30) ? "\r\n" : "\n";
    ++lines_;
  }
  void See(const View& view) {
    const bool is_switch = view.here.is_switch;
    views_[{is_switch, is_switch ? view.here.index : sample_.card_of[view.here.index]}].push_back(view);
  }

  const IbSample::Device& DeviceOf(const FabricEnd& end) const {
    return end.is_switch ? sample_.switches[end.index] : sample_.cards[sample_.card_of[end.index]];
  }
  uint64_t PortGuid(const FabricEnd& end) const {
    return end.is_switch ? sample_.switches[end.index].guid : sample_.fabric.adapters[end.index].guid;
  }
  int32_t Lid(const FabricEnd& end) const {
    return end.is_switch ? sample_.switches[end.index].lid : sample_.lids[end.index];
  }
  // Writes a port's line and notes it as its cable's.
  void PortLine(const View& view, std::string_view line) {
    Line(line);
    int32_t& first = sample_.fabric.cables[view.cable].line;
    if (first == 0) first = lines_;
  }

  static std::string Id(const FabricEnd& end, const IbSample::Device& device) {
    return fmt::format("\"{}-{:016x}\"[{}]", end.is_switch ? 'S' : 'H', device.guid, end.port);
  }
  std::string Short(const FabricEnd& end) const {
    return fmt::format("{} {:5} {:2} 0x{:016x}", end.is_switch ? "SW" : "CA", Lid(end), end.port,
                       PortGuid(end));
  }
  static std::string RateText(IbRate rate) {
    return rate == IbRate() ? "??"
                              "???"
                            : ToString(rate);
  }

  void WriteRecord(bool is_switch, int32_t index) {
    const std::vector<View>& views = views_[{is_switch, index}];
    const IbSample::Device& device = is_switch ? sample_.switches[index] : sample_.cards[index];
    if (All() && Chance(4)) Line("Chassis 1 (guid 0x2c9000000)");
    if (!Chance(3)) Line("");
    Line("vendid=0x2c9");
    Line(fmt::format("devid=0x{:x}", device.model));
    Line(fmt::format("sysimgguid=0x{:x}{}", device.system_guid, All() && Chance(2) ? "\t\t# Chassis 1" : ""));
    if (is_switch)
      Line(fmt::format("switchguid=0x{:x}({:x})", device.guid, device.guid));
    else
      Line(fmt::format("caguid=0x{:x}", device.guid));
    Line(fmt::format("{}\t{} \"{}-{:016x}\"\t\t# \"{}\"{}", is_switch ? "Switch" : "Ca", is_switch ? 64 : 2,
                     is_switch ? 'S' : 'H', device.guid, device.name,
                     is_switch ? fmt::format(" enhanced port 0 lid {} lmc 0", device.lid) : ""));
    for (const View& view : views) {
      const FabricEnd& there = view.there;
      const std::string guid = there.is_switch ? "" : fmt::format("({:x}) ", PortGuid(there));
      const std::string ext = All() && Chance(2) ? "[ext 7]" : "";
      const std::string rate = RateText(sample_.rates[view.cable].now) + (All() ? " s=4 w=2 v=4" : "");
      const std::string peer = fmt::format("{}{}{}", Id(there, DeviceOf(there)), ext, guid);
      if (is_switch)
        PortLine(view, fmt::format("[{}]{}\t{}\t\t# \"{}\" lid {} {}", view.here.port, ext, peer,
                                   DeviceOf(there).name, Lid(there), rate));
      else
        PortLine(view, fmt::format("[{}]({:x}) \t{}\t\t# lid {} lmc 0 \"{}\" lid {} {}", view.here.port,
                                   PortGuid(view.here), peer, Lid(view.here), DeviceOf(there).name,
                                   Lid(there), rate));
    }
    if (is_switch && Chance(3)) WriteReducer(index);
  }

  // The port of a switch that reduces, which is no adapter.
  void WriteReducer(int32_t index) {
    const uint64_t reducer = 0xffff'0000'0000'0000 + static_cast<uint64_t>(index);
    Line(fmt::format(
        "[65]\t\"H-{:016x}\"[1]({:x}) \t\t# \"Mellanox Technologies Aggregation Node\" lid 1 4xNDR", reducer,
        reducer));
  }

  void WritePorts(bool is_switch, int32_t index) {
    std::vector<View>& views = views_[{is_switch, index}];
    const IbSample::Device& device = is_switch ? sample_.switches[index] : sample_.cards[index];
    if (form_ == IbForm::kLinks && is_switch)
      Line(fmt::format("Switch: 0x{:016x} {}:", device.guid, device.name));
    else if (form_ == IbForm::kLinks)
      Line(fmt::format("CA: {}:", device.name));
    for (const View& view : views) {
      if (form_ == IbForm::kPortList)
        WriteListed(view);
      else
        WriteLink(view);
    }
    if (!is_switch) return;
    for (const int32_t port : {65, 66}) {
      const FabricEnd end{true, index, port};
      if (form_ == IbForm::kPortList)
        Line(fmt::format("{} 4x {}{:36}'{}'", Short(end), Chance(2) ? "???" : "SDR", "", device.name));
      else
        Line(Here(end) + "==(                Down/ Polling)==>             [  ] \"\" ( )");
      ++sample_.fabric.down_ports;
    }
  }

  void WriteListed(const View& view) {
    const IbRate rate = sample_.rates[view.cable].now;
    const std::string text = rate == IbRate() ? "??" : fmt::format("{}x", rate.lanes);
    const std::string speed = rate == IbRate() ? "???" : ToString(rate).substr(text.size());
    PortLine(view, fmt::format("{} {} {} - {} ( '{}' - '{}' )", Short(view.here), text, speed,
                               Short(view.there), DeviceOf(view.here).name, DeviceOf(view.there).name));
  }

  std::string Here(const FabricEnd& end) const {
    const std::string lid = fmt::format("{:6} {:4}[  ] ", Lid(end), end.port);
    if (form_ == IbForm::kLinksInLines)
      return fmt::format("0x{:016x} \"{:>30}\" {}", PortGuid(end), DeviceOf(end).name, lid);
    return end.is_switch ? "      " + lid : fmt::format("      0x{:016x} {}", PortGuid(end), lid);
  }

  static std::string Gbps(IbSpeed speed) {
    constexpr std::string_view kTexts[] = {"0",
                                           "2.5 Gbps",
                                           "5.0 Gbps",
                                           "10.0 Gbps",
                                           "10.0 Gbps (FDR10)",
                                           "14.0625 Gbps",
                                           "25.78125 Gbps",
                                           "53.125 Gbps",
                                           "106.25 Gbps",
                                           "212.5 Gbps"};
    return std::string(kTexts[static_cast<int>(speed)]);
  }

  void WriteLink(const View& view) {
    const auto& [now, full] = sample_.rates[view.cable];
    const std::string rate =
        now == IbRate() ? "undefined (0)" : fmt::format("{:>2}X {:>18}", now.lanes, Gbps(now.speed));
    std::string remarks;
    if (full.lanes != now.lanes) remarks = fmt::format("Could be {}X", full.lanes);
    if (full.speed != now.speed)
      remarks += " Could be " + (full.speed == IbSpeed::kFdr10 ? "FDR10" : Gbps(full.speed));
    const std::string guid =
        form_ == IbForm::kLinksInLines ? fmt::format("0x{:016x} ", PortGuid(view.there)) : "";
    PortLine(view,
             fmt::format("{}==({} Active/  LinkUp)==>  {}{:6} {:4}[  ] \"{}\" ({} )", Here(view.here), rate,
                         guid, Lid(view.there), view.there.port, DeviceOf(view.there).name, remarks));
  }

  void SetWhatIsKnown() {
    Fabric& fabric = sample_.fabric;
    const bool records = form_ == IbForm::kRecords || form_ == IbForm::kRecordsWithAll;
    const bool links = form_ == IbForm::kLinks || form_ == IbForm::kLinksInLines;
    fabric.format = links ? "iblinkinfo" : "ibnetdiscover";
    if (!records)
      for (FabricAdapter& adapter : fabric.adapters) adapter.system_guid = 0;
    if (links) {
      for (size_t i = 0; i < fabric.cables.size(); ++i) {
        FabricCable& cable = fabric.cables[i];
        const int64_t full = IbBytesPerS(sample_.rates[i].full);
        cable.full_bandwidth_bytes_per_s = full > cable.bandwidth_bytes_per_s ? full : 0;
      }
      return;
    }
    std::vector<int32_t> switch_models(fabric.switches.size(), 0);
    std::vector<int32_t> adapter_models(fabric.adapters.size(), records ? kAdapterModel : 0);
    for (size_t i = 0; records && i < switch_models.size(); ++i) switch_models[i] = sample_.switches[i].model;
    MarkDegraded(fabric, switch_models, adapter_models);
  }

  IbForm form_;
  IbSample& sample_;
  Random& random_;
  std::map<std::pair<bool, int32_t>, std::vector<View>> views_;  // of a switch or a card
  std::string text_;
  int32_t lines_ = 0;
};

}  // namespace

IbSample RandomIbSample(Random& random) { return Maker(random).Make(); }

std::string WriteIb(IbForm form, IbSample& sample, Random& random) {
  return Writer(form, sample, random).Write();
}

void CheckFabric(const Fabric& fabric, int32_t lines) {
  XCCL_CHECK(!fabric.cables.empty());
  XCCL_CHECK(fabric.down_ports >= 0);
  std::set<std::tuple<bool, int32_t, int32_t>> ports;
  for (const FabricCable& cable : fabric.cables) {
    for (const FabricEnd& end : {cable.a, cable.b}) {
      const size_t devices = end.is_switch ? fabric.switches.size() : fabric.adapters.size();
      XCCL_CHECK(end.index >= 0 && static_cast<size_t>(end.index) < devices);
      XCCL_CHECK(ports.emplace(end.is_switch, end.index, end.port).second);
    }
    XCCL_CHECK(cable.bandwidth_bytes_per_s >= 0);
    XCCL_CHECK(cable.full_bandwidth_bytes_per_s == 0 ||
               cable.full_bandwidth_bytes_per_s > cable.bandwidth_bytes_per_s);
    XCCL_CHECK(cable.line > 0 && cable.line <= lines);
  }
}

Fabric Sorted(Fabric fabric) {
  // The new place of each device, by its GUID and, where that is equal, by its old place.
  const auto sort = [](auto& devices) {
    std::vector<int32_t> order(devices.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int32_t i) { return devices[i].guid; });
    std::vector<int32_t> place(devices.size());
    auto sorted = devices;
    for (size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = static_cast<int32_t>(i);
      sorted[i] = devices[order[i]];
    }
    devices = sorted;
    return place;
  };
  const std::vector<int32_t> switches = sort(fabric.switches);
  const std::vector<int32_t> adapters = sort(fabric.adapters);
  const auto key = [](const FabricEnd& end) { return std::tuple(end.is_switch, end.index, end.port); };
  for (FabricCable& cable : fabric.cables) {
    for (FabricEnd* const end : {&cable.a, &cable.b})
      end->index = (end->is_switch ? switches : adapters)[end->index];
    if (key(cable.b) < key(cable.a)) std::swap(cable.a, cable.b);
  }
  std::ranges::sort(fabric.cables, {},
                    [&](const FabricCable& cable) { return std::pair(key(cable.a), key(cable.b)); });
  fabric.warnings.clear();
  return fabric;
}

}  // namespace xccl::testing
