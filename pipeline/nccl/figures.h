// The figures that NCCL 2.30 searches channels by (src/graph/search.cc) and estimates times by
// (src/graph/tuning.cc), as published there. Nothing here was measured or tuned by XCCL.
#pragma once

#include <cstdint>

namespace xccl::nccl {

// The figures of one generation of GPUs. Lists of bandwidths begin with the widest; 0 ends them.
struct GenerationFigures {
  double intra_gb_per_s[20];  // bandwidths of a channel that are tried within a host
  double inter_gb_per_s[20];  // bandwidths of a channel that are tried between hosts
  // Most GB/s on one host, on two, and on more: of all channels (LL), and of one channel.
  double most_ll[3], most_ring_ll128[3], most_tree_ll128[3], most_tree[3];
  double nvls_share;  // of the links' bandwidth that NVLS reaches
};

struct Figures {
  GenerationFigures generations[4];  // by Generation
  int32_t most_channels;             // of one ring or tree: half of MAXCHANNELS
  int32_t nvls_channels;
  double least_share;  // bandwidths below this share of the widest one that fits are not tried
  // Microseconds by algorithm (tree, ring, CollNet direct and chain, NVLS, NVLS tree, PAT) and protocol (LL,
  // LL128, simple): of a call, and of a hop over NVLink, PCIe and a network. 0: NCCL lacks it.
  double base_us[7][3], hop_us[3][7][3];
  double network_us;  // the cost of a message beside Intel's CPUs
  // Share of its bandwidth that a tree reaches, by protocol and size: 64 bytes and its doubles.
  double tree_share[3][22];
};

inline constexpr Figures kFigures = {
    .generations =
        {{.intra_gb_per_s = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
          .inter_gb_per_s = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12},
          .most_ll = {39, 39, 20.4},
          .most_ring_ll128 = {20, 20, 20},
          .most_tree_ll128 = {20, 20, 20},
          .most_tree = {26.5, 18.5, 10},
          .nvls_share = 0},
         {.intra_gb_per_s = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
          .inter_gb_per_s = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12},
          .most_ll = {87.7, 22.5, 19},
          .most_ring_ll128 = {20, 20, 20},
          .most_tree_ll128 = {20, 20, 20},
          .most_tree = {24, 23.6, 17.8},
          .nvls_share = 0},
         {.intra_gb_per_s = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
          .inter_gb_per_s = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12},
          .most_ll = {141, 45, 35},
          .most_ring_ll128 = {36.7, 36.7, 36.7},
          .most_tree_ll128 = {36.7, 36.7, 29},
          .most_tree = {38.7, 41.4, 36},
          .nvls_share = .85},
         {.intra_gb_per_s = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18},
          .inter_gb_per_s = {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12},
          .most_ll = {282, 90, 70},
          .most_ring_ll128 = {40, 40, 40},
          .most_tree_ll128 = {55.6, 31.67, 20},
          .most_tree = {70, 42.8, 24},
          .nvls_share = .74}},
    .most_channels = 32,
    .nvls_channels = 16,
    .least_share = .49,
    .base_us = {{6.8, 14, 8.4}, {6.6, 14, 8.4}, {}, {}, {}, {}, {8, 8, 8}},
    .hop_us = {{{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}},
               {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}},
               {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}},
    .network_us = 1,
    .tree_share = {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1},
                   {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1},
                   {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9}},
};

}  // namespace xccl::nccl
