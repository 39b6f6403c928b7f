// Items in groups, all in one array: the usual form of adjacency lists (compressed sparse rows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace xccl {

template <typename Item, typename Offset = int32_t>
struct Grouped {
  std::vector<Offset> first = {0};  // group g has items[first[g], first[g + 1])
  std::vector<Item> items;

  size_t size() const { return first.size() - 1; }
  template <typename Index>
  std::span<const Item> operator[](Index group) const {
    const auto g = static_cast<size_t>(group);
    return {items.data() + first[g], items.data() + first[g + 1]};
  }
};

// for_each(add) calls add(group, item) for every item, group being below `groups`; it is called twice and
// must name the same items. Within a group they keep that order. Linear.
template <typename Item, typename Offset = int32_t, typename ForEach>
Grouped<Item, Offset> GroupItems(size_t groups, ForEach for_each) {
  Grouped<Item, Offset> made;
  // While items are placed, first[g + 1] is where the next one of group g goes; that ends as the group's end.
  made.first.assign(groups + 2, 0);
  for_each([&](auto group, const Item&) { ++made.first[static_cast<size_t>(group) + 2]; });
  for (size_t g = 2; g < made.first.size(); ++g) made.first[g] += made.first[g - 1];
  made.items.resize(static_cast<size_t>(made.first.back()));
  for_each([&](auto group, const Item& item) {
    made.items[static_cast<size_t>(made.first[static_cast<size_t>(group) + 1]++)] = item;
  });
  made.first.pop_back();
  return made;
}

}  // namespace xccl
