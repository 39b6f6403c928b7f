// Tests every message of the native reader in full.
#include <gtest/gtest.h>

#include <string>

#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

struct Rejection {
  const char* name;
  const char* xml;
  const char* message;  // after "t.xml:"
};

// Whole documents.
const Rejection kDocuments[] = {
    {"Empty", R"()", R"(1:1: no element; expected <topology>)"},
    {"OnlyAComment", R"(<!-- nothing -->)", R"(1:17: no element; expected <topology>)"},
    {"NotXml", R"(hello)", R"(1:6: no element; expected <topology>)"},
    {"NeverClosed", R"(<topology name="t">
  <gpu id="0"/>
)",
     R"(2:16: the file ends early; expected more, up to </topology>)"},
    {"WrongEndTag", R"(<topology name="t">
  <host name="h0">
  </hosts>
</topology>)",
     R"(3:5: malformed XML: an end tag that does not match its start tag)"},
    {"HalfATag", R"(<topology name="t">
  <gpu id="0")",
     R"(2:13: the file ends inside a start tag; expected more, up to </topology>)"},
    {"HalfAnAttribute", R"(<topology name="t">
  <gpu id=0/>
</topology>)",
     R"(2:11: malformed XML: an attribute that is not finished; expected name="value")"},
    {"HalfAnEndTag", R"(<topology name="t">
</topology)",
     R"(2:10: the file ends inside an end tag; expected more, up to </topology>)"},
    {"HalfAComment", R"(<topology>
  <!-- gpu
</topology>)",
     R"(3:11: malformed XML: a comment that is not finished)"},
    {"Latin1", "<topology name=\"t\">\n<!-- caf\xE9 --></topology>", "2:9: byte 0xe9; expected UTF-8 text"},
    {"Utf16", "\xFF\xFE<", "1:1: byte 0xff; expected UTF-8 text"},
    {"Overlong", "<topology name=\"\xE0\x80\xAF", "1:17: byte 0xe0; expected UTF-8 text"},
    {"Surrogate", "<topology name=\"\xED\xA0\x80", "1:17: byte 0xed; expected UTF-8 text"},
    {"AboveUnicode", "<topology name=\"\xF4\x90\x80\x80", "1:17: byte 0xf4; expected UTF-8 text"},
    {"HalfACharacter", "<topology name=\"\xC3", "1:17: byte 0xc3; expected UTF-8 text"},
    {"OtherRoot", R"(<topo>
</topo>)",
     R"(1:1: root element <topo>; expected <topology>)"},
    {"NcclRoot", R"(<system version="1"/>)", R"(1:1: root element <system>; expected <topology>)"},
    {"TwoRoots", R"(<topology>
  <gpu id="0"/>
</topology>
<topology/>)",
     R"(4:1: a second root element; expected one <topology>)"},
    {"TextAfterTheRoot", R"(<topology>
  <gpu id="0"/>
</topology>
<!-- fine -->
  bye)",
     R"(5:3: text beside <topology>; expected nothing but comments)"},
    {"NoGpu", R"(<topology name="t">
  <switch id="s"/>
</topology>)",
     R"(1:1: topology: no gpu; expected at least one)"},
    {"UnknownAttributeOfTheRoot", R"(<topology nam="t">
  <gpu id="0"/>
</topology>)",
     R"(1:1: topology: unknown attribute 'nam'; did you mean 'name'?)"},
    {"HalfADeclaration", R"(<?xml version="1.0")",
     R"(1:19: the file ends inside a declaration; expected more, up to </topology>)"},
    {"HalfADoctype", R"(<!DOCTYPE topology [)",
     R"(1:20: the file ends inside a DOCTYPE; expected more, up to </topology>)"},
    {"HalfACdata", R"(<topology><![CDATA[ x</topology>)",
     R"(1:20: malformed XML: a CDATA section that is not finished)"},
    {"StrayBracket", R"(<topology>
  < gpu/>
</topology>)",
     R"(2:4: malformed XML: '<' that starts no tag)"},
};

// Contents, which follow <topology name="t">, a line break and two blanks, and precede a line break and
// </topology>.
const Rejection kContents[] = {
    {"TextInside", R"(<gpu id="0"/> gpu 1)", R"(2:16: text inside <topology>; expected elements)"},
    {"UnknownElement", R"(<gpus id="0"/>)", R"(2:3: unknown element <gpus>; did you mean 'gpu'?)"},
    {"UnknownElementFarFromAll", R"(<accelerator id="0"/>)",
     R"(2:3: unknown element <accelerator>; expected <host>, <cluster>, <gpu>, <switch>, <nic>, <cpu>, <link>, <nvswitch>, <full-mesh>, <ring>, <mesh>, <torus>, <hypercube>, <fat-tree>, <leaf-spine>, <dragonfly> or <fabric>)"},
    {"UnknownElementInAHost", R"(<host><accelerator id="0"/></host>)",
     R"(2:9: unknown element <accelerator>; expected <gpu>, <switch>, <nic>, <cpu>, <link>, <nvswitch>, <full-mesh>, <ring>, <mesh>, <torus>, <hypercube>, <fat-tree>, <leaf-spine> or <dragonfly>)"},
    {"ElementInAnotherCase", R"(<GPU id="0"/>)", R"(2:3: unknown element <GPU>; did you mean 'gpu'?)"},
    {"AttributeInAnotherCase", R"(<gpu ID="0"/>)", R"(2:3: gpu: unknown attribute 'ID'; did you mean 'id'?)"},
    {"UnknownAttributesBesideMissingOnes", R"(<gpu count="2"/><link src="0" dst="1" bandwidth="1GB/s"/>)",
     R"(2:19: link: unknown attribute 'src'; expected from, to, latency, overhead, duplex, pairwise, count or source)"},
    {"UnknownAttribute", R"(<gpu id="0" idx="1"/>)",
     R"(2:3: gpu: unknown attribute 'idx'; did you mean 'id'?)"},
    {"MisspeltRequiredAttribute", R"(<ring rank="4"/>)",
     R"(2:3: ring: unknown attribute 'rank'; did you mean 'ranks'?)"},
    {"AttributeTwice", R"(<gpu id="0" id="1"/>)", R"(2:3: gpu: attribute 'id' twice; expected it once)"},
    {"NoId", R"(<gpu/>)", R"(2:3: gpu: no attribute 'id'; expected one)"},
    {"EmptyId", R"(<gpu id=""/>)", R"(2:3: id '': expected a name)"},
    {"IdWithSlash", R"(<gpu id="a/b"/>)",
     R"(2:3: id 'a/b': expected a name without '/', ',', '*', '<', '>', '"', '..' and blanks)"},
    {"IdWithBlank", R"(<gpu id="a b"/>)",
     R"(2:3: id 'a b': expected a name without '/', ',', '*', '<', '>', '"', '..' and blanks)"},
    {"HostWithBlank", R"(<host name="a b"><gpu id="0"/></host>)",
     R"(2:3: name 'a b': expected a name without '/', ',', '*', '<', '>', '"', '..' and blanks)"},
    {"DuplicateId", R"(<gpu id="0"/>
  <gpu id="0"/>)",
     R"(3:3: a second gpu 0; expected another id)"},
    {"DuplicateIdInAHost", R"(<host name="h0">
    <gpu count="2"/>
    <gpu id="1"/>
  </host>)",
     R"(4:5: a second gpu 1 in host h0; expected another id)"},
    {"TwoFamiliesWithOneSwitchName", R"(<host>
    <nvswitch gpus="2"/>
    <nvswitch gpus="2"/>
  </host>)",
     R"(4:5: a second switch nvswitch in host h0; expected another id)"},
    {"DuplicateHost", R"(<host name="h0"><gpu id="0"/></host>
  <host name="h0"/>)",
     R"(3:3: a second host h0; expected another name)"},
    {"ContinuedHostThatIsNot", R"(<host name="h0" continued="true"><gpu id="0"/></host>)",
     R"(2:3: host h0 continued; there is none before)"},
    {"GpuOutsideTheHosts", R"(<host name="h0"><gpu id="0"/></host>
  <gpu id="1"/>)",
     R"(3:3: a gpu outside of every host, while others have one; expected all in hosts)"},
    {"HostInAHost", R"(<host name="h0">
    <host name="h1"/>
  </host>)",
     R"(3:5: <host> inside <host>; it stands in <topology> or <cluster>)"},
    {"ClusterInAHost", R"(<host name="h0">
    <cluster hosts="2"/>
  </host>)",
     R"(3:5: <cluster> inside <host>; it stands in <topology> or <cluster>)"},
    {"FabricInAHost", R"(<host name="h0">
    <fabric/>
  </host>)",
     R"(3:5: <fabric> inside <host>; it stands in <topology> or <cluster>)"},
    {"TopologyInATopology", R"(<topology/>)",
     R"(2:3: <topology> inside <topology>; it stands around all others)"},
    {"ElementInAnElement", R"(<gpu id="0"><link/></gpu>)", R"(2:15: contents inside <gpu>; expected none)"},
    {"CountOfZero", R"(<gpu count="0"/>)",
     R"(2:3: gpu: count '0': expected a whole number from 1 to 1048576)"},
    {"BoolThatIsNone", R"(<gpu id="0"/>
  <switch id="s" multicast="yes"/>)",
     R"(3:3: switch: multicast 'yes': expected true or false)"},
    {"MulticastGpu", R"(<gpu id="0" multicast="true"/>)",
     R"(2:3: gpu: unknown attribute 'multicast'; expected count or source)"},
    {"LinkToAMissingNode", R"(<gpu count="9"/>
    <link from="3" to="9" bandwidth="1GB/s" latency="1us"/>)",
     R"(3:5: link 3->9: no node 9; nodes are 0..8)"},
    {"LinkFromAMissingGpu", R"(<gpu count="9"/>
    <link from="gpu:12" to="0" bandwidth="1GB/s"/>)",
     R"(3:5: link gpu:12->0: no gpu 12; gpus are 0..8)"},
    {"LinkToAMissingSwitch", R"(<gpu count="9"/>
    <link from="0" to="switch:s" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->switch:s: no switch s; there is no switch at all)"},
    {"LinkToAMissingHost", R"(<gpu count="9"/>
    <link from="0" to="h7/gpu:0" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->h7/gpu:0: no host h7; no host is named here)"},
    {"LinkToAMissingHostOfSeveral", R"(<host name="h0"><gpu id="0"/></host>
  <host name="h1"><gpu id="0"/></host>
  <link from="h0/0" to="h2/0" bandwidth="1GB/s"/>)",
     R"(4:3: link h0/0->h2/0: no host h2; hosts are h0..h1; did you mean 'h0'?)"},
    {"LinkToAMissingNodeOfAHost", R"(<host name="h0"><gpu count="2"/></host>
  <host name="h1"><gpu count="2"/></host>
  <link from="h0/0" to="h1/gpu:2" bandwidth="1GB/s"/>)",
     R"(4:3: link h0/0->h1/gpu:2: no gpu 2 in h1; gpus are 0..1)"},
    {"LinkToAMissingNodeOfAnyHost", R"(<host name="h0"><gpu count="2"/></host>
  <host name="h1"><gpu count="2"/></host>
  <link from="h0/0" to="2" bandwidth="1GB/s"/>)",
     R"(4:3: link h0/0->2: no node 2; nodes are 0..1)"},
    {"AmbiguousReference", R"(<host name="h0"><gpu id="0"/></host>
  <host name="h1"><gpu id="0"/></host>
  <link from="h0/0" to="0" bandwidth="1GB/s"/>)",
     R"(4:3: link h0/0->0: '0' is 2 nodes, such as h0/gpu:0 and h1/gpu:0; expected one)"},
    {"MisspeltReference", R"(<gpu id="0"/>
  <switch id="nvswitch"/>
  <link from="0" to="nvswich" bandwidth="1GB/s"/>)",
     R"(4:3: link 0->nvswich: no node nvswich; nodes are 0, nvswitch; did you mean 'nvswitch'?)"},
    {"WildcardOfNothing", R"(<gpu count="9"/>
    <link from="gpu:*" to="nic:*" bandwidth="1GB/s"/>)",
     R"(3:5: link gpu:*->nic:*: no nic)"},
    {"WildcardOfEverything", R"(<gpu count="9"/>
    <link from="0" to="*" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->*: '*' names every node; expected gpu:*, switch:*, nic:* or cpu:*)"},
    {"EmptyReference", R"(<gpu count="9"/>
    <link from="0" to="" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->: an empty reference; expected a node such as 0, gpu:3 or h0/gpu:3)"},
    {"EmptyReferenceInAList", R"(<gpu count="9"/>
    <link from="0" to="1,,2" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->1,,2: an empty reference; expected a node such as 0, gpu:3 or h0/gpu:3)"},
    {"RangeThatRunsBackward", R"(<gpu count="9"/>
    <link from="0" to="gpu:5..3" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->gpu:5..3: '5..3': expected a range such as gpu:0..3)"},
    {"RangeTooLong", R"(<gpu count="9"/>
    <link from="0" to="gpu:5..12" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->gpu:5..12: no gpu 9; gpus are 0..8)"},
    {"KindAndNumberWithoutAColon", R"(<host name="h0"><gpu count="2"/><nic count="1"/></host>
    <link from="h0/nic0" to="h0/gpu1" bandwidth="1GB/s"/>)",
     R"(3:5: link h0/nic0->h0/gpu1: no node gpu1 in h0; nodes are 0..1, nic0; did you mean 'gpu:1'?)"},
    {"KindInAnotherCase", R"(<gpu count="2"/>
    <link from="0" to="GPU:1" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->GPU:1: no node GPU:1; nodes are 0..1; did you mean 'gpu:1'?)"},
    {"LinkToItself", R"(<gpu count="9"/>
    <link from="0" to="gpu:0" bandwidth="1GB/s"/>)",
     R"(3:5: link 0->gpu:0: joins a node to itself; expected two nodes)"},
    {"PairwiseOfDifferentNumbers", R"(<gpu count="9"/>
    <link from="gpu:0..3" to="gpu:4..8" pairwise="true" bandwidth="1GB/s"/>)",
     R"(3:5: link gpu:0..3->gpu:4..8: pairwise joins 4 nodes with 5; expected as many)"},
    {"NoTo", R"(<gpu count="9"/>
    <link from="0" bandwidth="1GB/s"/>)",
     R"(3:5: link: no attribute 'to'; expected one)"},
    {"NoBandwidth", R"(<gpu count="9"/>
    <link from="0" to="1" latency="1us"/>)",
     R"(3:5: link: no attribute 'bandwidth'; expected one)"},
    {"BandwidthWithoutUnit", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="25"/>)",
     R"(3:5: link: bandwidth '25': no unit; a bandwidth is written like 450GB/s)"},
    {"BandwidthOfZero", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="0GB/s"/>)",
     R"(3:5: link: bandwidth '0GB/s': expected more than zero)"},
    {"BandwidthBelowZero", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="-1GB/s"/>)",
     R"(3:5: link: bandwidth '-1GB/s': below zero; expected zero or more)"},
    {"BandwidthWithAnotherUnit", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="1Gb/s"/>)",
     R"(3:5: link: bandwidth '1Gb/s': b is bits; hint: 1Gbit/s (0.125GB/s))"},
    {"BandwidthTooLarge", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="4611686018GB/s"/>)",
     R"(3:5: link: bandwidth '4611686018GB/s': a link has at most 1000000GB/s)"},
    {"BandwidthsTooLargeTogether", R"(<full-mesh ranks="46" bandwidth="1000000GB/s"/>)",
     R"( t: links 0..2000 have more than 2000000000GB/s together; expected less in all)"},
    {"LatencyTooLong", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="1GB/s" latency="9223372s"/>)",
     R"(3:5: link: latency '9223372s': a link takes at most 1000ms)"},
    {"LatencyTooLongOfOneDimension", R"(<torus dims="2x2" overhead="1s,2s"/>)",
     R"(2:3: torus: overhead '2s': a link takes at most 1000ms)"},
    {"CharacterThatIsNone", R"(<gpu id="a&#0;b"/>)",
     R"(2:13: &#0;: no character; expected one from &#1; to &#x10FFFF;)"},
    {"NoMoreReferencesThanLimits", R"(<gpu count="131072"/>
    <link from="gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*" to="1" bandwidth="1GB/s"/>)",
     R"(3:5: link gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gp...->1: 'gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gpu:*,gp...' names more than 2097152 nodes)"},
    {"IdsAtTheEndOfTheNumbers", R"(<gpu id="9223372036854775807"/><gpu id="1"/>
    <link from="gpu:z" to="1" bandwidth="1GB/s"/>)",
     R"(3:5: link gpu:z->1: no gpu z; gpus are 9223372036854775807, 1)"},
    {"LatencyWithoutUnit", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="1GB/s" latency="1"/>)",
     R"(3:5: link: latency '1': no unit; a time is written like 500ns)"},
    {"LatencyBelowZero", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="1GB/s" latency="-1us"/>)",
     R"(3:5: link: latency '-1us': below zero; expected zero or more)"},
    {"TooManyLinksOfOneElement", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="1GB/s" count="2097153"/>)",
     R"(3:5: link 0->1: 4194306 links; at most 4194304 are supported)"},
    {"LinkCountTooLarge", R"(<gpu count="9"/>
    <link from="0" to="1" bandwidth="1GB/s" count="100000000000"/>)",
     R"(3:5: link: count '100000000000': expected a whole number from 1 to 4194304)"},
    {"TooManyNodes", R"(<gpu id="x"/>
  <switch count="1048576"/>)",
     R"(3:3: 1048577 nodes; at most 1048576 are supported)"},
    {"TooManyGpusOfATorus", R"(<torus dims="1000000x1000000"/>)",
     R"(2:3: torus: 1000000000000 nodes; at most 1048576 are supported)"},
    {"MoreThanFitsInANumber", R"(<torus dims="1000000000x1000000000x1000000000"/>)",
     R"(2:3: torus: 2^61 or more nodes; at most 1048576 are supported)"},
    {"TooManyLinksOfAFullMesh", R"(<full-mesh ranks="100000"/>)",
     R"(2:3: full-mesh: 9999900000 links; at most 4194304 are supported)"},
    {"TooManyCopies", R"(<cluster hosts="600000">
    <gpu count="2"/>
  </cluster>)",
     R"(2:3: 1200000 nodes; at most 1048576 are supported)"},
    {"TooManyNestedCopies",
     R"(<cluster hosts="4000"><cluster hosts="4000"><gpu id="0"/></cluster></cluster>)",
     R"(2:3: 16000000 nodes; at most 1048576 are supported)"},
    {"TooManyHosts", R"(<cluster hosts="5000000"><gpu id="0"/></cluster>)",
     R"(2:3: cluster: hosts '5000000': expected a whole number from 1 to 1048576)"},
    {"NestedTooDeep",
     R"(<cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><cluster hosts="1"><gpu id="0"/></cluster></cluster></cluster></cluster></cluster></cluster></cluster></cluster></cluster>)",
     R"(2:155: clusters nested more than 8 deep; expected fewer levels)"},
    {"EmptyCluster", R"(<cluster hosts="2"><fabric/></cluster>)",
     R"(2:3: cluster: nothing inside; expected one host)"},
    {"ClusterOfHostAndParts", R"(<cluster hosts="2"><host><gpu id="0"/></host><nic id="n"/></cluster>)",
     R"(2:3: cluster: a <host> beside parts of one; expected either)"},
    {"ClusterWithoutNumber", R"(<cluster><gpu id="0"/></cluster>)",
     R"(2:3: cluster: no attribute 'hosts'; expected one)"},
    {"FabricOfAnUnknownType", R"(<cluster hosts="2"><gpu id="0"/><fabric type="rail"/></cluster>)",
     R"(2:35: fabric: unknown type 'rail'; did you mean 'rails'?)"},
    {"FabricThatBringsHosts",
     R"(<cluster hosts="4"><gpu id="0"/><fabric type="dragonfly" groups="2" routers="1" hosts="2"/></cluster>)",
     R"(2:35: fabric: unknown attribute 'hosts'; expected bandwidth, latency, overhead, uplink-latency, multicast, reduce, global-bandwidth, global-links, global-latency, planes, rails, attach, prefix or source)"},
    {"FabricWithoutHosts", R"(<gpu id="0"/>
  <fabric/>)",
     R"(3:3: fabric: no host before it; expected <host> or <cluster> elements)"},
    {"FabricOfAMissingNode", R"(<cluster hosts="2"><gpu id="0"/><fabric attach="nic:*"/></cluster>)",
     R"(2:35: fabric: no nic in h0)"},
    {"RailsOfDifferentHosts", R"(<host><gpu count="2"/></host>
  <host><gpu count="3"/></host>
  <fabric type="rails"/>)",
     R"(4:3: fabric: rails need as many end points on every host; the first has 2, number 1 has 3)"},
    {"FatTreeTooSmall", R"(<cluster hosts="3"><gpu id="0"/><fabric type="fat-tree" k="2"/></cluster>)",
     R"(2:35: fabric: 3 end points; a fat tree of k=2 has 2 ports)"},
    {"OddFatTree", R"(<fat-tree k="3"/>)", R"(2:3: fat-tree: k '3': expected an even number)"},
    {"FatTreeOfTwoKinds", R"(<fat-tree k="4" leaves="2"/>)",
     R"(2:3: fat-tree: expected one of k (a k-ary tree), leaves (leaf-spine) and rails (rail-optimised))"},
    {"FatTreeOfNoKind", R"(<fat-tree hosts="2"/>)",
     R"(2:3: fat-tree: expected one of k (a k-ary tree), leaves (leaf-spine) and rails (rail-optimised))"},
    {"OversubscriptionThatIsNone", R"(<fat-tree k="4" oversubscription="1:0"/>)",
     R"(2:3: fat-tree: oversubscription '1:0': expected a ratio such as 2 or 3:2)"},
    {"OversubscriptionAndBandwidth", R"(<fat-tree k="4" oversubscription="2" uplink-bandwidth="1GB/s"/>)",
     R"(2:3: fat-tree: both uplink-bandwidth and oversubscription; expected one of them)"},
    {"OversubscriptionThatLeavesNothing", R"(<fat-tree k="4" bandwidth="1B/s" oversubscription="2"/>)",
     R"(2:3: fat-tree: the oversubscription leaves an uplink less than 1 B/s; expected a smaller one)"},
    {"RailsWithoutSpinesToSubscribe",
     R"(<cluster hosts="2"><gpu id="0"/><fabric type="rails" oversubscription="2"/></cluster>)",
     R"(2:35: fabric: oversubscription without spines or a fabric below; expected spines of 1 or more, or clusters with a fabric inside)"},
    {"OneSwitchWithNothingToSubscribe",
     R"(<cluster hosts="2"><gpu id="0"/><fabric oversubscription="2"/></cluster>)",
     R"(2:35: fabric: oversubscription without a fabric below; expected clusters with a fabric inside)"},
    {"OneSwitchOfTwoBandwidths",
     R"(<cluster hosts="2"><gpu id="0"/><fabric oversubscription="2" bandwidth="1GB/s"/></cluster>)",
     R"(2:35: fabric: both bandwidth and oversubscription; expected one of them)"},
    {"CoreThatLeavesNothing",
     R"(<cluster hosts="2"><cluster hosts="2"><gpu id="0"/><fabric bandwidth="1B/s"/></cluster>
  <fabric oversubscription="3"/></cluster>)",
     R"(3:3: fabric: the oversubscription leaves an uplink less than 1 B/s; expected a smaller one)"},
    {"RailsThatDoNotDivideTheLeaves",
     R"(<cluster hosts="2"><gpu count="2"/><fabric type="leaf-spine" leaves="3" spines="1" rails="2"/></cluster>)",
     R"(2:38: fabric: rails '2': 3 leaves; expected a number that divides them)"},
    {"RailsThatDoNotDivideTheRouters",
     R"(<cluster hosts="2"><gpu count="2"/><fabric type="dragonfly" groups="2" routers="3" rails="2"/></cluster>)",
     R"(2:38: fabric: rails '2': 3 routers a group; expected a number that divides them)"},
    {"RailsThatDoNotDivideTheEndPoints",
     R"(<cluster hosts="2"><gpu count="3"/><fabric type="leaf-spine" leaves="2" spines="1" rails="2"/></cluster>)",
     R"(2:38: fabric: rails '2': number 0 has 3 end points; expected a multiple)"},
    {"MorePlanesThanBelow",
     R"(<cluster hosts="2"><cluster hosts="2"><gpu id="0"/><fabric planes="2"/></cluster>
  <fabric planes="3"/></cluster>)",
     R"(3:3: fabric: no end point on plane 2; expected as many planes as the fabric below has)"},
    {"FewerPlanesThanBelow",
     R"(<cluster hosts="2"><cluster hosts="2"><gpu id="0"/><fabric planes="3"/></cluster>
  <fabric planes="2"/></cluster>)",
     R"(3:3: fabric: planes '2': an end point is on plane 2; expected as many planes as the fabric below has)"},
    {"AFullMeshOfUnlikeHosts", R"(<host><gpu count="2"/></host>
  <host><gpu count="3"/></host>
  <fabric type="full-mesh"/>)",
     R"(4:3: fabric: a full mesh needs as many end points on every host; the first has 2, number 1 has 3)"},
    {"DimsThatAreNone", R"(<mesh dims="4,4"/>)",
     R"(2:3: mesh: dims '4,4': expected whole numbers from 1 to 1000000000, such as 4x4x4)"},
    {"DimsOfZero", R"(<mesh dims="4x0"/>)",
     R"(2:3: mesh: dims '4x0': expected whole numbers from 1 to 1000000000, such as 4x4x4)"},
    {"TooManyDims", R"(<mesh dims="1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"/>)",
     R"(2:3: mesh: dims of 33 dimensions; at most 32 are supported)"},
    {"BandwidthsOfTheWrongNumber", R"(<torus dims="4x4" bandwidth="1GB/s,2GB/s,3GB/s"/>)",
     R"(2:3: torus: bandwidth '1GB/s,2GB/s,3GB/s': 3 values; expected one, or one for each of the 2 dimensions)"},
    {"RanksTwiceOver", R"(<ring ranks="4" rankz="3"/>)",
     R"(2:3: ring: unknown attribute 'rankz'; did you mean 'ranks'?)"},
    {"HypercubeTooLarge", R"(<hypercube dim="60"/>)",
     R"(2:3: hypercube: 1152921504606846976 nodes; at most 1048576 are supported)"},
};

std::string Wrapped(const char* contents) {
  return std::string("<topology name=\"t\">\n  ") + contents + "\n</topology>";
}

void ExpectRejected(const std::string& xml, const char* message) {
  const StatusOr<Topology> read = ReadNativeXml(xml, "t.xml");
  ASSERT_FALSE(read.ok()) << xml;
  EXPECT_EQ(read.status().message(), std::string("t.xml:") + message) << xml;
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidInput);
}

TEST(NativeXmlRejects, Documents) {
  for (const Rejection& rejection : kDocuments) {
    SCOPED_TRACE(rejection.name);
    ExpectRejected(rejection.xml, rejection.message);
  }
}

TEST(NativeXmlRejects, Contents) {
  for (const Rejection& rejection : kContents) {
    SCOPED_TRACE(rejection.name);
    ExpectRejected(Wrapped(rejection.xml), rejection.message);
  }
}

// Unknown names cost no more than known ones, however long the names and the lists of known names are.
TEST(NativeXmlRejects, LongNames) {
  const std::string name(60'000, 'a'), start(80, 'a');
  ExpectRejected(
      Wrapped(("<gpu count=\"50000\"/><link from=\"" + name + "\" to=\"0\" bandwidth=\"1GB/s\"/>").c_str()),
      ("2:23: link " + start + "...->0: no node " + start + "...; nodes are 0..49999").c_str());
}

// A link inside of every copy is looked up in that copy, and not among all nodes that share an id.
TEST(NativeXmlRejects, ManyCopiesAreQuick) {
  const StatusOr<Topology> read = ReadNativeXml(
      R"(<topology name="t"><cluster hosts="20000"><host name="a"><gpu id="0"/></host>
         <host name="b"><gpu id="0"/><gpu id="1"/></host>
         <link from="1" to="a/0" bandwidth="1GB/s"/></cluster></topology>)",
      "t.xml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->num_links(), 40'000);
  EXPECT_EQ(read->LinkName(LinkId(39'998)), "pod19999.b/1->pod19999.a/0");
}

TEST(NativeXmlRejects, AZeroByte) {
  using std::string_literals::operator""s;
  const StatusOr<Topology> read = ReadNativeXml("<topology/>\0<gpu/>"s, "t.xml");
  EXPECT_EQ(read.status().message(), "t.xml:1:12: byte 0x00; expected UTF-8 text");
}

}  // namespace
}  // namespace xccl
